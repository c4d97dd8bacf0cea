"""Written: a result as a page or as pictures, checked before the work that it takes."""

__all__ = ["check_report", "write_figures", "write_report"]

from collections.abc import Sequence
from functools import singledispatch
from pathlib import Path
from typing import Any

from harmonrank.evaluation import Comparison
from harmonrank.evaluation.frontier import Frontier
from harmonrank.reports.explanation import Explanation
from harmonrank.reports.facts import Facts, collect, run_of
from harmonrank.reports.frontier import frontier_page
from harmonrank.reports.html import check_page, plotly_script, write_page
from harmonrank.reports.pictures import LIST, find_browser, write_pictures
from harmonrank.reports.sections import write_html
from harmonrank.support.storage.files import check_output


def check_report(report: Path | None, figures: Path | None = None) -> None:
    """Refuse a page or pictures that cannot be made or written; None asks for none."""
    check_page(report)
    if figures is not None:
        plotly_script()
        find_browser()
        check_output(figures, overwrite=True, holds=LIST)


@singledispatch
def write_report(result: Any, path: str | Path, **about: Any) -> None:  # noqa: ARG001
    """Write one HTML page with charts of a comparison, an evaluation, a frontier or the like."""
    raise TypeError(f"There is no page of {type(result).__name__}.")


@write_report.register
def _compared(result: Comparison, path: str | Path, **about: Any) -> None:
    write_html(_facts(result, **about), path)


@write_report.register
def _frontier(
    result: Frontier, path: str | Path, *, title: str = "", chosen: int | None = None
) -> None:
    title = title or f"What {result.method} can trade"
    write_page(frontier_page(title, result, run_of(), chosen), path)


@write_report.register
def _explained(result: Explanation, path: str | Path, *, title: str = "") -> None:
    result.report(path, title)


def write_figures(result: Comparison, folder: str | Path, **about: Any) -> list[str]:
    """Write each chart of a comparison or an evaluation as PNG; return the names."""
    return write_pictures(_facts(result, **about), Path(folder))


def _facts(
    result: Comparison, *, title: str = "", caveats: Sequence[str] = (), **about: Any
) -> Facts:
    return collect(
        title or result.title,
        run_of(seed=result.seed),
        result.board,
        result.models,
        result.test,
        train=result.train,
        caveats=[*result.notes, *caveats],
        **about,
    )
