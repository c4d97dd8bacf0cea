"""Options of the networks that predict."""

__all__ = ["predictor_options"]

from collections.abc import Callable

import click

from harmonrank.cli.parts import F, count_option, settings_option, whole


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
