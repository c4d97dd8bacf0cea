"""A request with odd arguments is scored or refused in one sentence, by every method."""

import datetime
from decimal import Decimal

import numpy as np
import pytest

from check_method import fitted
from harmonrank.support import HarmonRankError

METHODS = (
    "harmonrank", "harmonrank-paper", "logistic", "lightgbm", "closed-form",
    "prevalence-weights", "formula-cem",
)  # fmt: skip
GOOD = np.full((3, 2), 0.1)
CONTEXT = {"hour": 3, "age": "old"}
SCORES = [
    None, 1, "x", b"x", {}, set(), object(), iter([1]), [], [[]], [[0.1]], [[0.1, 0.2], [0.1]],
    [["a", "b"]], [[None, 0.1]], [[1 + 2j, 0.1]], [[2, 0.1]], [[float("nan"), 0.1]],
    [[True, False]], [[10**400, 0]], [[2**70, 0]], [[np.float32(0.1), Decimal(1)]],
    np.array([[0.1, 0.2]], object), np.full((3, 3), 0.1), np.full((3, 2, 1), 0.1), np.array(0.1),
    np.empty((0, 2)), GOOD.astype(np.float16), GOOD.astype(np.longdouble), GOOD[:, ::-1],
    np.array([["2020-01-01"] * 2], "M8[D]"), np.ma.masked_array(GOOD, GOOD > 0),
]  # fmt: skip
VALUES = [
    None, 1, True, 1.5, -0.0, float("nan"), float("inf"), 10**30, 10**5000, 2**63, -(2**70), 1 + 2j,
    "x", "", "\x00", "\ud800", "é", "x" * 10**6, b"\xff", [], [1], (1, 2), {}, {"a": 1}, set(),
    range(3), object(), float, ..., Decimal(1), datetime.datetime(2020, 1, 1),
    datetime.timedelta(1), np.int64(3), np.float32(3), np.float16(2), np.bool_(True),
    np.str_("old"), np.void(b"a"), np.datetime64("2020-01-01"), np.array(3), np.array([1, 2]),
]  # fmt: skip
CONTEXTS = [
    None, 1, "x", [], {}, {"hour": 3}, {**CONTEXT, "more": 1}, [("hour", 3)], {1: 2}, {None: None},
    *({**CONTEXT, "hour": value} for value in VALUES),
    *({**CONTEXT, "age": value} for value in VALUES),
]  # fmt: skip
WEIGHTS = [
    1, "x", [], {}, [("buy", 1)], {1: 2}, {"bay": 1}, {"buy": 0, "like": 0},
    *({"buy": value} for value in [*VALUES, -1, 1e308, 10**400, 1e-320]),
]  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_a_request_with_odd_arguments_is_scored_or_refused(name):
    method = fitted(name)
    cases = [(scores, CONTEXT, None) for scores in SCORES]
    cases += [(GOOD, context, None) for context in CONTEXTS]
    cases += [(GOOD, CONTEXT, weights) for weights in WEIGHTS]
    for scores, context, weights in cases:
        assert answer(method, scores, context, weights) is None


def answer(method, scores, context, weights):
    """Return what is wrong with the answer, or None."""
    try:
        fused = method.score_request(scores, context, weights=weights)
    except HarmonRankError as error:
        return None if len(str(error)) < 300 and "\n" not in str(error) else str(error)
    return None if np.isfinite(fused).all() else fused
