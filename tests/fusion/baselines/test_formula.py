import sys
from dataclasses import replace

import numpy as np
import pytest

from check_method import SCHEMA, planted
from harmonrank.data import read_log
from harmonrank.fusion import method_class
from harmonrank.fusion.baselines.formula import FORMS, Formula, Scale, thinned
from harmonrank.metrics import auc
from harmonrank.model.fit_rows import cut_rows
from harmonrank.support import DependencyError, UsageError

NAMES = ("formula-grid", "formula-cem", "formula-tpe")


@pytest.fixture
def log():
    return read_log(planted(), SCHEMA)


def rows_of(log):
    return cut_rows(log.scores, np.empty((log.rows, 0), np.int32), log.labels, size=500)


def scale_of(log):
    return Scale.of(rows_of(log), log.rows)


def fused(form, log, log_a=(0.0, 0.0), log_b=(0.0, 0.0)):
    scale = scale_of(log)
    formula = Formula(form, np.array(log_a), np.array(log_b))
    return formula(log.scores, scale.rank(log.scores), scale, np.ones(2))


def test_a_sum_adds_scores_in_units_of_their_mean(log):
    np.testing.assert_allclose(fused("sum", log), (log.scores / log.scores.mean(0)).sum(1))


def test_a_product_is_taken_as_logarithms(log):
    unit = log.scores / log.scores.mean(0)
    expected = np.log((unit[:, 0] + 2.0) * (unit[:, 1] + 3.0) ** 0.5)
    given = fused("product", log, np.log([1, 0.5]), np.log([2.0, 3.0]))
    np.testing.assert_allclose(given, expected)


@pytest.mark.parametrize("form", FORMS)
def test_only_ratios_of_the_weights_count(form, log):
    np.testing.assert_allclose(
        fused(form, log, (1.0, 2.0)), fused(form, log, (0.0, 1.0)), rtol=1e-12
    )


def test_a_sum_does_not_change_with_the_scale_of_a_score(log):
    scaled = replace(log, scores=log.scores * np.array([0.01, 1.0]))
    np.testing.assert_allclose(fused("sum", scaled), fused("sum", log))


def test_ranks_on_new_rows_follow_the_training_quantiles(log):
    scale = scale_of(log)
    ranks = scale.rank(log.scores)
    exact = (log.scores[:, None] > log.scores[None]).mean(1)
    assert np.abs(ranks - exact).max() < 2e-3
    outside = scale.rank(np.array([[0.0, 0.0], [1.0, 1.0]]))
    np.testing.assert_array_equal(outside, [[0, 0], [1, 1]])
    # A row's rank does not depend on which rows are ranked with it.
    np.testing.assert_array_equal(scale.rank(log.scores[:1]), ranks[:1])


def test_a_score_that_many_rows_share_ranks_in_their_middle(log):
    scores = log.scores.copy()
    scores[:1000, 0] = 0.0
    ranks = scale_of(replace(log, scores=scores)).rank(scores)
    np.testing.assert_allclose(ranks[:1000, 0], 0.25, atol=0.01)
    assert (np.diff(ranks[np.argsort(scores[:, 0]), 0]) >= 0).all()


def test_a_sample_of_rows_keeps_the_aucs(log):
    pi = log.prevalence()
    some = thinned(rows_of(log), log.rows, pi, 800, np.random.default_rng(0))
    assert 700 < some.rows < 900
    score = log.scores[:, 0]
    for m, value in enumerate(auc(score, log.labels)):
        area = auc(some.scores[:, 0], some.labels[:, m], sample_weight=some.weight)
        assert abs(area - value) < 0.04
    share = some.weights() @ some.labels / some.weights().sum()
    np.testing.assert_allclose(share, pi, rtol=0.15)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_a_search_beats_the_even_formula_on_its_rows(name, form, log):
    # The second score is noise, so the best weight of it is as small as can be.
    noise = np.random.default_rng(0).random(log.rows)
    log = replace(log, scores=np.stack([log.scores[:, 0], noise], axis=1))
    method = method_class(name)(trials=60, forms=(form,))
    method.fit(log, replace(SCHEMA, weights={"like": 0.0}), valid=log)
    formula = method.state.formula
    assert formula.log_a[0] > formula.log_a[1]
    area = auc(method.score(log), log.labels)[0]
    assert area > auc(fused(form, log), log.labels)[0] + 0.02


class Values:
    """What a search asks, answered by a function."""

    def __init__(self, function):
        self.function = function

    def __call__(self, formula):
        return self.function(formula)

    def each(self, formulas):
        return [self.function(formula) for formula in formulas]


@pytest.mark.parametrize("name", NAMES)
def test_a_search_tries_as_many_formulas_as_asked(name, log):
    tried = []
    method = method_class(name)(trials=37)

    def evaluate(formula):
        tried.append(formula)
        return float(len(tried) % 5)

    list(method.config.search("product", 4, Values(evaluate), np.random.default_rng(0)))
    assert len(tried) <= 37 + 10
    assert all(len(formula.log_a) == len(formula.log_b) == 4 for formula in tried)


def test_a_grid_of_many_objectives_is_a_sample_of_it(log):
    method = method_class("formula-grid")(trials=20)
    tried = list(method.config.search("sum", 30, Values(lambda _: 0.0), np.random.default_rng(0)))
    assert 20 <= len(tried) < 100


def test_what_cannot_be_searched_is_refused():
    with pytest.raises(UsageError, match="'forms' .* a list, each 'sum' or 'product' or 'rank'"):
        method_class("formula-grid")(forms=("quotient",))
    with pytest.raises(UsageError, match="'trials' .* a whole number from 1 .* Got 0"):
        method_class("formula-cem")(trials=0)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("formula-tpe", "optuna", "search"), ("lightgbm", "lightgbm", "lightgbm")],
)
def test_a_missing_package_is_named_with_its_extra(name, package, extra, log, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(DependencyError, match=rf"pip install 'harmonrank\[{extra}\]'"):
        method_class(name)().fit(log, SCHEMA)
