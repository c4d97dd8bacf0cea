"""`harmonrank demo`."""

__all__ = ["command"]

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from harmonrank.cli.parts.options import (
    Show,
    count_option,
    format_option,
    method_option,
    output,
    parse_names,
    report_option,
    seed_option,
    shown,
)
from harmonrank.cli.parts.verb import setting, verb

if TYPE_CHECKING:
    import numpy as np

    from harmonrank.data import Schema

_PAGE = Path("harmonrank-demo.html")


@verb(
    "demo",
    example="harmonrank demo",
)
@click.option("--world", default="conflict", show_default=True, help="As of `harmonrank simulate`.")
@count_option("--rows", 50_000, "Training rows.", least=1000)
@method_option("--methods", "harmonrank,logistic,closed-form", "Ways to fuse", metavar="all|A,B")
@seed_option
@output("Keep the world's files in this folder.", required=False)
@report_option
@setting("--figures", type=click.Path(path_type=Path), help="Also write each chart as PNG.")
@format_option
@click.option("--no-report", is_flag=True, help="Write no page.")
@shown
def command(
    world: str,
    rows: int,
    methods: str,
    seed: int,
    out: Path | None,
    overwrite: bool,
    report: Path | None,
    figures: Path | None,
    style: str,
    no_report: bool,
    show: Show,
) -> None:
    """Do the main job on a built-in world: simulate a log, fit some methods, compare.

    What ranks today is a product as one tunes it by hand, Π (1 + p/π), each score by how common
    its objective is. A world knows the best possible result, so the leaderboard shows how far from
    it each method stays. A page with charts is written too, harmonrank-demo.html unless --report
    names another file.
    """
    from harmonrank.cli.parts.pages import Pages, can_draw
    from harmonrank.data import Schema, read_log
    from harmonrank.evaluation import compare
    from harmonrank.support.storage.files import check_output
    from harmonrank.worlds import SCHEMA, simulate
    from harmonrank.worlds import world as find_world

    place = find_world(world)
    if out is not None:
        check_output(out, overwrite=overwrite, holds=SCHEMA)
    if no_report:
        report = None
    elif report is None and can_draw(show):
        report = _PAGE
    pages = Pages(report, figures, show)
    with TemporaryDirectory() as scratch:
        folder = out or Path(scratch) / "world"
        show.line(f"Simulating {rows:,} training rows of the world '{world}'.")
        simulate(place, rows, folder, seed=seed, overwrite=overwrite)
        train, valid, test = (folder / f"{name}.parquet" for name in ("train", "valid", "test"))
        schema = Schema.read(folder / SCHEMA)
        result = compare(
            train,
            schema,
            methods if methods == "all" else parse_names(methods),
            test=test,
            valid=valid,
            baseline=_by_hand(schema, read_log(train, schema).prevalence()),
            seed=seed,
            on_event=show.event,
        )
    pages.show_comparison(result, style, title=f"Fusions on the world ‘{world}’")


def _by_hand(schema: "Schema", prevalence: "np.ndarray") -> str:
    """Return the formula that ranks today."""
    shares = zip(schema.score_columns, prevalence.tolist(), strict=True)
    return " * ".join(f"(1 + {float(f'{1 / share:.1g}'):g}*{name})" for name, share in shares)
