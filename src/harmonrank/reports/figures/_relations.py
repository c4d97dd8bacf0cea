"""Charts of how objectives relate: correlations and attention."""

__all__ = ["attention_methods", "correlation_plots"]

from harmonrank.reports.facts import Facts
from harmonrank.reports.figures._common import heatmap
from harmonrank.reports.plots import Plot

# Attention that is nowhere farther from 1/M than this, relative to it, tells nothing.
_UNIFORM = 0.05


def correlation_plots(facts: Facts) -> list[Plot]:
    """Labels beside attention, then scores and true probabilities, each an M × M heatmap."""
    data, names = facts.data, list(facts.board.objectives)
    matrices = [
        ("labels", "Labels (Spearman)", data.label_correlation),
        ("scores", "Scores (Spearman)", data.score_correlation),
        ("truth", "True probabilities (Spearman)", data.truth_correlation),
    ]
    plots = [heatmap(names, n, t, m, "diverging") for n, t, m in matrices if len(m) > 1]
    for name in attention_methods(facts):
        title = f"Attention of {name}"
        matrix = facts.methods[name].attention
        plots.insert(1, heatmap(names, f"attention-{name}", title, matrix, "sequential"))
    return plots


def attention_methods(facts: Facts) -> list[str]:
    """Return the method whose attention is shown, if there is one that is not uniform."""
    told = [
        name
        for name, method in facts.methods.items()
        if any(abs(len(row) * share - 1) > _UNIFORM for row in method.attention for share in row)
    ]
    # Networks that learn by other losses have it too; the published method speaks for them.
    return ["harmonrank-paper"] if "harmonrank-paper" in told else told[:1]
