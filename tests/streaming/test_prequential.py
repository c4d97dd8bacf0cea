from dataclasses import replace

import msgspec
import numpy as np
import pytest
from batches import SCHEMA, batch

from harmonrank.fusion import method_class, quality_of
from harmonrank.metrics import (
    auc,
    auc_intervals,
    auc_sum_interval,
    grouped_auc_intervals,
)
from harmonrank.streaming import Prequential
from harmonrank.streaming.learners.prequential import ScoredBatch
from harmonrank.support import DataError

WEIGHTED = replace(SCHEMA, weights={"buy": 2.0, "comment": 0.5})


class Scorer:
    """Stands for a model: its scores are the sum of a row's scores, on a scale of its own."""

    def __init__(self, scale=1.0, shift=0.0):
        self.scale, self.shift = scale, shift

    def score(self, log):
        return self.scale * log.scores.sum(axis=1) + self.shift


def window_of(batches, window=24, scale=lambda number: 1.0):
    result = Prequential(window)
    for number, rows in enumerate(batches):
        result = result.scored(Scorer(scale(number), number), rows)
    return result


def test_one_batch_has_the_aucs_and_intervals_of_the_metrics():
    rows = batch(0, 20_000)
    window = window_of([rows]).quality(WEIGHTED)
    fused = Scorer().score(rows)
    expected = auc_intervals(fused, rows.labels, groups=rows.request)[0]
    for value, ends, same in zip(
        window.auc.values(), window.auc_ci.values(), expected, strict=True
    ):
        assert value == pytest.approx(same.estimate, abs=1e-12)
        assert ends == pytest.approx((same.low, same.high), abs=1e-12)
    weights = WEIGHTED.weight_vector
    same = auc_sum_interval(fused, rows.labels, objective_weights=weights, groups=rows.request)
    assert (window.auc_sum, *window.ci) == pytest.approx(
        (same.estimate, same.low, same.high), abs=1e-12
    )


def test_within_requests_a_window_is_all_its_requests_as_one_table():
    batches = [batch(number, rows) for number, rows in enumerate((9000, 15_000, 12_000))]
    quality = window_of(batches).quality(WEIGHTED).requests
    fused = np.concatenate([Scorer().score(rows) for rows in batches])
    labels = np.concatenate([rows.labels for rows in batches])
    request = np.concatenate([10**6 * n + rows.request for n, rows in enumerate(batches)])
    w = WEIGHTED.weight_vector
    each, total = grouped_auc_intervals(fused, labels, request, objective_weights=w)
    assert list(quality.auc.values()) == pytest.approx([one.estimate for one in each], abs=1e-12)
    assert quality.auc_sum == pytest.approx(total.estimate, abs=1e-12)
    for (low, high), one in zip(
        [*quality.auc_ci.values(), quality.ci], [*each, total], strict=True
    ):
        assert high - low == pytest.approx(one.high - one.low, rel=0.02)
    alone = window_of(batches[:1]).quality(WEIGHTED).requests
    part = slice(batches[0].rows)
    each, _ = grouped_auc_intervals(fused[part], labels[part], request[part])
    ends = [end for pair in alone.auc_ci.values() for end in pair]
    assert ends == pytest.approx([end for i in each for end in (i.low, i.high)], abs=1e-12)


def test_what_a_model_gives_to_whole_requests_has_no_part_within_them():
    class Levels(Scorer):
        def score(self, log):
            return super().score(log) + 9 * np.sin(log.request)

    rows = batch(0, 9000)
    plain, moved = (
        Prequential().scored(each, rows).quality(SCHEMA) for each in (Scorer(), Levels())
    )
    assert moved.requests == plain.requests
    assert moved.auc["like"] < plain.auc["like"] - 0.02
    assert moved.requests.exact_auc is None


def test_a_batch_of_an_earlier_release_is_read_and_has_no_requests():
    rows = batch(0, 900)
    (known,) = window_of([rows]).batches
    old = msgspec.to_builtins(known)
    del old["requests"]
    old = msgspec.convert(old, ScoredBatch)
    assert Prequential(24, (old,)).check(SCHEMA).quality(SCHEMA).requests is None
    both = Prequential(24, (old, known)).quality(SCHEMA)
    assert both.requests == window_of([rows]).quality(SCHEMA).requests
    single = replace(rows, request=np.arange(rows.rows))
    assert window_of([single]).quality(SCHEMA).requests is None
    wrong = msgspec.structs.replace(known.requests, weight=known.requests.weight[1:])
    with pytest.raises(DataError, match="one per objective"):
        Prequential(24, (msgspec.structs.replace(known, requests=wrong),)).check(SCHEMA)


def test_a_window_is_the_chance_that_a_positive_outranks_a_negative_of_its_batch():
    """By brute force over pairs, each batch counted by its van Elteren weight."""
    batches = [batch(number, rows) for number, rows in enumerate((900, 1500, 1200))]
    quality = window_of(batches).quality(SCHEMA)
    m = SCHEMA.names.index("like")
    total = weights = 0.0
    for rows in batches:
        fused, y = Scorer().score(rows), rows.labels[:, m].astype(bool)
        above = fused[y][:, None] > fused[~y]
        ties = fused[y][:, None] == fused[~y]
        weight = y.sum() * (~y).sum() / len(y)
        total += weight * (above + 0.5 * ties).mean()
        weights += weight
    assert quality.auc["like"] == pytest.approx(total / weights, abs=1e-12)
    assert quality.rows == 3600
    assert quality.batches == 3


def test_the_scale_of_each_model_has_no_part_in_it():
    batches = [batch(number, 3000) for number in range(3)]
    plain = window_of(batches).quality(SCHEMA)
    scaled = window_of(batches, scale=lambda number: 10.0**number).quality(SCHEMA)
    assert scaled == plain


def test_the_interval_covers_what_it_should():
    """Over many windows of small batches, around the mean of many rows."""
    m = SCHEMA.names.index("long_view")
    rows = batch(0, 200_000)
    requests = np.unique(rows.request)
    rng = np.random.default_rng(0)
    truth = auc(Scorer().score(rows), rows.labels)[m]
    hits = 0
    for _ in range(60):
        batches = []
        for _ in range(4):
            chosen = rng.choice(requests, 100, replace=False)
            batches.append(rows.take(np.flatnonzero(np.isin(rows.request, chosen))))
        low, high = window_of(batches).quality(SCHEMA).auc_ci["long_view"]
        hits += low <= truth <= high
    assert 51 <= hits <= 60


def test_the_window_slides():
    batches = [batch(number, 1500) for number in range(5)]
    window = window_of(batches, window=3)
    assert window.quality(SCHEMA) == window_of(batches[2:], window=3, scale=lambda _: 2.0).quality(
        SCHEMA
    )


def test_exact_aucs_and_their_ceiling_are_those_of_an_evaluation():
    rows = batch(0, 9000)
    model = method_class("closed-form")().fit(batch(1), SCHEMA)
    window = Prequential().scored(model, rows).quality(SCHEMA)
    same = quality_of(model.score(rows), rows, SCHEMA.weight_vector)
    assert window.exact_auc == pytest.approx(same.exact_auc, abs=1e-12)
    assert window.exact_auc_sum == pytest.approx(same.exact_auc_sum, abs=1e-12)
    assert window.ceiling == pytest.approx(same.ceiling, abs=1e-12)
    mixed = Prequential().scored(model, rows).scored(model, replace(rows, truth=None))
    assert mixed.quality(SCHEMA).exact_auc is None


def test_a_batch_of_one_class_or_one_request_leaves_the_window_as_it_was():
    rows = batch(0, 9000)
    before = window_of([rows]).quality(SCHEMA)
    m = SCHEMA.names.index("buy")
    none = rows.take(np.flatnonzero(rows.labels[:, m] == 0))
    after = window_of([rows, none]).quality(SCHEMA)
    assert after.auc["buy"] == before.auc["buy"]
    assert after.auc["like"] != before.auc["like"]
    lonely = rows.take(np.flatnonzero(rows.request == rows.request[0]))
    assert window_of([rows, lonely]).quality(SCHEMA).auc == before.auc
    only = window_of([none]).quality(SCHEMA)
    assert only.auc["buy"] is only.auc_sum is None
    assert only.auc["like"] > 0.5


def test_without_a_batch_there_is_nothing_to_say():
    assert Prequential().quality(SCHEMA) is None
    assert Prequential().scored(Scorer(), batch(0, 10).take(np.arange(0))) == Prequential()


def test_what_is_not_of_this_schema_is_refused():
    with pytest.raises(DataError, match="must have 2 numbers, one per objective"):
        window_of([batch(0, 900)]).check(SCHEMA.subset(["buy", "like"]))
