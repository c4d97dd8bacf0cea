"""Relations: does attention between objectives resemble how they really relate?"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from harmonrank.metrics import spearman
from harmonrank.support import OnEvent
from harmonrank_lab.paper_tables._data import Data, StudyCell
from harmonrank_lab.paper_tables._study import PUBLISHED_METHOD, Experiment, Results, Study
from harmonrank_lab.paper_tables._table import PaperTable, Row, estimate_of, verdict

_LABELS, _LATENT, _ATTENTION = "labels (Spearman)", "true latent logits", "attention A_r"


class _Matrices(TypedDict):
    """Correlations, as JSON parts."""

    labels: list[list[float]]
    latent: list[list[float]] | None


@dataclass(frozen=True)
class RelationsCell(StudyCell):
    """How the labels of a seed's training rows correlate, and how the objectives truly do."""

    result = _Matrices

    data: Data = field(compare=False)
    seed: int

    @property
    def name(self) -> str:
        """Data and seed."""
        return f"{Path(self.data.name).name} relations seed={self.seed}"

    @property
    def place(self) -> tuple[Any, ...]:
        """Beside the fits on the same rows."""
        return (self.seed, self.data.name, len(self.data.objectives))

    def identity(self) -> dict[str, Any]:
        """Return data and seed."""
        return {"relations": self.data.identity(), "seed": self.seed}

    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:  # noqa: ARG002
        """Correlate."""
        train = self.data.logs(self.seed, self.data.objectives).train
        latent = self.data.latent_correlation()
        return {
            "labels": spearman(train.known_labels()).tolist(),
            "latent": None if latent is None else latent.tolist(),
        }


def _facts(study: Study) -> list[RelationsCell]:
    return [RelationsCell(study.data, seed) for seed in study.seeds]


def _likeness(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the correlation of both matrices' pairs, (seeds, 1); 0 where one has no spread."""
    upper = np.triu_indices(a.shape[1], k=1)
    correlations = []
    for one, other in zip(a, b, strict=True):
        x, y = (((m + m.T) / 2)[upper] for m in (one, other))
        flat = np.ptp(x) == 0 or np.ptp(y) == 0
        correlations.append([0.0 if flat else float(np.corrcoef(x, y)[0, 1])])
    return np.array(correlations)


class Relations(Experiment):
    """The published network's attention beside the correlations of its rows."""

    key = "relations"

    def cells(self, study: Study) -> list[StudyCell]:
        """Return the published method's fits and the facts of their rows."""
        return [*study.fits(PUBLISHED_METHOD), *_facts(study)]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return correlations between the matrices, and their means over seeds."""
        facts, fits = _facts(study), study.fits(PUBLISHED_METHOD)
        seen: dict[str, np.ndarray] = {_LABELS: np.array([results[c]["labels"] for c in facts])}
        if all(results[cell]["latent"] is not None for cell in facts):
            seen[_LATENT] = np.array([results[cell]["latent"] for cell in facts])
        if not results.error(fits):
            seen[_ATTENTION] = np.array([results[cell]["attention"] for cell in fits])
        group = f"{len(study.data.objectives)} objectives"
        pairs = ((_ATTENTION, _LABELS), (_ATTENTION, _LATENT), (_LABELS, _LATENT))
        likeness = {p: _likeness(*(seen[n] for n in p)) for p in pairs if {*p} <= {*seen}}
        rows = [
            Row(group, f"{a} and {b}", "correlation", None, estimate_of(values))
            for (a, b), values in likeness.items()
        ]
        claim, labels = "attention resembles the labels' correlations", (_ATTENTION, _LABELS)
        verdicts = [verdict(claim, likeness.get(labels), unit="correlation")]
        if _LATENT in seen:
            claim, latent = "attention resembles the true correlations", (_ATTENTION, _LATENT)
            true = likeness.get(latent)
            verdicts.append(verdict(claim, true, unit="correlation", source="ours"))
        # Labels and attention side by side, as the paper shows them.
        order = [name for name in (_LABELS, _ATTENTION, _LATENT) if name in seen]
        matrices = {name: seen[name].mean(axis=0).tolist() for name in order}
        return study.table(self.key, rows, verdicts, matrices=matrices)
