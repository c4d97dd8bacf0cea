"""Outcomes of a log: what metrics are given, whatever the kinds of its objectives."""

__all__ = ["best_terms", "outcomes_of", "outcomes_of_rows", "true_outcomes"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from harmonrank.data import Log, Schema
from harmonrank.data.kinds import LabelLevels
from harmonrank.fusion.kinds import Kinds, chances, terms_of
from harmonrank.metrics import Outcomes
from harmonrank.model.fit_rows import FitRows


def outcomes_of(log: Log, columns: Sequence[int] | None = None) -> Any:
    """Return the labels of a log, as an array where all objectives are plain events.

    Args:
        log: Read with labels.
        columns: Some objectives; all if left out.
    """
    labels = log.known_labels()
    if log.schema.plain:
        return labels if columns is None else labels[:, list(columns)]
    outcomes = Outcomes(labels, _graded(log), log.shown)
    return outcomes if columns is None else outcomes.columns(columns)


def outcomes_of_rows(rows: FitRows, schema: Schema) -> Any:
    """Return the labels of rows as a fit sees them, likewise."""
    if schema.plain:
        return rows.labels
    shown = None if rows.shares is None else rows.shares > 0
    return Outcomes(rows.labels, np.isin(schema.names, schema.graded), shown)


def true_outcomes(log: Log, columns: Sequence[int] | None = None) -> Any:
    """Return true chances likewise, which only a world knows.

    A row shows a conditional objective with the chance of what it is given, and a graded one has
    the equally likely values of its density.
    """
    assert log.truth is not None, "only a world knows"
    if log.schema.plain:
        return log.truth if columns is None else log.truth[:, list(columns)]
    names = log.schema.names
    draws = {names.index(name): density for name, density in log.draws.items()}
    shown = chances(log.schema, log.truth) if log.schema.given else None
    outcomes = Outcomes(log.truth, _graded(log), shown, draws)
    return outcomes if columns is None else outcomes.columns(columns)


def _graded(log: Log) -> np.ndarray:
    return np.isin(log.schema.names, log.schema.graded)


def best_terms(log: Log, weights: np.ndarray) -> np.ndarray:
    """Return t (rows, M) whose weighted sum is the best score that the truth is known to give.

    Plain events by eq. 1 of docs/objectives.md, which no order beats; graded and conditional ones
    by projections, eqs. 5, 7 and 11 of docs/objectives.md, which are best to first order only.
    """
    truth = true_outcomes(log)
    assert isinstance(truth, Outcomes)
    own = np.ones(log.rows) if log.own_weight is None else log.own_weight
    heads, pi = truth.values.astype(np.float64, copy=True), np.empty(truth.objectives)
    share = np.ones(truth.objectives)
    for m in range(truth.objectives):
        _, y, w = truth.one(m, own)
        share[m] = w.sum() / own.sum()
        if not truth.graded[m]:
            pi[m] = np.average(y, weights=w)
            continue
        levels = LabelLevels.of(y, w)
        density = truth.draws.get(m, truth.values[:, [m]])
        heads[:, m] = np.interp(density, levels.values, levels.mid_distribution()).mean(axis=1)
        pi[m] = levels.prevalence()
    terms = terms_of(log.schema, heads, pi, Kinds(share), weights)
    gains: np.ndarray = terms / (pi * (1 - pi))
    return gains
