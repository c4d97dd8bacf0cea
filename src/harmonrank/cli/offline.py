"""`harmonrank offline`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts.options import (
    Show,
    at_option,
    count_option,
    load_model,
    missing_option,
    parse_pairs,
    seed_option,
    shown,
    value,
    weights,
)
from harmonrank.cli.parts.table_options import Tables, table_argument


@click.command("offline")
@click.argument("model", type=click.Path(path_type=Path))
@table_argument("data")
@click.option(
    "--against",
    metavar="CURRENT",
    help="What ranks today: a model, a column or a formula; else the order that was shown.",
)
@count_option("-k", 10, "How many places of a request count.", least=1)
@click.option(
    "--randomised", metavar="A", help="Column that is 1 in requests shown in random order."
)
@click.option("--position", metavar="A", help="Column of places; that of the model if left out.")
@at_option
@weights
@value
@missing_option
@seed_option
@shown
def command(
    model: Path,
    data: Tables,
    against: str | None,
    k: int,
    randomised: str | None,
    position: str | None,
    at: str | None,
    weights: str | None,
    value: str | None,
    missing: str | None,
    seed: int,
    show: Show,
) -> None:
    """Estimate what MODEL would earn online, from DATA, a log that another ranking made.

    DATA has labels, requests and the place of each row; candidates that were not shown have none.
    Events of each objective at the first places, and the lift over what ranks today, are estimated
    by self-normalised inverse propensities and doubly robust, with 95 % intervals.
    """
    from harmonrank.evaluation.offline import estimate_offline

    fitted = load_model(model, missing, at, value)
    result = estimate_offline(
        fitted,
        data,
        against=None if against is None else _current(against, data),
        k=k,
        randomised=randomised,
        position=position,
        weights=parse_pairs(weights),
        value=parse_pairs(value, "--value"),
        seed=seed,
    )
    show.result(result.to_table(), result.to_dict())
    show.notes(result.warnings)


def _current(text: str, data: Tables) -> Any:
    """Return a model if there is a folder of that name, else a column or a formula."""
    from harmonrank.evaluation import Baseline
    from harmonrank.fusion import load

    return load(Path(text)) if Path(text).is_dir() else Baseline.read(data, text)
