"""Tables for a terminal of 80 columns."""

__all__ = ["explanation_table", "leaderboard_table", "quality_table"]

from collections.abc import Mapping
from math import isnan

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harmonrank.evaluation import Entry, Leaderboard
from harmonrank.methods import Quality

_WIDTH = 80
_SHORTEST = 5
# Spaces that a right-justified cell keeps.
_TIE, _PAD = "\u00a0=", "\u00a0\u00a0"
_SHOWN = {
    "weight": "{:g}",
    "prevalence": "{:.3%}",
    "effective_weight": "{:.1%}",
    "noise_share": "{:.0%}",
}


def leaderboard_table(board: Leaderboard) -> RenderableType:
    """Return the leaderboard, with the ceiling on top where it is known.

    Names of objectives are cut to what fits; where not even that does, their columns are left out.
    """
    known = board.ceiling is not None
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("method", no_wrap=True)
    for column in ("AUC-sum" + _PAD, "regret" if known else "behind"):
        table.add_column(column, justify="right", no_wrap=True)
    room = _room(board)
    shown = board.objectives if room else ()
    for name in shown:
        # What is_click and is_comment have in common is the first to go.
        heading = name if len(name) <= room else name.removeprefix("is_")
        table.add_column(heading, justify="right", no_wrap=True, max_width=room)
    table.add_column("fit s", justify="right", no_wrap=True)
    if known:
        blanks = [""] * len(shown)
        table.add_row("ceiling", f"{board.ceiling:.4f}{_PAD}", "0", *blanks, "", style="dim")
    for entry in board.entries:
        table.add_row(*_cells(entry, shown))
    return Group(table, *_notes(board, shown))


def _room(board: Leaderboard) -> int:
    """Return how wide the column of an objective may be; 0 if even the shortest is too wide."""
    free = _WIDTH - _fixed(board)

    def needed(room: int) -> int:
        return sum(1 + min(max(len(name), _SHORTEST), room) for name in board.objectives)

    return max((room for room in range(_SHORTEST, _WIDTH) if needed(room) <= free), default=0)


def _fixed(board: Leaderboard) -> int:
    seconds = max([5, *(len(f"{entry.fit_seconds:.1f}") for entry in board.entries)])
    names = max([7, *(len(entry.name) for entry in board.entries)])
    return names + 1 + len("AUC-sum   ") + len("regret ") + seconds


def _cells(entry: Entry, shown: tuple[str, ...]) -> list[str | Text]:
    quality = entry.quality
    if quality is None:
        return [entry.name, Text("failed", style="red")]
    exact = quality.exact_auc_sum
    areas = quality.exact_auc or {name: v.estimate for name, v in quality.auc.items()}
    gap = entry.behind.estimate if quality.regret is None and entry.behind else quality.regret
    return [
        entry.name,
        f"{quality.auc_sum.estimate if exact is None else exact:.4f}{_TIE if entry.tied else _PAD}",
        "" if gap is None else f"{gap:.4f}",
        *(f"{areas[name]:.3f}".removeprefix("0") for name in shown),
        f"{entry.fit_seconds:.1f}",
    ]


def _notes(board: Leaderboard, shown: tuple[str, ...]) -> list[Text]:
    failures = [Text(f"{e.name}: {e.error}", style="red") for e in board.entries if e.error]
    lines = [f"{board.train_rows:,} training rows, {board.test_rows:,} test rows."]
    if board.ceiling is None:
        lines.append("Behind: AUC-sum of the first − AUC-sum.")
    else:
        lines.append("AUC by true probabilities: no label noise. Regret: ceiling − AUC-sum.")
    if sum(entry.tied for entry in board.entries) > 1:
        lines.append("=: the test labels cannot tell it from the first (paired bootstrap, 95 %).")
    lines += [entry.note for entry in board.entries if entry.note]
    if not shown:
        lines.append("The AUC of each objective does not fit here; --json has it.")
    return [*failures, *(Text(line, style="dim") for line in lines)]


def explanation_table(method: str, facts: Mapping[str, Mapping[str, float]]) -> RenderableType:
    """Return the facts of each objective, an objective per row."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("objective", no_wrap=True, max_width=19)
    for fact in facts:
        table.add_column(fact.replace("_", " "), justify="right")
    for name in facts["weight"]:
        table.add_row(name, *(_SHOWN.get(f, "{:.3f}").format(v[name]) for f, v in facts.items()))
    note = "Effective weight: w/(π(1−π)), what a unit of probability counts."
    return Group(Text(f"Method: {method}"), table, Text(note, style="dim"))


def quality_table(quality: Quality) -> RenderableType:
    """Return the figures of one fused score, an objective per row."""
    long = max(len(name) for name in quality.auc) > 13
    table = Table(box=None, padding=(0, 2 - long, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("objective", no_wrap=True, max_width=19)
    within = quality.request_auc
    columns = ["AUC", "95 % interval", "in request", "positives", "weight", "effective"]
    for column in columns if within is not None else [c for c in columns if c != "in request"]:
        table.add_column(column, justify="right", no_wrap=True)
    for name, value in quality.auc.items():
        table.add_row(
            name,
            _number(value.estimate),
            f"{_number(value.low)} – {_number(value.high)}",
            *([] if within is None else [_number(within[name])]),
            f"{quality.prevalence[name]:.3%}",
            f"{quality.weights[name]:g}",
            f"{quality.effective_weights[name]:.1%}",
        )
    total = quality.auc_sum
    reach = f"{_number(total.low)} – {_number(total.high)}"
    table.add_row("sum", _number(total.estimate), reach, style="bold")
    notes = [f"{quality.rows:,} rows. Effective weight: w/(π(1−π)), the rarer the heavier."]
    if quality.regret is not None:
        notes.append(
            f"Ceiling {quality.ceiling:.4f}, reached {quality.exact_auc_sum:.4f} by true "
            f"probabilities: regret {quality.regret:.4f}."
        )
    return Group(table, *(Text(note, style="dim") for note in notes))


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.4f}"
