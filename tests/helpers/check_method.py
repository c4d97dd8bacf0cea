"""What every method must do, whatever it is: one claim per function."""

import dataclasses
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import open_table
from harmonrank.fusion import method_class, score_file
from harmonrank.metrics import auc
from harmonrank.support import DataError

_NETWORK = {"epochs": 3, "batch_rows": 500, "buckets": 10, "key_width": 4, "learning_rate": 0.1}
_SEARCH = {"trials": 12}

# Small enough that all claims of all methods take a minute.
SMALL = {
    "harmonrank-paper": _NETWORK,
    "mbce": _NETWORK,
    "label-aggregation": {**_NETWORK, "epochs": 10},
    "label-aggregation-optimal": {**_NETWORK, "epochs": 10},
    "reinforce": {**_NETWORK, "epochs": 10, "weight_decay": 0.001, "sigma": 0.5},
    "pairwise-square": _NETWORK,
    "pairwise-logistic": _NETWORK,
    "aucm": _NETWORK,
    "formula-grid": _SEARCH,
    "formula-tpe": _SEARCH,
    "formula-cem": _SEARCH,
    "lightgbm": {"trees": 30, "leaves": (7,)},
}

SCHEMA = hr.Schema({"buy": "p_buy", "like": "p_like"}, context=["hour", "age"], request="request")


def planted(rows=2000, seed=0):
    """Return a log whose scores tell a lot about their labels."""
    rng = np.random.default_rng([seed, 0x9])
    z = rng.normal([-2.0, -0.5], 1.5, (rows, 2))
    scores = 1 / (1 + np.exp(-z))
    labels = (rng.random((rows, 2)) < scores).astype(np.uint8)
    columns = {"p_buy": scores[:, 0], "p_like": scores[:, 1], "buy": labels[:, 0]}
    return pl.DataFrame(
        {
            **columns,
            "like": labels[:, 1],
            "request": np.arange(rows) // 10,
            "hour": rng.integers(0, 6, rows),
            "age": rng.choice(["old", "young"], rows),
            "weight": rng.uniform(0.5, 2.0, rows),
        }
    )


def fitted(name, schema=SCHEMA, train=None, valid=None, seed=0):
    train = planted() if train is None else train
    valid = planted(1000, seed=1) if valid is None else valid
    return method_class(name)(**SMALL.get(name, {})).fit(train, schema, valid=valid, seed=seed)


@cache
def quick(name):
    """Return a model that claims share; none of them may change it."""
    return fitted(name)


def after_a_swap(table):
    """Return rows as they come after the upstream model of `like` was replaced."""
    odds = pl.col("p_like") / (1 - pl.col("p_like"))
    moved = (odds.log() * 1.6 - 1.0).exp()
    return table.with_columns(p_like=moved / (1 + moved))


def finds_a_planted_truth(name):
    test = planted(4000, seed=2)
    reached = auc(quick(name).score(test), test.select("buy", "like").to_numpy())
    best = auc(test["p_buy"] / 0.16 + test["p_like"] / 0.24, test.select("buy", "like").to_numpy())
    # Half of the way from chance to about the best there is.
    assert reached.sum() - 1 > (best.sum() - 1) / 2


def scores_a_row_the_same_among_any_rows(name):
    """All permutations, slices and concatenations, after an upstream change too."""
    model, rows = quick(name), 50_000
    table, others = after_a_swap(planted(rows, seed=2)), planted(30_000, seed=3)
    fused = model.score(table)
    rng = np.random.default_rng(0)
    order = rng.permutation(rows)
    np.testing.assert_array_equal(model.score(table[order]), fused[order])
    cuts = np.sort(rng.integers(0, rows, (4, 2)), axis=1).tolist()
    for low, high in [*cuts, [0, 1], [rows - 1, rows], [5, 2054], [100, 20_101]]:
        np.testing.assert_array_equal(model.score(table[low:high]), fused[low:high])
    joined = model.score(pl.concat([table[20_000:], others, table[:20_000]]))
    np.testing.assert_array_equal(joined[:30_000], fused[20_000:])
    np.testing.assert_array_equal(joined[30_000:60_000], model.score(others))
    np.testing.assert_array_equal(joined[60_000:], fused[:20_000])


def scores_a_row_the_same_by_every_way_in(name):
    """A table, a request, the best rows of each request, and files agree."""
    model, rows = quick(name), 50_000
    table = after_a_swap(planted(rows, seed=2)).with_row_index("row")
    fused = model.score(table)
    for context in ({"hour": 3, "age": "old"}, {"hour": 99, "age": None}):
        there = (pl.col("hour") == 3) & (pl.col("age") == "old")
        at = table.filter(there)["row"].to_numpy()[:1000]
        scores = table[at].select("p_buy", "p_like").to_numpy()
        changed = table[at].with_columns(
            hour=pl.lit(context["hour"]), age=pl.lit(context["age"], pl.String)
        )
        for count in (1, 7, len(at)):
            np.testing.assert_array_equal(
                model.score_request(scores[:count], context), model.score(changed)[:count]
            )
    best = model.rank(table, k=3)
    np.testing.assert_array_equal(best["fused"].to_numpy(), fused[best["row"].to_numpy()])
    with tempfile.TemporaryDirectory() as folder:
        source, output = Path(folder) / "in.parquet", Path(folder) / "out.arrow"
        table.write_parquet(source, row_group_size=7000)
        for target in (output, output.with_suffix(".parquet")):
            score_file(model, source, target)
            np.testing.assert_array_equal(open_table(target, ["fused"])["fused"].to_numpy(), fused)


def scores_rows_with_missing_scores(name):
    """Whole rows as if nothing were missing; the others the same among any rows, by every way."""
    model, rows = quick(name), 3000
    table, rng = after_a_swap(planted(rows, seed=2)), np.random.default_rng(0)
    lost = rng.random((rows, 2)) < 0.3
    lost[:3] = True  # all scores
    holes = table.with_columns(
        p_buy=pl.when(~pl.Series(lost[:, 0])).then("p_buy"),
        p_like=pl.when(~pl.Series(lost[:, 1])).then("p_like"),
    )
    whole = ~lost.any(axis=1)
    for fused, holed in [
        (model.score(table), model.score(holes)),
        (lambda m: (m.score(table), m.score(holes)))(model.recalibrated(holes, scores="all")),
    ]:
        assert np.isfinite(holed).all()
        np.testing.assert_array_equal(holed[whole], fused[whole])
    holed, order = model.score(holes), rng.permutation(rows)
    np.testing.assert_array_equal(model.score(holes[order]), holed[order])
    for low, high in [[0, 1], [7, 8], [5, 1205]]:
        np.testing.assert_array_equal(model.score(holes[low:high]), holed[low:high])
    for row in (0, int(np.flatnonzero(lost.sum(axis=1) == 1)[0])):
        one = holes[row].to_dicts()[0]
        context = {"hour": one["hour"], "age": one["age"]}
        for nothing in (None, float("nan")):
            scores = [[nothing if one[c] is None else one[c] for c in ("p_buy", "p_like")]]
            np.testing.assert_array_equal(model.score_request(scores, context), holed[[row]])
    assert model.drift(holes).columns[0].rows == rows - lost[:, 0].sum()
    with pytest.raises(DataError, match="null in row 0"):
        model.strict().score(holes)


def learns_from_rows_with_missing_scores(name):
    rng, test = np.random.default_rng(1), planted(4000, seed=2)

    def holed(table):
        kept = pl.Series(rng.random(len(table)) < 0.8)
        return table.with_columns(p_like=pl.when(kept).then("p_like"))

    model = fitted(name, train=holed(planted(800)), valid=holed(planted(400, seed=1)))
    assert auc(model.score(holed(test)), test.select("buy", "like").to_numpy()).sum() > 1.05
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = hr.load(Path(folder) / "model")
    holes = holed(test)
    np.testing.assert_array_equal(again.score(holes), model.score(holes))


def leaves_its_input_alone(name):
    train, valid, test = planted(), planted(1000, seed=1), planted(500, seed=2)
    copies = [table.clone() for table in (train, valid, test)]
    log = hr.data.read_log(train, SCHEMA)
    scores, labels = log.scores.copy(), log.labels.copy()
    fitted(name, train=log, valid=valid).score(test)
    np.testing.assert_array_equal(log.scores, scores)
    np.testing.assert_array_equal(log.labels, labels)
    for table, copy in zip((train, valid, test), copies, strict=True):
        assert table.equals(copy)


def is_the_same_once_saved_and_loaded(name):
    model, test = quick(name), planted(500, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = hr.load(Path(folder) / "model")
    np.testing.assert_array_equal(again.score(test), model.score(test))
    assert again.config == model.config
    assert again.effective_weights == model.effective_weights


def is_the_same_for_the_same_seed(name):
    test = planted(500, seed=2)
    np.testing.assert_array_equal(
        fitted(name, seed=3).score(test), fitted(name, seed=3).score(test)
    )


def scores_context_never_seen(name):
    model, test = quick(name), planted(100, seed=2)
    strange = test.with_columns(hour=pl.lit(99), age=pl.lit("ageless"))
    missing = test.with_columns(hour=pl.lit(None, pl.Int64), age=pl.lit(None, pl.String))
    assert np.isfinite(model.score(strange)).all()
    np.testing.assert_array_equal(model.score(strange), model.score(missing))


def works_with_one_objective_and_no_context(name):
    schema, test = hr.Schema({"buy": "p_buy"}), planted(4000, seed=2)
    model = fitted(name, schema)
    assert auc(model.score(test), test["buy"].to_numpy()) > 0.6
    assert method_class(name)(**SMALL.get(name, {})).fit(planted(), schema).score(test).std() > 0


def heeds_sample_weights(name):
    schema = dataclasses.replace(SCHEMA, sample_weight="weight")
    train, valid, test = planted(), planted(1000, seed=1), planted(4000, seed=2)
    model = fitted(name, schema, train, valid)
    fused = model.score(test)
    assert auc(fused, test["like"].to_numpy()) > 0.55
    # A row of weight 0 is as good as removed: here, rows that say the opposite, in odd contexts.
    lies = {name: 1 - pl.col(name) for name in ("buy", "like", "p_buy", "p_like")}
    train, valid, measured = (
        pl.concat([rows.with_columns(**lies, hour=pl.lit(23, pl.Int64), weight=pl.lit(0.0)), rows])
        for rows in (train, valid, test)
    )
    again = fitted(name, schema, train, valid)
    np.testing.assert_array_equal(again.score(test), fused)
    assert again.drift(measured) == model.drift(test)
    assert again.evaluate(measured) == model.evaluate(test)
    recalibrated = (model.recalibrated(rows, scores="all").score(test) for rows in (test, measured))
    np.testing.assert_array_equal(*recalibrated)


def does_without_an_objective_in_validation(name):
    valid = planted(1000, seed=1).with_columns(buy=pl.lit(0, pl.UInt8))
    test = planted(4000, seed=2)
    fused = fitted(name, valid=valid).score(test)
    assert np.isfinite(fused).all()
    assert auc(fused, test["like"].to_numpy()) > 0.55


CLAIMS = (
    finds_a_planted_truth,
    scores_a_row_the_same_among_any_rows,
    scores_a_row_the_same_by_every_way_in,
    scores_rows_with_missing_scores,
    learns_from_rows_with_missing_scores,
    leaves_its_input_alone,
    is_the_same_once_saved_and_loaded,
    is_the_same_for_the_same_seed,
    scores_context_never_seen,
    works_with_one_objective_and_no_context,
    heeds_sample_weights,
    does_without_an_objective_in_validation,
)


def check_method(name):
    """Hold a method to every claim."""
    for claim in CLAIMS:
        claim(name)
