"""`harmonrank simulate`."""

__all__ = ["command"]

from math import isfinite
from pathlib import Path

import click

from harmonrank.cli import parts
from harmonrank.support import UsageError
from harmonrank_lab.cli.simulate_stream import StreamPlan, simulate_stream, stream_options


@click.command("simulate", cls=parts.Verb)
@click.argument("world")
@parts.count_option(
    "--rows",
    1_000_000,
    "Training rows, with half as many for valid and test; of a log or a stream, all rows.",
    least=4,
)
@parts.seed_option
@click.option("--redraw", type=parts.whole(0), help="Draws another world of the same kind.")
@click.option("--objectives", metavar="A,B", help="Only these objectives.")
@click.option("--drift", type=float, default=0.0, help="How far mean logits move over the log.")
@click.option(
    "--position-bias", type=click.FloatRange(0, 10), metavar="P",
    help="Show rows one below the other: place k is looked at with chance 1/log2(1+k)^P.",
)  # fmt: skip
@click.option("--unwanted", metavar="A,B", help="Objectives that count against a row.")
@click.option("--graded", metavar="A,B", help="Draw labels of these as numbers, such as seconds.")
@click.option("--given", metavar="A=B", help="Draw labels of A only where B happened.")
@stream_options
@parts.output("Folder to write.", required=False)
@parts.numbers
def command(
    plan: StreamPlan,
    world: str,
    rows: int,
    seed: int,
    redraw: int | None,
    objectives: str | None,
    drift: float,
    position_bias: float | None,
    out: Path | None,
    overwrite: bool,
    json_file: str | None,
    quiet: bool,
    **kind_texts: str | None,
) -> None:
    """Write the log of WORLD to a folder, or its events to a stream.

    Worlds: elive, qkvideo and conflict; backbone, tails, interactions, leak and requests, which
    each break an assumption of these; clustered, drifting, three-way, nested and skewed-lists,
    which are like logs of real services; trained, whose scores are by a network that is trained
    first (a minute or more). `harmonrank lab simulate` writes raw logs.

    The folder holds train.parquet, valid.parquet, test.parquet, schema.toml and ceiling.json.
    Of a stream, schema.toml is in the folder of the events, or in the output.
    """
    from harmonrank.cli.parts import Show
    from harmonrank.support.storage import check_output
    from harmonrank.worlds import SCHEMA
    from harmonrank.worlds import world as find_world
    from harmonrank_lab.worlds import World, simulate

    kinds = parts.kind_parts(**kind_texts)
    if world == "trained":
        given = {"--objectives": objectives, "--drift": drift or None, "swap": plan.swap}
        for option in (name for name, value in given.items() if value is not None):
            raise UsageError(f"{option} does not apply to the world '{world}'; leave it out.")
    if not isfinite(drift):
        raise UsageError(f"--drift must be a finite number. Got {drift}.")
    if plan.address is None:
        plan.refuse()
        check_output(_required(out), overwrite=overwrite, holds=SCHEMA)
    elif position_bias is not None:
        raise UsageError("--position-bias does not apply to a stream; leave it out.")
    elif kinds:
        raise UsageError(
            "--unwanted, --graded and --given do not apply to a stream; leave them out."
        )
    done = 0
    with Show(quiet=quiet, json_file=json_file) as show:
        if world == "trained":
            show.line("Training the upstream networks on a simulated log.")
        place = find_world(world, redraw=redraw)
        if isinstance(place, World):
            place = place.subset(parts.parse_names(objectives)) if objectives else place
            place = plan.changed(place.drifting(mu_amplitude=drift) if drift else place)
        if plan.address is not None:
            facts = {"drift": drift, "redraw": redraw}
            simulate_stream(
                place, rows, plan, out, show, seed=seed, overwrite=overwrite, facts=facts
            )
            return

        def on_table(name: str, count: int) -> None:
            nonlocal done
            done += count
            show.advance("simulate ", done, 2 * rows, f"{name}.parquet")

        summary = simulate(
            place, rows, _required(out), seed=seed, overwrite=overwrite,
            kinds=kinds, position_bias=position_bias, on_table=on_table,
        )  # fmt: skip
    summary["redraw"] = redraw
    show.result(
        f"Wrote {rows:,} training, {rows // 2:,} validation and {rows // 2:,} test rows to {out}.\n"
        f"Best possible AUC-sum on the test rows: {summary['ceiling']:.4f}.",
        summary,
    )


def _required(out: Path | None) -> Path:
    if out is None:
        raise UsageError("A log needs a folder to be written to; name one with -o.")
    return out
