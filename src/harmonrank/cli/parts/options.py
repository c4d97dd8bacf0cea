"""Options that verbs share, and the objects they become."""

__all__ = [
    "Show",
    "at_option",
    "baseline_option",
    "count_option",
    "figures_option",
    "format_option",
    "load_model",
    "method_option",
    "missing_option",
    "numbers",
    "output",
    "parse_names",
    "parse_pairs",
    "parse_settings",
    "path_option",
    "predictor_options",
    "recalibrate",
    "report_option",
    "reports",
    "seed_option",
    "seeds",
    "settings_option",
    "shown",
    "value",
    "weights",
    "whole",
]

from collections.abc import Callable
from functools import wraps
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.options import MOST_SEED, MOST_WHOLE

if TYPE_CHECKING:
    from harmonrank.cli.parts.show import Show
else:
    Show = Any  # What it imports is for a verb that runs; help does not wait for it.

F = TypeVar("F", bound=Callable[..., Any])


def whole(least: int = 0) -> click.IntRange:
    """Return the type of an option that is a whole number from `least` up."""
    return click.IntRange(least, MOST_WHOLE)


def count_option(
    name: str, default: int, text: str | None = None, *, least: int = 0
) -> Callable[[F], F]:
    """Return an option that is a whole number from `least` up."""
    kind = whole(least)
    return click.option(name, type=kind, default=default, show_default=True, help=text)


seeds = click.IntRange(0, MOST_SEED)
seed_option = click.option("--seed", type=seeds, default=0, show_default=True)


def path_option(*names: str, **rest: Any) -> Callable[[F], F]:
    """Return an option that names a file or a folder."""
    return click.option(*names, type=click.Path(path_type=Path), **rest)


def settings_option(text: str) -> Callable[[F], F]:
    """Return --set, of which the text says whose options it sets."""
    return click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help=f"{text}; may be repeated."
    )


def weights(function: F) -> F:
    """Add --weights, other ones than those of a fit."""
    text = "Other weights, for methods that can change them; as fitted if not named."
    return click.option("--weights", metavar="A=2,B=1", help=text)(function)


def at_option(function: F) -> F:
    """Add --at."""
    text = "An operating point of the model, as `frontier` saves it: its weights."
    return click.option("--at", metavar="NAME", help=text)(function)


def value(function: F) -> F:
    """Add --value."""
    return click.option(
        "--value",
        metavar="A=10,B=1",
        help="What an event is worth, in place of --weights; 0 if not given.",
    )(function)


def baseline_option(function: F) -> F:
    """Add --baseline."""
    return click.option(
        "--baseline",
        metavar="COLUMN|FORMULA",
        help="What ranks today: a column, or a formula such as 'p_buy * (1 + 3*p_like)**0.5'.",
    )(function)


class _MethodOption(click.Option):
    """An option that lists the methods in its help, which are not imported before."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        from harmonrank.fusion import METHODS

        if self.help is not None and METHODS[0] not in self.help:
            self.help += f": {', '.join(METHODS)}."
        return super().get_help_record(ctx)


def method_option(name: str, default: str, text: str, **rest: Any) -> Callable[[F], F]:
    """Return an option that names methods; its help lists them behind the text."""
    return click.option(
        name, cls=_MethodOption, default=default, show_default=True, help=text, **rest
    )


def missing_option(function: F) -> F:
    """Add --missing."""
    return click.option(
        "--missing",
        type=click.Choice(["allow", "error"]),
        help="Scores that are null or NaN: allow them (as the schema, if left out), or refuse.",
    )(function)


def load_model(path: Path, missing: Any = None, at: str | None = None, value: Any = None) -> Any:
    """Return a saved model at an operating point.

    Args:
        path: Its folder.
        missing: Whether it allows missing scores or refuses them, as --missing says.
        at: The point, as --at names it.
        value: What --value says, which takes the place of any weights.
    """
    from dataclasses import replace

    from harmonrank.fusion import load

    fitted = load(path)
    if at is not None:
        if value is not None:
            raise UsageError("Give either --at or --value, not both: a point is weights on AUCs.")
        fitted = fitted.at(at)
    if missing is not None and missing != fitted.schema.missing:
        fitted._schema = replace(fitted.schema, missing=missing)
    return fitted


def recalibrate(function: F) -> F:
    """Add --recalibrate."""
    return click.option(
        "--recalibrate",
        is_flag=True,
        help="First recalibrate on these rows, without labels, as after an upstream change.",
    )(function)


def numbers(function: F) -> F:
    """Add --json and --quiet."""
    function = click.option("-q", "--quiet", is_flag=True, help="No progress, no tables.")(function)
    return click.option(
        "--json", "json_file", metavar="FILE", help="Also write the numbers as JSON; - for stdout."
    )(function)


def shown(function: F) -> F:
    """Add --json and --quiet, and give the verb the `show` that heeds them."""

    @wraps(function)
    def verb(*, json_file: str | None, quiet: bool, **given: Any) -> Any:
        from harmonrank.cli.parts.show import Show

        with Show(quiet=quiet, json_file=json_file) as show:
            return function(show=show, **given)

    return cast(F, numbers(verb))


def reports(function: F) -> F:
    """Add --report, --figures and --format."""
    return report_option(figures_option(format_option(function)))


def report_option(function: F) -> F:
    """Add --report."""
    text = "Also write one HTML page with charts."
    return path_option("--report", metavar="FILE", help=text)(function)


def figures_option(function: F) -> F:
    """Add --figures."""
    text = "Also write each chart as PNG; needs Chromium."
    return path_option("--figures", metavar="DIR", help=text)(function)


def predictor_options(least_folds: int, text: str) -> Callable[[F], F]:
    """Return the options of the networks that predict; the text says what folds are."""
    networks = click.Choice(["mmoe", "ple", "esmm"])
    cuts = "How folds are cut; as the log was split if left out."
    options: list[Callable[[F], F]] = [
        click.option(
            "--network", type=networks, default="mmoe", show_default=True, help="What predicts."
        ),
        click.option("--epochs", type=whole(1), help="At most so many passes."),
        count_option("--folds", 5, text, least=least_folds),
        click.option("--by", type=click.Choice(["user", "time"]), help=cuts),
        settings_option("An option of the predictor, such as embedding=8"),
    ]

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def format_option(function: F) -> F:
    """Add --format."""
    return click.option(
        "--format",
        "style",
        type=click.Choice(["table", "md"]),
        default="table",
        show_default=True,
        help="How the result is printed; md for a pull request.",
    )(function)


def output(text: str, *, required: bool = True) -> Callable[[F], F]:
    """Add --output, of which the text says what is written there, and --overwrite."""

    def decorate(function: F) -> F:
        function = click.option(
            "--overwrite", is_flag=True, help="Replace the output if it exists."
        )(function)
        return path_option("-o", "--output", "out", required=required, help=text)(function)

    return decorate


def parse_pairs(text: str | None, option: str = "--weights") -> dict[str, float] | None:
    """Read 'buy=2,like=1'."""
    if text is None:
        return None
    pairs: dict[str, float] = {}
    for part in parse_names(text):
        name, _, number = (word.strip() for word in part.partition("="))
        if name in pairs:
            raise UsageError(f"{option} names '{name}' twice; each must be named once.")
        try:
            pairs[name] = float(number)
            if option != "--weights" and not isfinite(pairs[name]):
                raise ValueError  # what a schema says of weights is said there
        except ValueError:
            raise UsageError(f"{option} takes pairs such as buy=2,like=1. Got '{part}'.") from None
    return pairs


def parse_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """Read 'epochs=5'; a value is JSON, or else text."""
    from harmonrank.support.storage.decoding import decode_json

    options: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, such as epochs=5. Got '{setting}'.")
        name = key.strip().replace("-", "_")
        try:
            options[name] = decode_json(value.encode(), object, setting)
        except DataError:
            options[name] = value
    return options


def parse_names(text: str) -> list[str]:
    """Read 'buy,like'."""
    return [name.strip() for name in text.split(",") if name.strip()]
