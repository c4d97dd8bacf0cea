"""Results as Markdown tables, for a pull request."""

__all__ = ["leaderboard_markdown", "markdown_table", "quality_markdown"]

from collections.abc import Sequence

from harmonrank.evaluation import Entry, Leaderboard
from harmonrank.methods import Quality
from harmonrank.metrics import Interval


def leaderboard_markdown(board: Leaderboard) -> str:
    """Return the leaderboard as a Markdown table with what its columns mean."""
    known = board.ceiling is not None
    gap = "regret" if known else "behind"
    head = ["method", "AUC-sum", "95 % interval", gap, *board.objectives, "fit s"]
    rows = [_entry(entry, board) for entry in board.entries]
    if known:
        blanks = [""] * (len(board.objectives) + 1)
        rows.insert(0, ["*ceiling*", f"{board.ceiling:.4f}", "", "0", *blanks])
    notes = [f"{board.train_rows:,} training rows, {board.test_rows:,} test rows."]
    notes.append(
        "AUC-sum and AUCs by true probabilities, intervals by test labels; regret: ceiling − "
        "AUC-sum."
        if known
        else "Behind: AUC-sum of the first − AUC-sum."
    )
    if sum(entry.tied for entry in board.entries) > 1:
        notes.append("=: the test labels cannot tell it from the first (paired bootstrap, 95 %).")
    notes += [_safe(entry.note) for entry in board.entries if entry.note]
    notes += [f"{_safe(e.name)} failed: {_safe(e.error)}" for e in board.entries if e.error]
    return "\n\n".join([markdown_table(head, rows), "  \n".join(notes)])


def _entry(entry: Entry, board: Leaderboard) -> list[str]:
    quality = entry.quality
    if quality is None:
        return [entry.name, "failed", *[""] * (len(board.objectives) + 3)]
    exact = quality.exact_auc_sum
    areas = quality.exact_auc or {name: v.estimate for name, v in quality.auc.items()}
    gap = quality.regret
    if gap is None and entry.behind is not None:
        gap = entry.behind.estimate
    total = f"{quality.auc_sum.estimate if exact is None else exact:.4f}"
    return [
        entry.name,
        total + " =" * entry.tied,
        _range(quality.auc_sum),
        "" if gap is None else f"{gap:.4f}",
        *(f"{areas[name]:.3f}" for name in board.objectives),
        f"{entry.fit_seconds:.1f}",
    ]


def quality_markdown(quality: Quality) -> str:
    """Return the figures of one fused score as a Markdown table, an objective per row."""
    head = ["objective", "AUC", "95 % interval", "positives", "weight", "effective"]
    rows = [
        [
            name,
            f"{value.estimate:.4f}",
            _range(value),
            f"{quality.prevalence[name]:.3%}",
            f"{quality.weights[name]:g}",
            f"{quality.effective_weights[name]:.1%}",
        ]
        for name, value in quality.auc.items()
    ]
    total = quality.auc_sum
    rows.append(["**sum**", f"**{total.estimate:.4f}**", _range(total), "", "", ""])
    notes = [f"{quality.rows:,} rows. Effective weight: w/(π(1−π)), the rarer the heavier."]
    if quality.regret is not None:
        notes.append(
            f"Ceiling {quality.ceiling:.4f}, reached {quality.exact_auc_sum:.4f} by true "
            f"probabilities: regret {quality.regret:.4f}."
        )
    return "\n\n".join([markdown_table(head, rows), "  \n".join(notes)])


def _range(interval: Interval) -> str:
    return f"{interval.low:.4f} – {interval.high:.4f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    r"""Return a table whose first columns are text and whose others are numbers.

    >>> print(markdown_table(["a", "b"], [["x|y", "1"]]))
    | a | b |
    |---|--:|
    | x\|y | 1 |
    """
    lines = [f"| {' | '.join(map(_safe, row))} |" for row in [head, *rows]]
    rule = f"|{'---|' * texts}{'--:|' * (len(head) - texts)}"
    return "\n".join([lines[0], rule, *lines[1:]])


def _safe(text: str | None) -> str:
    return (text or "").replace("|", "\\|").replace("\n", " ")
