"""Pareto fronts: two objectives against each other as the weights of their losses move."""

from itertools import combinations

import numpy as np

from harmonrank.metrics import hypervolume
from harmonrank_lab.paper_tables import _table
from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import NAMES, Experiment, Results, Study, minus
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

_TRAINED = ("mbce", "harmonrank-paper")
_METHODS = (*_TRAINED, "harmonrank")
_CHANCE = (0.5, 0.5)
_MOST_PAIRS = 4

Pair = tuple[str, str]
Points = dict[str, np.ndarray | None]
"""By method: both AUCs (seeds, shares, 2)."""


def _pairs(study: Study) -> tuple[Pair, ...]:
    names = study.data.objectives
    pairs = tuple((first, second) for first, second in FIGURES["pairs"])
    if {name for pair in pairs for name in pair} <= set(names):
        return pairs
    return tuple(combinations(names, 2))[:_MOST_PAIRS]


def _weights(study: Study, pair: Pair) -> list[tuple[float, ...]]:
    """Return the weights of all objectives at each share; others than the pair have none."""
    shares = study.settings.shares
    both = [dict(zip(pair, (t, round(1 - t, 6)), strict=True)) for t in shares]
    return [tuple(each.get(name, 0.0) for name in study.data.objectives) for each in both]


def _trained(study: Study, method: str, pair: Pair) -> list[list[FitCell]]:
    """Return a fit per share and seed."""
    return [study.fits(method, weights=weights) for weights in _weights(study, pair)]


def _swept(study: Study) -> list[FitCell]:
    sweep = tuple(weights for pair in _pairs(study) for weights in _weights(study, pair))
    return study.fits("harmonrank", sweep=sweep)


def _trained_points(study: Study, results: Results, method: str, pair: Pair) -> np.ndarray | None:
    fits = _trained(study, method, pair)
    if any(results.error(each) for each in fits):
        return None
    columns = _columns(study, pair)
    areas = np.array([[results[cell]["auc"] for cell in each] for each in fits])
    return np.asarray(areas[:, :, columns].transpose(1, 0, 2))


def _swept_points(
    study: Study, results: Results, index: int, pair: Pair, what: str
) -> np.ndarray | None:
    fits, shares = _swept(study), len(study.settings.shares)
    if results.error(fits) or not all(results[cell][what] for cell in fits):
        return None
    part = slice(index * shares, (index + 1) * shares)
    return np.array([results[cell][what] for cell in fits])[:, part, _columns(study, pair)]


def _columns(study: Study, pair: Pair) -> list[int]:
    return [study.data.objectives.index(name) for name in pair]


def _volumes(points: np.ndarray | None) -> np.ndarray | None:
    """Return the hypervolume of each seed, (seeds, 1)."""
    if points is None:
        return None
    return np.array([[hypervolume(front, _CHANCE)] for front in points])


def _rows(group: str, points: Points, best: np.ndarray | None) -> list[Row]:
    ceiling = _volumes(best)
    rows = []
    for method, fronts in points.items():
        volumes = _volumes(fronts)
        both = _table.known_estimate(volumes), _table.known_estimate(minus(ceiling, volumes))
        rows.append(Row(group, NAMES[method], "hypervolume", None, *both))
    if ceiling is not None:
        rows.append(Row(group, "best possible", "hypervolume", None, _table.estimate_of(ceiling)))
    return rows


def _verdicts(group: str, points: Points) -> list[Verdict]:
    published, rival = points["harmonrank-paper"], points["mbce"]
    covers = minus(_volumes(published), _volumes(rival))
    margins = None
    if published is not None and rival is not None:
        each = zip(published, rival, strict=True)
        margins = np.array([[_dominance_margin(*both)] for both in each])
    ours = minus(_volumes(points["harmonrank"]), _volumes(published))
    claim = f"our default's front covers more than HarmonRank's, {group}"
    more = f"HarmonRank's front covers more than MBCE's, {group}"
    return [
        _table.verdict(more, covers, unit="hypervolume"),
        _table.verdict(f"HarmonRank's front dominates MBCE's, {group}", margins, unit="AUC"),
        _table.verdict(claim, ours, unit="hypervolume", source="ours"),
    ]


class Pareto(Experiment):
    """Fronts of a fit per pair, share and method; one fit of ours serves all."""

    key = "pareto"

    def cells(self, study: Study) -> list[StudyCell]:
        """Return a fit per pair, share and method; one of ours serves all."""
        cells: list[StudyCell] = []
        for method in _TRAINED:
            for pair in _pairs(study):
                cells += [cell for fits in _trained(study, method, pair) for cell in fits]
        return [*cells, *_swept(study)]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return hypervolumes, fronts and what becomes of the claims."""
        rows: list[Row] = []
        verdicts: list[Verdict] = []
        curves = {}
        for index, pair in enumerate(_pairs(study)):
            points = {m: _trained_points(study, results, m, pair) for m in _TRAINED}
            points["harmonrank"] = _swept_points(study, results, index, pair, "points")
            best = _swept_points(study, results, index, pair, "best")
            group = " – ".join(pair)
            rows += _rows(group, points, best)
            verdicts += _verdicts(group, points)
            shown = {**{NAMES[m]: p for m, p in points.items()}, "best possible": best}
            curves[group] = {n: p.mean(axis=0).tolist() for n, p in shown.items() if p is not None}
        facts = {"shares": ", ".join(f"{share:g}" for share in study.settings.shares)}
        return study.table(self.key, rows, verdicts, facts=facts, curves=curves)


def _dominance_margin(points: np.ndarray, others: np.ndarray) -> float:
    """Return by how much the front of `points` dominates that of `others`, to be maximised.

    The largest amount that could be added to every coordinate of the others so that each of them
    is still matched by some point: minus the additive ε indicator (Zitzler et al. 2003). Above 0
    every other point is beaten in all coordinates; below 0 some other point is not.

    >>> _dominance_margin(np.array([[3, 1], [1, 3]]), others=np.array([[2, 0], [0, 1]]))
    1.0
    >>> _dominance_margin(np.array([[3, 1], [1, 3]]), others=np.array([[2, 2]]))
    -1.0
    """
    gaps = (points[:, None] - others).min(axis=2)  # (points, others)
    return float(gaps.max(axis=0).min())
