"""Options that verbs share, and what is read from them."""

__all__ = [
    "Show",
    "baseline_option",
    "count_option",
    "figures_option",
    "format_option",
    "format_setting",
    "gathered",
    "listed_option",
    "method_option",
    "numbers",
    "output",
    "parse_names",
    "parse_pairs",
    "parse_settings",
    "parse_words",
    "path_option",
    "recalibrate_option",
    "report_option",
    "reports",
    "seed_option",
    "seeds",
    "settings_option",
    "shown",
    "whole",
]

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from harmonrank.cli.parts.verb import setting
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


def gathered(
    name: str, make: Callable[..., Any], *options: Callable[[Any], Any], parts: Iterable[str] = ()
) -> Callable[[F], F]:
    """Return options whose values a verb gets as one object.

    Args:
        name: What the verb calls the object.
        make: Makes the object of the values.
        options: In the order of the help.
        parts: The names of the values; those of the arguments of `make` if left out.
    """
    own = tuple(parts) or tuple(signature(make).parameters)

    def add(function: F) -> F:
        @wraps(function)
        def verb(**given: Any) -> Any:
            return function(**{name: make(**{part: given.pop(part) for part in own})}, **given)

        for option in reversed(options):
            verb = option(verb)
        return cast(F, verb)

    return add


seeds = click.IntRange(0, MOST_SEED)
seed_option = click.option("--seed", type=seeds, default=0, show_default=True)


def path_option(*names: str, **rest: Any) -> Callable[[F], F]:
    """Return an option that names a file or a folder."""
    return click.option(*names, type=click.Path(path_type=Path), **rest)


def listed_option(name: str, metavar: str, text: str, **rest: Any) -> Callable[[F], F]:
    """Return an option with several parts between commas; given again, it adds more of them."""

    def joined(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> str | None:  # noqa: ARG001
        return ",".join(texts) if texts else None

    return click.option(name, multiple=True, callback=joined, metavar=metavar, help=text, **rest)


def settings_option(text: str) -> Callable[[F], F]:
    """Return --set, of which the text says whose options it sets."""
    return click.option(
        "--set", "settings", multiple=True, metavar="NAME=VALUE", help=f"{text}; may be repeated."
    )


baseline_option = click.option(
    "--baseline",
    metavar="COLUMN|FORMULA",
    help="What ranks today: a column, or a formula such as 'p_buy * (1 + 3*p_like)**0.5'.",
)
recalibrate_option = click.option(
    "--recalibrate",
    is_flag=True,
    help="First recalibrate the scores that these rows prove to be of other upstream models.",
)
report_option = path_option(
    "--report", metavar="FILE", help="Also write one HTML page with charts."
)
figures_option = path_option(
    "--figures", metavar="DIR", help="Also write each chart as PNG; needs Chromium."
)
format_option = click.option(
    "--format",
    "style",
    type=click.Choice(["table", "md"]),
    default="table",
    show_default=True,
    help="How the result is printed; md for a pull request.",
)
format_setting = setting(
    "--format",
    "style",
    type=click.Choice(["table", "md"]),
    default="table",
    help="How the result is printed.",
)


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
    for name, (number, part) in _pairs(text, option).items():
        try:
            pairs[name] = float(number)
            if option != "--weights" and not isfinite(pairs[name]):
                raise ValueError  # what a schema says of weights is said there
        except ValueError:
            raise UsageError(f"{option} takes pairs such as buy=2,like=1. Got '{part}'.") from None
    return pairs


def parse_words(text: str, option: str, example: str) -> dict[str, str]:
    """Read 'p_buy=percent,p_like=logit'."""
    pairs = _pairs(text, option)
    for name, (word, part) in pairs.items():
        if not (name and word):
            raise UsageError(f"{option} takes pairs such as {example}. Got '{part}'.")
    return {name: word for name, (word, _) in pairs.items()}


def _pairs(text: str, option: str) -> dict[str, tuple[str, str]]:
    """Return by name what is behind the sign of equality, and both; no name twice."""
    pairs: dict[str, tuple[str, str]] = {}
    for part in parse_names(text):
        name, _, word = (piece.strip() for piece in part.partition("="))
        if name in pairs:
            raise UsageError(f"{option} names '{name}' twice; each must be named once.")
        pairs[name] = word, part
    return pairs


def parse_settings(settings: tuple[str, ...]) -> dict[str, Any]:
    """Read 'epochs=5'; a value is JSON, or else text."""
    from harmonrank.support.storage.decoding import decode_json

    options: dict[str, Any] = {}
    for text in settings:
        key, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set takes NAME=VALUE, such as epochs=5. Got '{text}'.")
        name = key.strip().replace("-", "_")
        if name in options:
            raise UsageError(f"--set gives '{name}' twice; give it once.")
        try:
            options[name] = decode_json(value.encode(), object, text)
        except DataError:
            options[name] = value
    return options


def parse_names(text: str) -> list[str]:
    """Read 'buy,like'."""
    return [name.strip() for name in text.split(",") if name.strip()]
