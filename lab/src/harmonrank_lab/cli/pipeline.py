"""`harmonrank lab pipeline`."""

__all__ = ["command"]

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli import parts
from harmonrank.support import DataError, UsageError
from harmonrank_lab.cli.predictor_options import choice_option, predictor_options

if TYPE_CHECKING:
    from harmonrank.cli.parts import Show

_DECLARATION = "declaration.toml"


@click.command("pipeline", cls=parts.Verb)
@click.argument("raw", type=click.Path(path_type=Path))
@parts.path_option(
    "-o", "--output", "out", required=True,
    help="Folder of all outcomes; a second run into it does only what changed.",
)  # fmt: skip
@choice_option("--source", ("auto", "kuairand", "tenrec"), "Whose files RAW holds.")
@parts.path_option(
    "--declaration",
    metavar="FILE",
    help="TOML that declares the columns of your own log; RAW/declaration.toml if it is there.",
)
@click.option("--file", metavar="NAME", help="Tenrec: which file, where there are several.")
@predictor_options(2, "Of the training scores.")
@parts.count_option(
    "--fusion-rows", 1_000_000, "Fusions are fitted on at most so many rows.", least=100
)
@click.option(
    "--methods", default="harmonrank,closed-form,prevalence-weights,logistic", show_default=True,
    metavar="all|A,B", help="Ways to fuse.",
)  # fmt: skip
@parts.seed_option
@parts.figures_option
@parts.format_option
@parts.shown
def command(
    raw: Path,
    out: Path,
    source: str,
    declaration: Path | None,
    file: str | None,
    methods: str,
    config: Any,
    figures: Path | None,
    style: str,
    show: "Show",
    **how: Any,
) -> None:
    """Go from the raw logs in RAW to a comparison of fusions and a report.

    Import and split, train the predictor, score (training rows out of fold), fit the fusions,
    compare them, draw report.html. Every step is kept with a digest of what it depends on, so
    that the same command again does only what changed, and says so.
    """
    from rich.console import Group

    from harmonrank.cli.parts import Pages, can_draw
    from harmonrank.fusion import METHODS
    from harmonrank.reports import prediction_table
    from harmonrank_lab.pipeline.pipeline import PIPELINE_STEPS, PipelineConfig, Steps, run_pipeline

    named = METHODS if methods == "all" else tuple(parts.parse_names(methods))
    plan = PipelineConfig(predictor=config, methods=named, **how)
    log = _find(raw, source, declaration, file)
    page = out / "report.html" if can_draw(show) else None
    drawn, pictured = Pages(page, None, show), Pages(None, figures, show)
    steps = Steps(out, PIPELINE_STEPS, show.event)
    result = run_pipeline(log, out, plan, steps=steps, on_event=show.event)

    upstream = {"prediction": dict(result.prediction), "caveats": list(result.caveats)}
    about = {"title": f"From {log.columns.kind} logs to a fused ranking", **upstream}
    if page is not None:
        content = [result.digest, *upstream.values()]
        write = lambda: drawn.write(result.comparison, **about)  # noqa: E731
        steps.run("report", {"shown": content}, [page.name], write)
        show.line(f"Report: {page}")
    pictured.write(result.comparison, **about)
    for caveat in result.caveats:
        show.line(f"Note: {caveat}")
    numbers_of = {**result.comparison.board.to_dict(), **upstream}
    tables = prediction_table(result.prediction), result.comparison.to_table()
    text = "\n\n".join(table.to_markdown() for table in tables)
    show.result(text if style == "md" else Group(tables[0], "", tables[1]), numbers_of)


def _find(raw: Path, kind: str, declaration: Path | None, file: str | None) -> Any:
    """Return the files of a declared log, or of the first public one that they fit."""
    from harmonrank_lab.upstream.logs import find_declared, find_kuairand, find_tenrec

    if declaration is not None and (kind != "auto" or file is not None):
        raise UsageError("--declaration stands for --source and --file; leave those out.")
    if declaration is None and kind == "auto" and (raw / _DECLARATION).is_file():
        declaration = raw / _DECLARATION
    if declaration is not None:
        return find_declared(raw, declaration)
    finders: dict[str, Any] = {"kuairand": find_kuairand, "tenrec": partial(find_tenrec, file=file)}
    if kind != "auto" or file is not None:
        return finders["kuairand" if kind == "kuairand" else "tenrec"](raw)
    reasons = []
    for find in finders.values():
        try:
            return find(raw)
        except DataError as error:
            reasons.append(str(error))
    told = " Nor is it Tenrec's: ".join(reasons)
    raise DataError(f"{told} For a log of your own, declare its columns with --declaration FILE.")
