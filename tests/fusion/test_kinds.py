"""Graded and conditional objectives: what methods learn of them and how they fuse them."""

from functools import cache

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from check_method import SMALL
from harmonrank.data import read_log
from harmonrank.data.kinds import LabelLevels
from harmonrank.fusion import installed_methods, method_class
from harmonrank.fusion.kinds import LabelTargets
from harmonrank.metrics import concordance
from harmonrank.support import DataError, UsageError
from kinds_log import SCHEMA, planted

TAKE = (
    *("harmonrank", "logistic", "closed-form", "prevalence-weights", "lightgbm"),
    *("formula-grid", "formula-tpe", "formula-cem"),
)


def test_a_log_knows_which_rows_show_an_objective_and_what_its_labels_are():
    log = read_log(planted(), SCHEMA)
    click = planted()["click"].to_numpy()
    assert (log.shown[:, 1] == click).all()
    assert log.shown[:, [0, 2, 3]].all()
    assert (log.labels[~click, 1] == 0).all()
    assert log.labels[:, 2].max() > 100
    share = planted()["order"].drop_nulls().mean()
    assert log.prevalence()[1] == pytest.approx(share)
    assert 0.4 < log.prevalence()[2] < 0.5  # ½ but for ties
    part = log.take(np.arange(10))
    assert part.shown.shape == (10, 4)
    assert log.aligned(SCHEMA.subset(["watch", "report"])).shown.all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"graded": ["wach"]}, "`graded` names an unknown objective 'wach'. Did you mean 'watch'"),
        ({"given": {"order": "clik"}}, "`given` names an unknown objective 'clik'"),
        ({"given": {"order": "watch"}}, "'order' cannot be given 'watch', which is graded"),
        ({"given": {"order": "click", "click": "order"}}, "goes round in a circle"),
        ({"position": "place"}, "Feedback cannot be corrected for `position`"),
    ],
)
def test_kinds_that_cannot_be_meant_are_refused(change, sentence):
    with pytest.raises(UsageError, match=sentence):
        hr.Schema.from_dict(SCHEMA.to_dict() | change)


def test_a_schema_of_kinds_is_the_same_after_toml(tmp_path):
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    assert hr.Schema.read(tmp_path / "schema.toml") == SCHEMA
    with pytest.raises(UsageError, match="'order' is shown only given 'click'; name 'click' too"):
        SCHEMA.subset(["order", "watch"])


def test_labels_that_a_kind_does_not_allow_are_refused_and_hidden_ones_not_looked_at():
    hidden = planted().with_columns(order=pl.col("order").fill_null(7))
    assert (read_log(hidden, SCHEMA).labels == read_log(planted(), SCHEMA).labels).all()
    shown = planted().with_columns(order=pl.when(pl.col("click")).then(None).otherwise(1))
    with pytest.raises(DataError, match="Label column 'order' .*must be 0 or 1. Got null"):
        read_log(shown, SCHEMA)
    endless = planted().with_columns(watch=pl.lit(float("inf")))
    with pytest.raises(DataError, match="Label column 'watch' .*must be a finite number. Got inf"):
        read_log(endless, SCHEMA)
    never = planted().with_columns(order=pl.lit(0))
    with pytest.raises(DataError, match="'order' has no two different labels among the .* that sh"):
        hr.ClosedForm().fit(never, SCHEMA)


def test_what_heads_learn_of_a_graded_label_is_its_place_among_all():
    log = read_log(planted(), SCHEMA)
    levels = {"watch": LabelLevels.of(log.labels[:, 2], None)}
    targets = LabelTargets.of(levels).of_log(log)
    u, y = targets.labels[:, 2], log.labels[:, 2]
    assert u.mean() == pytest.approx(0.5)
    for row in (0, 17, 400):
        assert u[row] == pytest.approx((y < y[row]).mean() + 0.5 * (y == y[row]).mean())
    scores = np.random.default_rng(0).normal(size=len(u))
    assert concordance(scores, u) == pytest.approx(concordance(scores, y))


@cache
def fitted(name):
    model = method_class(name)(**SMALL.get(name, {}))
    return model.fit(planted(), SCHEMA, valid=planted(2000, seed=1))


@pytest.mark.parametrize("name", TAKE)
def test_methods_rank_by_all_kinds_at_once(name, tmp_path):
    model = fitted(name)
    quality = model.evaluate(planted(4000, seed=2))
    areas = {key: interval.estimate for key, interval in quality.auc.items()}
    assert areas["click"] > 0.55
    assert areas["order"] > 0.4  # it pulls against clicks
    assert areas["watch"] > 0.55
    assert areas["report"] < 0.45
    assert "watch is graded" in str(quality)
    assert "order is given click" in str(quality)
    model.save(tmp_path / "m")
    again = hr.load(tmp_path / "m")
    assert (again.score(planted(500, seed=3)) == model.score(planted(500, seed=3))).all()
    assert again.evaluate(planted(4000, seed=2)).to_dict() == quality.to_dict()


NETWORKS = sorted(set(installed_methods()) - set(TAKE))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_method_that_cannot_says_so(name):
    sentence = f"^{name} cannot learn objectives that are shown only given 'click', such as 'order'"
    with pytest.raises(UsageError, match=sentence):
        method_class(name)(**SMALL.get(name, {})).fit(planted(), SCHEMA)


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_learn_graded_objectives_by_the_place_of_a_label(name):
    schema = SCHEMA.subset(["watch", "report"])
    model = method_class(name)(**SMALL.get(name, {}))
    model.fit(planted(), schema, valid=planted(2000, seed=1))
    quality = model.evaluate(planted(4000, seed=2))
    assert quality.auc["watch"].estimate > 0.55
    assert quality.auc["report"].estimate < 0.5


@pytest.mark.parametrize("name", ["harmonrank", "logistic", "closed-form", "lightgbm"])
def test_expected_labels_are_in_their_own_units(name):
    rows = planted(4000, seed=2)
    expected = fitted(name).probabilities(rows)
    order = np.argsort(expected[:, 2])
    watch = rows["watch"].to_numpy()
    for part in np.array_split(order, 4):
        assert expected[part, 2].mean() == pytest.approx(watch[part].mean(), rel=0.25)
    clicked = rows["click"].to_numpy()
    share = rows["order"].drop_nulls().mean()
    assert expected[clicked, 1].mean() == pytest.approx(share, abs=0.05)


def test_a_conditional_head_is_that_of_the_rows_which_show_it():
    plain = hr.Schema({"order": "p_order"}, context=["age"])
    clicked = planted().filter(pl.col("click"))
    alone = hr.ClosedForm().fit(clicked, plain)
    both = hr.ClosedForm().fit(
        planted(), hr.Schema(SCHEMA.objectives, given={"order": "click"}, graded=["watch"])
    )
    rows = planted(500, seed=3)
    np.testing.assert_allclose(both.probabilities(rows)[:, 1], alone.probabilities(rows)[:, 0])
    model = fitted("harmonrank")
    own = hr.HarmonRank().fit(clicked, plain).probabilities(rows)[:, 0]
    assert np.abs(model.probabilities(rows)[:, 1] - own).mean() < 0.05


def test_labels_of_rows_that_do_not_show_them_teach_nothing():
    other = planted().with_columns(order=pl.col("order").fill_null(1))
    again = hr.HarmonRank().fit(other, SCHEMA, valid=planted(2000, seed=1))
    rows = planted(500, seed=3)
    assert (again.score(rows) == fitted("harmonrank").score(rows)).all()


def test_parts_of_a_score_add_up_to_it():
    model, rows = fitted("harmonrank"), planted(300, seed=3)
    for options in ({}, {"weights": {"order": 3}}, {"value": {"click": 1, "watch": 0.01}}):
        parts = model.contributions(rows, **options)
        np.testing.assert_allclose(parts.sum(axis=1), model.score(rows, **options), rtol=1e-12)


def test_values_count_what_is_expected_of_a_row():
    model, rows = fitted("harmonrank"), planted(300, seed=3)
    click, order, watch, _ = model.probabilities(rows).T
    worth = model.score(rows, value={"click": 1, "order": 20, "watch": 0.01})
    np.testing.assert_allclose(worth, click + 20 * click * order + 0.01 * watch)
    one = model.score_request(
        rows.select("p_click", "p_order", "p_watch", "p_report").to_numpy()[:1],
        {"age": rows["age"][0]},
        value={"click": 1, "order": 20, "watch": 0.01},
    )
    assert one[0] == pytest.approx(worth[0])


def test_alone_a_conditional_objective_is_ranked_by_its_own_chance():
    model, rows = fitted("harmonrank"), planted(300, seed=3)
    zero = dict.fromkeys(["click", "watch", "report"], 0)
    alone = model.score(rows, weights=zero)
    expected = model.probabilities(rows)[:, 1]
    assert (np.argsort(alone) == np.argsort(expected)).all()


def test_missing_scores_are_averaged_over_for_every_kind():
    rng = np.random.default_rng(0)
    holes = planted().with_columns(
        p_watch=pl.when(pl.Series(rng.random(4000) < 0.2)).then(None).otherwise(pl.col("p_watch"))
    )
    model = hr.HarmonRank().fit(holes, SCHEMA)
    quality = model.evaluate(planted(4000, seed=2))
    whole = fitted("harmonrank").evaluate(planted(4000, seed=2))
    assert quality.auc_sum.estimate == pytest.approx(whole.auc_sum.estimate, abs=0.02)
