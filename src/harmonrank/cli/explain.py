"""`harmonrank explain`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.options import at_option, load_model, numbers, parse_pairs, value, weights


@click.command("explain")
@click.argument("model", type=click.Path(path_type=Path))
@at_option
@weights
@value
@numbers
def command(
    model: Path,
    at: str | None,
    weights: str | None,
    value: str | None,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Show what MODEL learned: effective weights, and what it makes of each score.

    An objective's effective weight is w/(π(1−π)): what a unit of its probability counts in
    the fused score. With equal weights the rarest objective dominates.
    """
    from harmonrank.cli.show import Show
    from harmonrank.reports import explanation_table

    fitted = load_model(model, at=at, value=value)
    facts = fitted.explain(parse_pairs(weights), parse_pairs(value, "--value"))
    health = getattr(fitted, "health", None)
    numbers = {} if health is None else {"health": health.to_dict()}
    with Show(quiet=quiet, json_file=json_file) as show:
        table = explanation_table(fitted.name, facts, health)
        show.result(table, {"method": fitted.name, **facts, **numbers})
