"""What --report and --figures ask for: checked before the work, written after it."""

__all__ = ["Pages", "can_draw"]

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harmonrank.cli.parts.show import Show
from harmonrank.reports.written import check_report, write_figures, write_report
from harmonrank.support.extras import is_installed


@dataclass(frozen=True)
class Pages:
    """A page and a folder of pictures, each perhaps not wanted."""

    report: Path | None
    figures: Path | None
    show: Show

    def __post_init__(self) -> None:
        check_report(self.report, self.figures)

    def write(self, result: Any, **about: Any) -> None:
        """Write what is wanted of a result."""
        if self.report is not None:
            self.show.line("Drawing the report.")
            write_report(result, self.report, **about)
            self.show.line(f"Report: {self.report}")
        if self.figures is not None:
            names = write_figures(result, self.figures, **about)
            self.show.line(f"{len(names)} pictures: {self.figures}")

    def show_comparison(self, result: Any, style: str, **about: Any) -> None:
        """Write what is wanted of a comparison or an evaluation; print it and its notes."""
        self.write(result, **about)
        self.show.result(result.to_table(), result.to_dict(), style=style)
        self.show.notes([*result.notes, *result.board.warnings])


def can_draw(show: Show) -> bool:
    """Tell whether a page can be made; one that nobody asked for is no reason to fail."""
    if is_installed("plotly"):
        return True
    show.line("No page with charts is written; pip install 'harmonrank[report]' adds it.")
    return False
