"""Users who come back in many small requests: their requests are not independent."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.evaluation.entry import drawn_of
from harmonrank.fusion import method_class
from harmonrank.metrics import auc, grouped_auc
from harmonrank.model.fit_rows import cut_rows, drawn_requests
from harmonrank.model.linear.averaging import request_folds, requests_of
from harmonrank.registry.guardrails import change_of, request_change_of
from harmonrank.support.logistic import sigmoid

SCHEMA = hr.Schema({"a": "p_a", "b": "p_b"}, ["region"], "request", user="user_id")


def visits(users, seed):
    """Ten requests of four rows of each user, whose taste no column tells; regions mean nothing."""
    rng = np.random.default_rng(seed)
    user, request = np.repeat(np.arange(users), 40), np.repeat(np.arange(users * 10), 4)
    z = rng.normal(size=(len(user), 2)) - [1.5, 2.0]
    taste, slope = rng.normal(0, 1.0, (users, 2)), 1 + rng.normal(0, 0.4, (users, 2))
    labels = rng.random(z.shape) < sigmoid(z * slope[user] + taste[user])
    rows = pl.DataFrame(
        {
            "user_id": user,
            "request": request,
            "region": rng.integers(0, 60, users)[user].astype(str),
            "p_a": sigmoid(z[:, 0]),
            "p_b": sigmoid(z[:, 1]),
            "a": labels[:, 0].astype(int),
            "b": labels[:, 1].astype(int),
        }
    )
    # Users come back all over the log.
    when = rng.permutation(users * 10)[request]
    return rows[np.argsort(when, kind="stable")]


@pytest.fixture(scope="module")
def table():
    return visits(150, 0)


def reached(name, train, test):
    """Return the AUC-sums within requests and over all rows."""
    scores, labels = (
        method_class(name)().fit(train, SCHEMA, seed=1).score(test),
        test.select("a", "b").to_numpy(),
    )
    within = grouped_auc(scores, labels, test["request"].to_numpy()).sum()
    return np.array([within, auc(scores, labels).sum()])


@pytest.mark.parametrize("users", [150, 400])
def test_what_few_users_share_does_no_harm_to_others(users):
    gaps = []
    for redraw in range(4):
        rows = visits(users, redraw), visits(1500, 100 + redraw)
        ours, *others = (reached(n, *rows) for n in ("harmonrank", "logistic", "closed-form"))
        gaps.append(ours - np.max(others, axis=0))
    assert np.mean(gaps, axis=0).min() > -0.002, gaps
    assert np.min(gaps) > -0.01, gaps


def test_intervals_are_as_wide_as_users_differ(table):
    score = table["p_a"].to_numpy() + table["p_b"].to_numpy()
    other = score * (1 + table["user_id"].to_numpy() % 4)  # ranks some users above others
    by_user, by_request = (
        read_log(table, replace(SCHEMA, user=user)) for user in ("user_id", None)
    )

    def widths(log):
        """Return those of the AUCs over all rows, and of a change of one."""
        drawn = np.std(drawn_of(other, log, 2)["all rows"], axis=0)
        moved = change_of(other, score, log, 0)
        return np.array([*drawn, moved.high - moved.low])

    assert (widths(by_user) > 1.3 * widths(by_request)).all()


def test_every_interval_is_by_user(table):
    """A request that is asked ten times by its user tells no more than once."""
    schema = replace(SCHEMA, user="request")
    again = pl.concat([table.with_columns(pl.col("request") + 10_000 * k) for k in range(10)])
    again = again.with_columns(user=pl.col("request") % 10_000)
    logs = read_log(table, schema), read_log(again, replace(SCHEMA, user="user"))
    ends = []
    for log in logs:
        score = log.scores[:, 0] + log.scores[:, 1]
        other = log.scores[:, 0]
        quality = hr.ClosedForm().fit(log, log.schema).evaluate(log, value={"a": 1.0})
        moved = change_of(score, other, log, 0), request_change_of(score, other, log, 0)
        intervals = (*moved, quality.auc_sum, quality.requests.auc_sum, quality.value.interval)
        drawn = drawn_of(score, log, 2)
        spread = [np.std(drawn[by], axis=0) for by in drawn]
        ends.append(np.concatenate([[i.high - i.low for i in intervals], *spread]))
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6)


def test_a_user_is_in_one_fold_and_later_folds_are_later():
    user = np.repeat(np.arange(60), 50)[np.random.default_rng(0).permutation(3000)]
    user = np.sort(user.reshape(2, -1), axis=1).reshape(-1)  # half of the users' rows come again
    arrays = np.zeros((3000, 1)), np.empty((3000, 0), np.int32), np.zeros((3000, 1))
    (rows,) = cut_rows(*arrays, request=np.arange(3000))
    rows = replace(rows, user=user)
    fold = request_folds(requests_of(rows))
    assert all(len(np.unique(fold[user == u])) == 1 for u in range(60))
    first, _, last = (np.flatnonzero(fold == k).mean() for k in range(3))
    assert first < last


def test_whole_users_are_drawn():
    user = np.arange(9000) % 300
    arrays = np.zeros((9000, 1)), np.empty((9000, 0), np.int32), np.zeros((9000, 1))
    blocks = cut_rows(*arrays, request=np.arange(9000), size=2000)
    blocks = blocks.made(lambda block: replace(block, user=user[block.first :][: block.rows]))
    some = drawn_requests(blocks, 9000, 3000)
    assert 1500 < some.rows < 6000
    assert (np.unique(some.user, return_counts=True)[1] == 30).all()


@pytest.mark.parametrize(
    ("request_column", "expected"),
    [
        ("request", [1.0359768118325277, 2.4273998897776514, 1.5019045682469228]),
        (None, [1.0658169091053387, 2.483845987216206, 1.5582333249231322]),
    ],
)
def test_a_schema_without_a_user_means_what_it_meant(request_column, expected):
    """The scores are those of the release before users could be named."""
    rng = np.random.default_rng(5)
    request = np.repeat(np.arange(1000), 6)
    z = rng.normal(size=(6000, 2)) - 1.5
    mood = rng.normal(size=(1000, 1))[request]
    labels = rng.random(z.shape) < sigmoid(z + mood)
    region = rng.integers(0, 40, 1000)[request].astype(str)
    columns = {"request": request, "region": region, "p_a": sigmoid(z[:, 0])}
    columns |= {"p_b": sigmoid(z[:, 1]), "a": labels[:, 0], "b": labels[:, 1]}
    rows = pl.DataFrame(columns)
    schema = replace(SCHEMA, user=None, request=request_column)
    scores = hr.HarmonRank().fit(rows, schema, seed=1).score(rows)
    np.testing.assert_allclose(scores[:4500:1500], expected, rtol=1e-9)


def test_users_of_one_request_each_are_tried_as_requests_are():
    request = np.sort(np.random.default_rng(0).integers(0, 90, 600))
    arrays = np.zeros((600, 2)), np.empty((600, 0), np.int32), np.zeros((600, 2))
    (rows,) = cut_rows(*arrays, request=request)
    known = replace(rows, user=request)
    np.testing.assert_array_equal(requests_of(known), requests_of(rows))


def test_a_fit_in_blocks_knows_users_too(table, tmp_path):
    table.write_parquet(tmp_path / "log.parquet")
    blocks = FileBlocks(tmp_path / "log.parquet", SCHEMA)
    scores = [hr.HarmonRank().fit(rows, SCHEMA, seed=1).score(table) for rows in (table, blocks)]
    np.testing.assert_array_equal(*scores)
    blind = hr.HarmonRank().fit(table, replace(SCHEMA, user=None), seed=1).score(table)
    assert not np.array_equal(blind, scores[0])
