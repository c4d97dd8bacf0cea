"""AUC of five objectives in one sort, against a loop over scikit-learn's `roc_auc_score`."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from harmonrank.metrics import auc, auc_sum_interval, bootstrap_areas, grouped_auc
from harmonrank_lab.bench._peers import peer
from harmonrank_lab.bench._result import Case, Size, Timing, Work, measure

_PREVALENCES = [0.001, 0.02, 0.01, 0.03, 0.25]
_REQUEST_ROWS = 20


def cases(size: Size) -> Iterator[Case]:
    """The AUC of scores of three shapes, then what has no peer."""
    rows = size.metric_rows
    rng = np.random.default_rng(0)
    labels = (rng.random((rows, 5)) < _PREVALENCES).astype(np.uint8)
    logits = rng.normal(size=rows) + labels.sum(axis=1)
    probabilities = 1 / (1 + np.exp(3 - 2 * logits))
    shapes = {"logits": logits, "probabilities": probabilities}
    shapes["three digits"] = np.round(probabilities, 3)
    for shape, scores in shapes.items():
        yield Case(f"auc, {shape}", partial(_against_sklearn, scores, labels, size.seconds))
    requests = rng.integers(0, max(rows // _REQUEST_ROWS, 1), rows)
    alone: dict[str, Work] = {
        "grouped auc": lambda: grouped_auc(logits, labels, requests),
        "auc sum interval": lambda: auc_sum_interval(logits, labels, groups=requests),
        "bootstrap of 200": lambda: bootstrap_areas(logits, labels),
    }
    for name, run in alone.items():
        # The bootstrap repeats itself.
        least = 1 if "bootstrap" in name else 3
        yield Case(name, partial(measure, rows, {"ours": run}, size.seconds, least=least))


def _against_sklearn(scores: np.ndarray, labels: np.ndarray, seconds: float) -> Timing:
    work: dict[str, Work] = {"ours": lambda: auc(scores, labels)}
    sklearn = peer("sklearn.metrics")
    if sklearn is not None:
        work["scikit-learn"] = lambda: [sklearn.roc_auc_score(y, scores) for y in labels.T]
    return measure(len(scores), work, seconds)
