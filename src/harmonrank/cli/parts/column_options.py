"""Options that name columns, and the schema they become."""

__all__ = ["SCHEMA", "ColumnChoice", "column_options", "kind_parts"]

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import options
from harmonrank.cli.parts.table_options import Tables
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.data import Schema

SCHEMA = "schema.toml"
"""The file that names columns where no option does."""


def _tuple(text: str) -> tuple[str, ...]:
    return tuple(options.parse_names(text))


_PARTS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("request", "time", "sample_weight", "position", "missing"), str),
    **dict.fromkeys(("context", "unwanted", "graded"), _tuple),
    "scale": partial(options.parse_words, option="--scale", example="p_buy=percent"),
    "given": partial(options.parse_words, option="--given", example="order=click"),
    "weights": options.parse_pairs,
    "value": partial(options.parse_pairs, option="--value"),
}
"""How the text of an option becomes a part of the schema."""

_OPTIONS = (
    options.path_option("--schema", help="TOML file that names columns; else a schema.toml near."),
    options.listed_option("--scores", "A,B", "Score column of each objective."),
    options.listed_option("--labels", "A,B", "Label column of each objective."),
    options.listed_option("--context", "A,B", "Context columns."),
    click.option("--request", metavar="A", help="Request column."),
    click.option("--time", metavar="A", help="Column of times."),
    options.listed_option("--scale", "A=percent", "Scales of score columns."),
    click.option("--sample-weight", metavar="A", help="Column of row weights."),
    options.listed_option("--unwanted", "A,B", "Objectives that count against a row."),
    options.listed_option("--graded", "A,B", "Objectives whose label is a number."),
    options.listed_option("--given", "A=B", "Objectives shown only where B happened."),
    click.option(
        "--position", metavar="A", help="Column of the place in its request, from the top."
    ),
    click.option(
        "--missing",
        type=click.Choice(["allow", "error"]),
        help="Allow scores that are null or NaN (as the schema, if left out), or refuse them.",
    ),
    options.listed_option(
        "--weights", "A=2,B=1", "What an objective's AUC counts; as in the schema, or else 1."
    ),
    options.listed_option(
        "--value", "A=10,B=1", "What an event is worth, in place of --weights; 0 if not given."
    ),
)


@dataclass(frozen=True)
class ColumnChoice:
    """What the options that name columns say, each as text; None where it was not given."""

    given: Mapping[str, Any]

    @property
    def names_objectives(self) -> bool:
        """Whether the options say where the objectives are."""
        return any(self.given[part] for part in ("schema", "scores", "labels"))

    def schema(self, near: Tables | None = None, *, quiet: bool = False) -> "Schema":
        """Return the schema; options win over its file.

        Where no option names objectives, a schema.toml in this folder or beside the table does.
        """
        from harmonrank.data.values import either

        given = self.given
        either(given["weights"], given["value"], "--weights or --value")
        file = given["schema"]
        if not self.names_objectives and (file := _schema_near(near)) is not None and not quiet:
            click.echo(f"Columns are as '{file}' says.", err=True)
        result = self._base(file)
        told = {name: text for name, text in given.items() if text is not None}
        parts = {name: read(told[name]) for name, read in _PARTS.items() if name in told}
        for name in ("scale", "weights", "value"):
            if name in parts:
                parts[name] = {**getattr(result, name), **parts[name]}
        if "weights" in parts or "value" in parts:  # one takes the place of the other
            parts = {"weights": {}, "value": {}, **parts}
        return replace(result, **parts)

    def _base(self, file: Path | None) -> "Schema":
        """Return the schema of a file, or of score and label columns."""
        from harmonrank.data import Schema

        scores, labels = self.given["scores"], self.given["labels"]
        if file is not None:
            if scores or labels:
                raise UsageError("Give either --schema or --scores with --labels, not both.")
            return Schema.read(file)
        if not (scores and labels):
            raise UsageError(
                "Name the columns: --schema FILE, or --scores A,B with --labels A,B; "
                "`harmonrank init TABLE` writes such a file."
            )
        score_names, label_names = options.parse_names(scores), options.parse_names(labels)
        if len(score_names) != len(label_names):
            raise UsageError(
                f"--scores and --labels must name as many columns. Got {len(score_names)} "
                f"and {len(label_names)}."
            )
        for name in label_names:
            if label_names.count(name) > 1:
                raise UsageError(f"--labels names '{name}' twice; each must be named once.")
        return Schema(dict(zip(label_names, score_names, strict=True)))


column_options = options.gathered(
    "columns",
    lambda **given: ColumnChoice(given),
    *_OPTIONS,
    parts=("schema", "scores", "labels", *_PARTS),
)
"""Adds the options that name columns; the verb gets `columns`, which say them."""


def kind_parts(unwanted: str | None, graded: str | None, given: str | None) -> dict[str, Any]:
    """Return the parts of a schema that options about the kinds of objectives name."""
    texts = {"unwanted": unwanted, "graded": graded, "given": given}
    return {name: _PARTS[name](text) for name, text in texts.items() if text is not None}


def _schema_near(table: Tables | None) -> Path | None:
    """Return the schema.toml in this folder, or else in that of the table."""
    folders = [Path()]
    if table is not None:
        first = table[0] if isinstance(table, list) else table
        if isinstance(first, str):  # a URL: what is beside it is not looked at
            first = Path()
        elif not first.exists():
            first = Path(str(first).split(",")[0])
        folders += [first, first.parent] if first.is_dir() else [first.parent]
    return next((file for folder in folders if (file := folder / SCHEMA).is_file()), None)
