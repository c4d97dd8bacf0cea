"""What every method must do, whatever it is: one claim per function."""

import tempfile
from pathlib import Path

import numpy as np
import polars as pl

import harmonrank as hr
from harmonrank.methods import method_class
from harmonrank.metrics import auc

_NETWORK = {"epochs": 3, "batch_rows": 500, "buckets": 10, "key_width": 4, "learning_rate": 0.1}
_SEARCH = {"trials": 12}

# Small enough that all claims of all methods take a minute.
SMALL = {
    "harmonrank-paper": _NETWORK,
    "mbce": _NETWORK,
    "label-aggregation": _NETWORK,
    "label-aggregation-optimal": _NETWORK,
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


def finds_a_planted_truth(name):
    test = planted(4000, seed=2)
    reached = auc(fitted(name).score(test), test.select("buy", "like").to_numpy())
    best = auc(test["p_buy"] / 0.16 + test["p_like"] / 0.24, test.select("buy", "like").to_numpy())
    # Half of the way from chance to about the best there is.
    assert reached.sum() - 1 > (best.sum() - 1) / 2


def does_not_care_for_the_order_of_rows(name):
    model, test = fitted(name), planted(500, seed=2)
    order = np.random.default_rng(0).permutation(500)
    np.testing.assert_array_equal(model.score(test[order]), model.score(test)[order])
    np.testing.assert_array_equal(model.score(test[:1]), model.score(test)[:1])


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
    model, test = fitted(name), planted(500, seed=2)
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
    model, test = fitted(name), planted(100, seed=2)
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
    schema = hr.Schema(SCHEMA.objectives, context=SCHEMA.context, sample_weight="weight")
    train, test = planted(), planted(4000, seed=2)
    model = fitted(name, schema, train)
    assert auc(model.score(test), test["like"].to_numpy()) > 0.55
    # A row of weight 0 is as good as removed: here, rows that say the opposite.
    lies = train.with_columns(buy=1 - pl.col("buy"), like=1 - pl.col("like"), weight=pl.lit(0.0))
    model = fitted(name, schema, pl.concat([train, lies]))
    assert auc(model.score(test), test["like"].to_numpy()) > 0.55


def does_without_an_objective_in_validation(name):
    valid = planted(1000, seed=1).with_columns(buy=pl.lit(0, pl.UInt8))
    test = planted(4000, seed=2)
    fused = fitted(name, valid=valid).score(test)
    assert np.isfinite(fused).all()
    assert auc(fused, test["like"].to_numpy()) > 0.55


CLAIMS = (
    finds_a_planted_truth,
    does_not_care_for_the_order_of_rows,
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
