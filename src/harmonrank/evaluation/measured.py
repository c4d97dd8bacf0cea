"""The leaderboard of one model that was fitted before, beside what ranks today."""

__all__ = ["measured"]

from collections.abc import Mapping
from dataclasses import replace

from harmonrank.data import Source, read_log
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.entry import Entry, entry_of
from harmonrank.evaluation.leaderboard import Leaderboard, leaderboard_of
from harmonrank.fusion import Method
from harmonrank.fusion.drift.drift import Drift
from harmonrank.fusion.position.correction import corrected


def measured(
    model: Method,
    table: Source,
    *,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    k: int = 10,
    baseline: Baseline | None = None,
    drift: Drift | None = None,
) -> Leaderboard:
    """Measure a fitted model on a table that has labels.

    Args:
        model: Recalibrated already, if it is to be.
        table: With labels.
        weights: Other objective weights, for methods that can change them after the fit.
        value: What an event is worth, in place of weights, for methods with probabilities.
        k: Value at how many of a request, where events have values.
        baseline: What ranks today; the differences to it are then resampled.
        drift: Of the scores since the fit, to be kept with the result.
    """
    merged = model.schema.weights_with(weights)
    named = dict(zip(model.schema.names, merged.tolist(), strict=True))
    log = corrected(read_log(table, model.schema))
    log.require_both_classes("evaluated")
    rows = log.counted()
    fused = model.score(rows, weights=weights, value=value)
    quality = model.measured(fused, rows, weights, value, k=k)
    entries = [Entry(model.name, None, quality)]
    if baseline is not None:
        worth = model.schema.values_with(value)
        today = baseline.entry(log, merged, model.prevalence, worth, k)
        entries = [entry_of(model.name, fused, rows, quality), today]
    weighted = replace(rows, schema=replace(model.schema, weights=named, value={}))
    return leaderboard_of(
        None, weighted, entries, drift, baseline=baseline, encoder=model.fitted.encoder
    )
