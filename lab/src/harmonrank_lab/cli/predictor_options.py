"""Options that verbs of the laboratory share, and those of the networks that predict."""

__all__ = ["choice_option", "predictor_options"]

from collections.abc import Callable, Sequence
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, cast

import click

from harmonrank.cli.parts import F, count_option, parse_settings, settings_option, whole

if TYPE_CHECKING:
    from harmonrank_lab.upstream import PredictorConfig


def choice_option(name: str, choices: Sequence[str], text: str, **rest: Any) -> Callable[[F], F]:
    """Return an option that is one of some words, the first if it is not given."""
    rest = {"default": choices[0], "show_default": True, **rest}
    return click.option(name, type=click.Choice(choices), help=text, **rest)


def predictor_options(least_folds: int, text: str) -> Callable[[F], F]:
    """Return the options of the networks that predict; a verb gets `config`, `folds` and `by`.

    The text says what folds are.
    """
    cuts = "How folds are cut; as the log was split if left out."
    options: list[Callable[[F], F]] = [
        choice_option("--network", ("mmoe", "ple", "esmm"), "What predicts."),
        click.option("--epochs", type=whole(1), help="At most so many passes."),
        count_option("--folds", 5, text, least=least_folds),
        click.option("--by", type=click.Choice(["user", "time"]), help=cuts),
        settings_option("An option of the predictor, such as embedding=8"),
    ]

    def decorate(function: F) -> F:
        @wraps(function)
        def verb(**given: Any) -> Any:
            how = [given.pop(name) for name in ("network", "epochs", "settings")]
            return function(config=_config(*how), **given)

        return cast(F, reduce(lambda made, option: option(made), reversed(options), verb))

    return decorate


def _config(network: str, epochs: int | None, settings: tuple[str, ...]) -> "PredictorConfig":
    from harmonrank.support.options import checked_options
    from harmonrank_lab.upstream import PredictorConfig

    options = {"network": network, **parse_settings(settings)}
    if epochs is not None:
        options["epochs"] = epochs
    return PredictorConfig(**checked_options("predict", PredictorConfig, options))
