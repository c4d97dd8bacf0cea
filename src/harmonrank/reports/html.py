"""The report as one HTML page that needs nothing but a browser."""

__all__ = [
    "DOCTYPE",
    "Card",
    "check_page",
    "html_page",
    "page",
    "plotly_script",
    "write_html",
    "write_page",
]

from collections.abc import Mapping, Sequence
from html import escape
from importlib import import_module
from importlib.resources import files
from json import dumps
from math import isfinite
from pathlib import Path
from string import Template
from typing import Any

from harmonrank.evaluation import Leaderboard
from harmonrank.fusion import Quality
from harmonrank.reports.facts import Facts, Run
from harmonrank.reports.plots import Plot
from harmonrank.reports.sections import Section, sections
from harmonrank.support.extras import import_extra
from harmonrank.support.storage.files import check_output, new_file
from harmonrank.support.table import cut

DOCTYPE = "<!doctype html>"
"""What a page begins with, and a file that a page may replace."""

_DIGITS = 6
_SHORT = 12
_WHO = "A report with charts"

Card = tuple[str, str, str]
"""A number at the head of a page: what it is, the number, and what to know about it."""


def write_html(facts: Facts, path: str | Path) -> None:
    """Write the page of some facts."""
    write_page(html_page(facts), path)


def check_page(path: Path | None) -> None:
    """Refuse a page that cannot be made or would replace something else; None asks for none."""
    if path is not None:
        plotly_script()
        check_output(path, overwrite=True, begins=DOCTYPE)


def write_page(whole: str, path: str | Path) -> None:
    """Write a page; it appears under its name only when complete."""
    with new_file(path, overwrite=True, begins=DOCTYPE) as partial:
        partial.write_text(whole, encoding="utf-8")


def html_page(facts: Facts) -> str:
    """Return the page with its style, scripts and numbers inlined.

    Raises:
        DependencyError: Plotly, which draws the charts, is not installed.
    """
    verdict = facts.board.verdict
    sentence = "" if verdict is None else verdict.sentence
    return page(facts.title, facts.run, _summary(facts), sections(facts), sentence)


def page(
    title: str, run: Run, cards: Sequence[Card], parts: Sequence[Section], verdict: str = ""
) -> str:
    """Return a page of any sections; a verdict and the few numbers of cards are at its head."""
    return Template(_asset("page.html")).substitute(
        title=escape(title),
        style=_asset("page.css"),
        plotly=plotly_script(),
        script=_asset("page.js"),
        figures=_json({plot.name: figure(plot) for part in parts for plot in part.plots}),
        made=escape(run.made),
        verdict=f"<p class=verdict>{_text(verdict)}</p>" if verdict else "",
        summary="".join(map(_card, cards)),
        contents="".join(f'<a href="#{s.key}">{_short(s)}</a>' for s in parts),
        sections="".join(map(_section, parts)),
        run=_run(run),
    )


def plotly_script() -> str:
    """Return Plotly's JavaScript, which the Python package carries."""
    import_extra("plotly", who=_WHO)
    offline = import_module("plotly.offline")
    script: str = offline.get_plotlyjs()
    # The one sequence that would end the script element early.
    return script.replace("</script", "<\\/script")


def figure(plot: Plot) -> dict[str, Any]:
    """Return what the page's script draws."""
    return {"data": plot.data, "layout": plot.layout, "height": plot.height, "wide": plot.wide}


def _asset(name: str) -> str:
    return files("harmonrank.reports").joinpath("page", name).read_text(encoding="utf-8")


def _json(value: Any) -> str:
    """Return JSON that is safe inside a script element, with no more digits than can be seen."""
    return dumps(_plain(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    return value


def _summary(facts: Facts) -> list[Card]:
    """Return the few numbers that a hurried reader takes away."""
    board, rows = facts.board, facts.data.rows
    cards: list[Card] = []
    for name, best in list(board.qualities.items())[:1]:
        tied = sum(entry.tied for entry in board.entries[1:])
        among = f"tied with {tied} other{'s' * (tied > 1)}" if tied else ""
        cards.append(("Best" if len(board.entries) > 1 else "Method", name, among))
        if board.value_k is not None:
            cards += _value_cards(board, name, best)
            continue
        about = str(best.auc_sum) if best.regret is None else "exact"
        cards.append(("AUC-sum", f"{best.total:.4f}", about))
        if best.ceiling is not None and best.regret is not None:
            above = best.ceiling - sum(best.weights.values()) / 2
            reached = 1 - best.regret / above if above > 0 else float("nan")
            cards.append(("Ceiling", f"{best.ceiling:.4f}", f"regret {best.regret:.4f}"))
            cards.append(("Reached", f"{reached:.1%}", "of the way from chance to the ceiling"))
    trained = f"{rows['train']:,} training rows" if "train" in rows else ""
    cards.append(("Test rows", f"{rows['test']:,}", trained))
    if facts.data.warnings:
        cards.append(("Warnings", str(len(facts.data.warnings)), "about the rows, see below"))
    return cards


def _value_cards(board: Leaderboard, name: str, quality: Quality) -> list[Card]:
    """Return what the first is worth, of those that rank by value."""
    value, total, best = quality.value, board.totals[name], board.best_possible
    assert value is not None
    about = f"per request, {value.mean}" if best is None else "per request, exact"
    cards: list[Card] = [(f"Value at {value.k}", f"{total:.4f}", about)]
    if best is not None:
        cards.append(("Ceiling", f"{best:.4f}", f"regret {best - total:.4f}"))
    return cards


def _card(card: Card) -> str:
    name, value, more = map(_text, card)
    return f"<div class=card><span>{name}</span><b>{value}</b><small>{more}</small></div>"


def _short(section: Section) -> str:
    short = section.key.replace("-", " ").capitalize()
    return section.title if len(section.title) <= _SHORT else short


def _text(words: str) -> str:
    """Escape words, and keep a number and its percent sign on one line."""
    return escape(words).replace(" %", "\N{NO-BREAK SPACE}%")


def _section(section: Section) -> str:
    notes = "".join(f"<li>{_text(note)}</li>" for note in section.notes)
    plots = "".join(map(_plot, section.plots))
    return (
        f'<section id="{section.key}"><h2>{_text(section.title)}</h2>'
        f"<p class=lead>{_text(section.lead)}</p>"
        + (f"<ul class=notes>{notes}</ul>" if notes else "")
        + "".join(table.to_html(sortable=True) for table in section.tables)
        + _legend(section)
        + _picker(section)
        + (f"<div class=plots>{plots}</div>" if plots else "")
        + _numbers(section)
        + "</section>"
    )


def _plot(plot: Plot) -> str:
    """Return the place where the script draws; without one, the numbers stand for the chart."""
    wide = " wide" * plot.wide
    return (
        f'<figure class="plot{wide}"><figcaption title="{escape(plot.title)}">'
        f"{escape(cut(plot.title))}</figcaption>"
        f'<div class=chart data-figure="{escape(plot.name)}" style="height:{plot.height}px" '
        f'role=img aria-label="{escape(plot.title)}"></div></figure>'
    )


def _legend(section: Section) -> str:
    chips = "".join(
        f'<button type=button data-trace="{escape(name)}" aria-pressed={"true" if on else "false"}>'
        f"{_sample(color, dash)}"
        f'<span title="{escape(name)}">{escape(cut(name))}</span></button>'
        for name, color, dash, on in section.legend
    )
    return f"<div class=legend role=group aria-label=Legend>{chips}</div>" if chips else ""


def _picker(section: Section) -> str:
    """Return where the number of a point is typed, and what is said of it."""
    if not section.picks:
        return ""
    last = max(map(int, section.picks))
    return (
        f'<div class=picker data-picks="{escape(dumps(dict(section.picks)))}"><label>Point '
        f"<input type=number min=0 max={last} inputmode=numeric></label>"
        "<output>Click a dot, or type its number.</output></div>"
    )


def _sample(color: str, dash: str) -> str:
    """Return a piece of a line, or the sign of a mark."""
    if dash not in _LINES:
        return f'<b style="color:{_css(color)}">{escape(dash)}</b>'
    return f'<i style="border-top:3px {_LINES[dash]} {_css(color)}"></i>'


_LINES = {"solid": "solid", "dash": "dashed", "dot": "dotted"}


def _css(color: str) -> str:
    return f"var({color})" if color.startswith("--") else color


def _numbers(section: Section) -> str:
    """Return the numbers behind the charts, which the script folds away when it draws them."""
    tables = "".join(
        f"<h3>{escape(p.title)}</h3>{p.table.to_html(sortable=True)}" for p in section.plots
    )
    return (
        f"<details class=numbers open><summary>Numbers</summary>{tables}</details>"
        if tables
        else ""
    )


def _run(run: Run) -> str:
    seed = "–" if run.seed is None else str(run.seed)
    facts_of_run = {"seed": seed, "made": run.made, **run.versions}
    pairs = "".join(
        f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in facts_of_run.items()
    )
    return f"<pre><code>{escape(run.command)}</code></pre><dl>{pairs}</dl>"
