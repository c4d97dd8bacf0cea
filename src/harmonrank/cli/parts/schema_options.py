"""Options that name columns, and the schema they become."""

__all__ = ["SCHEMA", "columns", "kind_parts", "schema_of"]

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.options import (
    F,
    missing_option,
    parse_names,
    parse_pairs,
    path_option,
    value,
)
from harmonrank.cli.parts.table_options import Tables
from harmonrank.support.errors import UsageError

SCHEMA = "schema.toml"
"""The file that names columns where no option does."""


def columns(function: F) -> F:
    """Add the options that name columns."""
    for decorate in reversed(
        [
            path_option("--schema", help="TOML file that names columns; else a schema.toml near."),
            click.option("--scores", metavar="A,B", help="Score column of each objective."),
            click.option("--labels", metavar="A,B", help="Label column of each objective."),
            click.option("--context", metavar="A,B", help="Context columns."),
            click.option("--request", metavar="A", help="Request column."),
            click.option("--time", metavar="A", help="Column of times."),
            click.option("--scale", metavar="A=percent", help="Scales of score columns."),
            click.option("--sample-weight", metavar="A", help="Column of row weights."),
            click.option("--unwanted", metavar="A,B", help="Objectives that count against a row."),
            click.option("--graded", metavar="A,B", help="Objectives whose label is a number."),
            click.option("--given", metavar="A=B", help="Objectives shown only where B happened."),
            click.option("--position", metavar="A", help="Column of places, from the top down."),
            missing_option,
            click.option(
                "--weights",
                metavar="A=2,B=1",
                help="What the AUC of an objective counts; as in the schema, or 1, if not named.",
            ),
            value,
        ]
    ):
        function = decorate(function)
    return function


def schema_of(
    schema: Path | None,
    scores: str | None,
    labels: str | None,
    context: str | None,
    request: str | None,
    sample_weight: str | None,
    weights: str | None,
    value: str | None = None,
    time: str | None = None,
    scale: str | None = None,
    missing: str | None = None,
    position: str | None = None,
    unwanted: str | None = None,
    graded: str | None = None,
    given: str | None = None,
    near: Tables | None = None,
    quiet: bool = False,
    required: bool = True,
) -> Any:
    """Return the Schema that the column options describe; options win over the file.

    Where no option names columns, a schema.toml in this folder or beside the table does; without
    one there is none, if it is not required.
    """
    from harmonrank.data import Schema
    from harmonrank.data.values import either

    either(weights, value, "--weights or --value")
    if schema is None and not (scores or labels) and (found := _schema_near(near)) is not None:
        schema = found
        if not quiet:
            click.echo(f"Columns are as '{found}' says.", err=True)
    if schema is None and not (scores or labels or required):
        return None
    if schema is not None:
        if scores or labels:
            raise UsageError("Give either --schema or --scores with --labels, not both.")
        result = Schema.read(schema)
    else:
        if not (scores and labels):
            raise UsageError(
                "Name the columns: --schema FILE, or --scores A,B with --labels A,B; "
                "`harmonrank init TABLE` writes such a file."
            )
        score_names, label_names = parse_names(scores), parse_names(labels)
        if len(score_names) != len(label_names):
            raise UsageError(
                f"--scores and --labels must name as many columns. Got {len(score_names)} "
                f"and {len(label_names)}."
            )
        _refuse_repeat("--labels", label_names)
        result = Schema(dict(zip(label_names, score_names, strict=True)))
    changes: dict[str, Any] = {}
    if context is not None:
        changes["context"] = tuple(parse_names(context))
    if request is not None:
        changes["request"] = request
    if sample_weight is not None:
        changes["sample_weight"] = sample_weight
    if time is not None:
        changes["time"] = time
    if position is not None:
        changes["position"] = position
    changes |= kind_parts(unwanted, graded, given)
    if missing is not None:
        changes["missing"] = missing
    if scale is not None:
        changes["scale"] = {**result.scale, **_parse_words(scale, "--scale", "p_buy=percent")}
    if weights is not None:
        changes |= {"weights": {**result.weights, **(parse_pairs(weights) or {})}, "value": {}}
    if value is not None:
        worth = parse_pairs(value, "--value") or {}
        changes |= {"weights": {}, "value": {**result.value, **worth}}
    return replace(result, **changes)


def kind_parts(unwanted: str | None, graded: str | None, given: str | None) -> dict[str, Any]:
    """Return the parts of a schema that options about the kinds of objectives name."""
    parts: dict[str, Any] = {}
    if unwanted is not None:
        parts["unwanted"] = tuple(parse_names(unwanted))
    if graded is not None:
        parts["graded"] = tuple(parse_names(graded))
    if given is not None:
        parts["given"] = _parse_words(given, "--given", "order=click")
    return parts


def _schema_near(table: Tables | None) -> Path | None:
    """Return the schema.toml in this folder, or else in that of the table."""
    places = [Path()]
    if table is not None:
        first = table[0] if isinstance(table, list) else table
        if isinstance(first, str):  # a URL: what is beside it is not looked at
            first = Path()
        elif not first.exists():
            first = Path(str(first).split(",")[0])
        places += [first, first.parent] if first.is_dir() else [first.parent]
    return next((file for place in places if (file := place / SCHEMA).is_file()), None)


def _parse_words(text: str, option: str, example: str) -> dict[str, str]:
    """Read 'p_buy=percent,p_like=logit'."""
    pairs = [part.partition("=") for part in parse_names(text)]
    for name, equals, word in pairs:
        if not (name and equals and word):
            raise UsageError(f"{option} takes pairs such as {example}. Got '{name}{equals}'.")
    _refuse_repeat(option, [name.strip() for name, _, _ in pairs])
    return {name.strip(): word.strip() for name, _, word in pairs}


def _refuse_repeat(option: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} names '{name}' twice; each column must be named once.")
