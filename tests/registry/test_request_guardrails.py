"""Guardrails look within requests, where a ranking changes something."""

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Schema, read_log
from harmonrank.fusion import method_class
from harmonrank.registry import Guardrails, Registry
from harmonrank.registry.guardrails import change_of, request_change_of
from logs import small_table
from reference import auc_by_pairs

SCHEMA = Schema({"buy": "p_buy", "like": "p_like"}, request="request_id")


@pytest.fixture(scope="module")
def log():
    return read_log(small_table(400), SCHEMA)


@pytest.fixture(scope="module")
def pair(log):
    """Return new and old scores of the rows."""
    noise = np.random.default_rng(1).normal(0, 0.3, (2, log.rows))
    return tuple(log.scores.sum(axis=1) + noise)


def test_the_change_and_its_error_are_those_of_a_loop_over_requests(log, pair):
    shares, changes = [], []
    for each in np.unique(log.request):
        here = log.request == each
        new, old = (auc_by_pairs(s[here], log.labels[here, 0], np.ones(here.sum())) for s in pair)
        if not np.isnan(new):
            shares.append(here.sum())
            changes.append(new - old)
    shares, changes = np.array(shares) / np.sum(shares), np.array(changes)
    change = request_change_of(*pair, log, 0, level=0.95)
    mean, n = shares @ changes, len(changes)
    error = np.sqrt(n / (n - 1) * ((shares * (changes - mean)) ** 2).sum())
    assert 20 < n < 40
    assert change.estimate == pytest.approx(mean, abs=1e-12)
    # Student's quantile of about 35 requests, which differs from the normal one by some per cent.
    assert change.high - mean == pytest.approx(2.03 * error, rel=0.01)


def test_what_a_whole_request_gets_changes_nothing(log, pair):
    factor = np.random.default_rng(2).lognormal(0, 2, log.request.max() + 1)[log.request]
    new, old = (score - score.min() + 0.1 for score in pair)
    plain = request_change_of(new, old, log, 1)
    assert request_change_of(new * factor, old, log, 1) == plain
    assert request_change_of(new, old * factor, log, 1) == plain
    assert change_of(new * factor, old, log, 1) != change_of(new, old, log, 1)


def test_only_the_order_within_requests_refuses_a_version(tmp_path):
    """A version that knows nothing of users but ranks as well within requests is accepted."""
    rng = np.random.default_rng(3)
    level, p = rng.integers(0, 4, 300).repeat(10), rng.beta(2, 5, 3000)
    odds = p / (1 - p) * np.exp(2.0 * level - 3)
    buys = rng.random(3000) < odds / (1 + odds)
    table = pl.DataFrame({"request_id": np.arange(3000) // 10, "level": level, "p_buy": p})
    table = table.with_columns(buy=pl.Series(buys.astype(int)))
    roomy = Guardrails(tolerance=0.02, calibration=None, shift=None, scale=None)
    checks = {}
    for request in ("request_id", None):
        schema = Schema({"buy": "p_buy"}, context=("level",), request=request)
        shuffled = table.with_columns(level=pl.Series(rng.permutation(level)))
        registry = Registry.create(tmp_path / str(request), roomy)
        registry.publish(method_class("logistic")().fit(table, schema), table)
        version = registry.publish(method_class("logistic")().fit(shuffled, schema), table)
        (checks[request],) = [check for check in version.checks if check.name == "auc buy"]
    assert checks[None].passed is False
    assert checks[None].sentence.startswith("AUC changes by -0.")
    assert checks["request_id"].passed is True
    assert checks["request_id"].sentence.startswith("AUC within requests changes by")
    assert "; over all rows by -0." in checks["request_id"].sentence


def test_an_objective_without_a_usable_request_is_held_over_all_rows(tmp_path):
    table = small_table(600)
    single = table.with_columns(request_id=pl.int_range(pl.len()))
    model = hr.ClosedForm().fit(single, Schema({"buy": "p_buy"}, request="request_id"))
    registry = Registry.create(tmp_path / "r", Guardrails(tolerance=0.05, calibration=None))
    registry.publish(model, single)
    (check,) = [c for c in registry.publish(model, single).checks if c.name == "auc buy"]
    assert check.sentence.startswith("no request has both labels, so AUC over all rows counts; it")


def test_a_rise_of_what_is_unwanted_is_the_harm(tmp_path):
    table, rules = small_table(2000, 6), Guardrails(0.0, calibration=None, shift=None, scale=None)
    registry = Registry.create(tmp_path / "r", rules)
    for weight, passed in ((-3.0, None), (-5.0, True), (-0.1, False)):
        schema = Schema(
            {"buy": "p_buy", "like": "p_like"},
            weights={"like": -weight},
            request="request_id",
            unwanted=("like",),
        )
        version = registry.publish(hr.ClosedForm().fit(table, schema), table)
        passes = [check.passed for check in version.checks if check.name == "auc like"]
        assert passes == ([] if passed is None else [passed])
