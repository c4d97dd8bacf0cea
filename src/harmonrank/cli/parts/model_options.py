"""The saved model that a verb works with, and at which weights."""

__all__ = ["ModelChoice", "at_option", "load_ranking", "model_argument", "model_options"]

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from harmonrank.cli.parts.options import gathered, listed_option, parse_pairs
from harmonrank.cli.parts.verb import setting
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from harmonrank.fusion import Method

model_argument = click.argument("model", type=click.Path(path_type=Path))
at_option = click.option(
    "--at",
    metavar="NAME",
    help="An operating point of the model, as `frontier` saves it: its weights.",
)


@dataclass(frozen=True)
class ModelChoice:
    """A saved model, and what the options say of it.

    Attributes:
        path: Its folder.
        at: The operating point that it is used at.
        weights: Other weights of objectives.
        value: What an event is worth, which takes the place of any weights.
        missing: Whether missing scores are allowed or refused ('error'); as it was fitted if None.
    """

    path: Path
    at: str | None
    weights: dict[str, float] | None
    value: dict[str, float] | None
    missing: Any

    @classmethod
    def of(
        cls, model: Path, at: str | None, weights: str | None, value: str | None, missing: Any
    ) -> Self:
        """Return what options say."""
        return cls(model, at, parse_pairs(weights), parse_pairs(value, "--value"), missing)

    @property
    def asked(self) -> dict[str, Any]:
        """Other weights or values, as methods take them."""
        return {"weights": self.weights, "value": self.value}

    def load(self) -> "Method":
        """Return the model."""
        from harmonrank.fusion import load
        from harmonrank.fusion.method import changed

        fitted = load(self.path)
        if self.at is not None:
            if self.value is not None:
                raise UsageError(
                    "Give either --at or --value, not both: a point is weights on AUCs."
                )
            fitted = fitted.at(self.at)
        if self.missing is None:
            return fitted
        return changed(fitted, schema=replace(fitted.schema, missing=self.missing))


model_options = gathered(
    "chosen",
    ModelChoice.of,
    model_argument,
    at_option,
    listed_option(
        "--weights",
        "A=2,B=1",
        "Other weights, for methods that can change them; as fitted if not named.",
    ),
    listed_option(
        "--value", "A=10,B=1", "What an event is worth, in place of --weights; 0 if not given."
    ),
    setting(
        "--missing",
        type=click.Choice(["allow", "error"]),
        help="Scores that are null or NaN: allow them, or refuse the table.",
    ),
)
"""Adds MODEL, --at, --weights and --value; the verb gets a `chosen` model."""


def load_ranking(text: str, at: str | None = None) -> "Method | str":
    """Return the model of a folder, or the current one of a registry; else the text itself.

    What is no folder is a column, or a formula over columns, and has no operating point.
    """
    from harmonrank.registry.target import load_target

    if Path(text).is_dir():
        model = load_target(text)[0]
        return model if at is None else model.at(at)
    if at is not None:
        raise UsageError("--like-at is a point of a model; name its folder with --like.")
    return text
