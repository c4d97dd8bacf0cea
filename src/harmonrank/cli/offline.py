"""`harmonrank offline`."""

__all__ = ["command"]

from typing import Any

import click

from harmonrank.cli.parts.model_options import ModelChoice, load_ranking, model_options
from harmonrank.cli.parts.options import Show, count_option, seed_option, shown
from harmonrank.cli.parts.table_options import Tables, table_argument
from harmonrank.cli.parts.verb import verb


@verb("offline", example="harmonrank offline model log.parquet --against prod_score -k 5")
@model_options
@table_argument("data")
@click.option(
    "--against",
    metavar="CURRENT",
    help="What ranks today: a model, a column or a formula; if left out, the order shown.",
)
@count_option("-k", 10, "Number of places of a request that count.", least=1)
@click.option(
    "--randomised", metavar="A", help="Column that is 1 in requests shown in random order."
)
@click.option("--position", metavar="A", help="Column of places; that of the model if left out.")
@seed_option
@shown
def command(chosen: ModelChoice, data: Tables, against: str | None, show: Show, **how: Any) -> None:
    """Estimate what MODEL would earn online, from DATA, a log that another ranking made.

    DATA has labels, requests and the place of each row; candidates that were not shown have none.
    Events of each objective at the first places, and the lift over what ranks today, are estimated
    by self-normalised inverse propensities and doubly robust, with 95 % intervals.
    """
    from harmonrank.evaluation.offline import offline

    current = None if against is None else load_ranking(against)
    result = offline(chosen.load(), data, **chosen.asked, against=current, **how)
    show.result(result.to_table(), result.to_dict())
    show.notes(result.warnings)
