"""Tables for a terminal of 80 columns."""

__all__ = ["leaderboard_table", "quality_table"]

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from harmonrank.evaluation import Leaderboard
from harmonrank.methods import Quality


def leaderboard_table(board: Leaderboard) -> RenderableType:
    """Return the leaderboard, with the ceiling on top where it is known."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("method", no_wrap=True)
    known = board.ceiling is not None
    columns = ["AUC-sum", "±", *(["regret"] if known else []), *board.objectives, "fit s"]
    for column in columns:
        table.add_column(column, justify="right", overflow="fold")
    if known:
        blanks = [""] * len(board.objectives)
        table.add_row("ceiling", f"{board.ceiling:.4f}", "", "0", *blanks, "", style="dim")
    for entry in board.entries:
        quality = entry.quality
        if quality is None:
            table.add_row(entry.name, Text("failed", style="red"))
            continue
        exact = quality.exact_auc_sum
        areas = quality.exact_auc or {name: v.estimate for name, v in quality.auc.items()}
        table.add_row(
            entry.name,
            f"{quality.auc_sum.estimate if exact is None else exact:.4f}",
            "" if exact is not None else f"{_reach(quality):.4f}",
            *([f"{quality.regret:.4f}"] if known else []),
            *(f"{areas[name]:.3f}".removeprefix("0") for name in board.objectives),
            f"{entry.fit_seconds:.1f}",
        )
    if known:
        table.columns[2].header = ""
    note = (
        "AUC by the world's true probabilities: no label noise. Regret: ceiling − AUC-sum."
        if known
        else "±: half of the 95 % interval."
    )
    failures = [Text(f"{e.name}: {e.error}", style="red") for e in board.entries if e.error]
    rows = f"{board.train_rows:,} training rows, {board.test_rows:,} test rows. "
    return Group(table, *failures, Text(rows + note, style="dim"))


def quality_table(quality: Quality) -> RenderableType:
    """Return the figures of one fused score, an objective per row."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", pad_edge=False)
    table.add_column("objective", no_wrap=True)
    for column in ("AUC", "95 % interval", "in request", "positives", "weight", "effective"):
        table.add_column(column, justify="right", no_wrap=True)
    for name, value in quality.auc.items():
        within = "" if quality.request_auc is None else f"{quality.request_auc[name]:.4f}"
        table.add_row(
            name,
            f"{value.estimate:.4f}",
            f"{value.low:.4f} – {value.high:.4f}",
            within,
            f"{quality.prevalence[name]:.3%}",
            f"{quality.weights[name]:g}",
            f"{quality.effective_weights[name]:.1%}",
        )
    total = quality.auc_sum
    table.add_row(
        "sum", f"{total.estimate:.4f}", f"{total.low:.4f} – {total.high:.4f}", style="bold"
    )
    notes = [f"{quality.rows:,} rows. Effective weight: w/(π(1−π)), the rarer the heavier."]
    if quality.regret is not None:
        notes.append(
            f"Ceiling {quality.ceiling:.4f}, reached {quality.exact_auc_sum:.4f} by true "
            f"probabilities: regret {quality.regret:.4f}."
        )
    return Group(table, *(Text(note, style="dim") for note in notes))


def _reach(quality: Quality) -> float:
    return (quality.auc_sum.high - quality.auc_sum.low) / 2
