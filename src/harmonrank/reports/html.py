"""Page: a title, a verdict, a few numbers and sections, as one HTML file without any other."""

__all__ = [
    "DOCTYPE",
    "Card",
    "LegendEntry",
    "Section",
    "check_page",
    "page",
    "plotly_script",
    "section",
    "write_page",
]

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any, TypeAlias

from harmonrank.reports.plots import Plot
from harmonrank.reports.run import Run
from harmonrank.support.extras import import_extra
from harmonrank.support.storage.files import check_output, new_file
from harmonrank.support.table import Table, cut

DOCTYPE = "<!doctype html>"
"""What a page begins with, and a file that a page may replace."""

_DIGITS = 6
_SHORT = 12
_WHO = "A report with charts"

Card: TypeAlias = tuple[str, str, str]
"""A number at the head of a page: what it is, the number, and what to know about it."""

LegendEntry: TypeAlias = tuple[str, str, str, bool]
"""A name, its colour, its dash or the sign of its mark, and whether it is shown at first."""


@dataclass(frozen=True)
class Section:
    """One part of the page.

    Attributes:
        lead: What to look for, in a sentence or two.
        tables: Shown as they are; the numbers behind the plots are folded away.
        legend: A click on a name shows and hides it in all plots of the section.
        picks: What is said of each point that has an id, when it is clicked or its number typed.
    """

    key: str
    title: str
    lead: str
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    legend: Sequence[LegendEntry] = ()
    picks: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        """Whether there is anything beside words."""
        return bool(self.plots or self.notes or any(table.rows for table in self.tables))

    @property
    def short(self) -> str:
        """What the contents call it."""
        if len(self.title) <= _SHORT:
            return self.title
        return self.key.replace("-", " ").capitalize()


def section(
    key: str,
    plots: Sequence[Plot] = (),
    tables: Sequence[Table] = (),
    *,
    notes: Sequence[str] = (),
    legend: Sequence[LegendEntry] = (),
    picks: Mapping[str, str] | None = None,
    **facts: Any,
) -> Section:
    """Return a section whose title and lead are in the file of words, with facts filled in."""
    words = _words()[key]
    title, lead = (" ".join(words[part].render(facts).split()) for part in ("title", "lead"))
    return Section(key, title, lead, plots, tables, notes, legend, picks or {})


@cache
def _words() -> dict[str, dict[str, Any]]:
    """Return the title and the lead of each section, to fill in."""
    jinja2 = import_extra("jinja2", who=_WHO)
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined)
    return {
        key: {part: environment.from_string(text) for part, text in parts.items()}
        for key, parts in tomllib.loads(asset("words.toml")).items()
    }


def page(
    title: str, run: Run, cards: Sequence[Card], sections: Sequence[Section], verdict: str = ""
) -> str:
    """Return a page of any sections that have something to show.

    A verdict and the few numbers of cards are at its head.

    Raises:
        DependencyError: Plotly, which draws the charts, or jinja2 is not installed.
    """
    script = plotly_script()
    sections = [section for section in sections if section.has_content]
    plots = {plot.name: plot for section in sections for plot in section.plots}
    whole: str = _template().render(
        title=title,
        verdict=verdict,
        run=run,
        cards=cards,
        sections=sections,
        figures=_plain({name: plot.figure for name, plot in plots.items()}),
        scripts=(script, asset("page.js")),
        style=asset("page.css"),
    )
    return whole


@cache
def _template() -> Any:
    jinja2 = import_extra("jinja2", who=_WHO)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    # A number and its percent sign stay on one line.
    environment.filters["words"] = lambda text: text.replace(" %", "\N{NO-BREAK SPACE}%")
    environment.filters["css"] = lambda color: f"var({color})" if color[:2] == "--" else color
    environment.filters["cut"] = cut
    return environment.from_string(asset("page.html"))


def plotly_script() -> str:
    """Return Plotly's JavaScript, which the Python package carries."""
    import_extra("plotly", who=_WHO)
    script: str = import_module("plotly.offline").get_plotlyjs()
    # The one sequence that would end the script element early.
    return script.replace("</script", "<\\/script")


def check_page(path: Path | None) -> None:
    """Refuse a page that cannot be made or would replace something else; None asks for none."""
    if path is not None:
        plotly_script()
        _template()
        check_output(path, overwrite=True, begins=DOCTYPE)


def write_page(whole: str, path: str | Path) -> None:
    """Write a page; it appears under its name only when complete."""
    with new_file(path, overwrite=True, begins=DOCTYPE) as partial:
        partial.write_text(whole, encoding="utf-8")


def asset(name: str) -> str:
    """Return a file that pages are made of."""
    return files("harmonrank.reports").joinpath("page", name).read_text(encoding="utf-8")


def _plain(value: Any) -> Any:
    """Return JSON parts with no more digits than can be seen."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    return value
