import numpy as np
import pytest
import torch

from check_method import SCHEMA, SMALL, planted
from harmonrank.data import read_log
from harmonrank.fusion import method_class
from harmonrank.metrics import auc
from harmonrank.model.fit_rows import cut_rows
from harmonrank.paper.methods.network_losses import Wanted, auc_sums
from harmonrank.paper.methods.network_losses import loss_of as network_loss
from harmonrank.paper.training import Arrays
from harmonrank.support import UsageError


def fitted(name, **options):
    method = method_class(name)(**{**SMALL[name], **options})
    return method.fit(planted(), SCHEMA, valid=planted(1000, seed=1))


def loss_of(name, **options):
    """Return the loss of a method on planted rows."""
    method, log = method_class(name)(**options), read_log(planted(), SCHEMA)
    rows = cut_rows(log.scores, np.empty((log.rows, 0), np.int32), log.labels, size=log.rows)[0]
    return network_loss(method.config, Wanted(rows, np.ones(2), log.prevalence()), "cpu")


@pytest.mark.parametrize(("values", "power"), [("plain", 0), ("optimal", 1)])
def test_aggregated_labels_have_unit_variance_and_the_right_ratio(values, power):
    result = loss_of("label-aggregation", values=values).values.numpy()
    labels = planted().select("buy", "like").to_numpy()
    assert (labels @ result).std() == pytest.approx(1)
    pi = labels.mean(0)
    ratio = (pi * (1 - pi)) ** -power
    np.testing.assert_allclose(result / result[0], ratio / ratio[0])


def test_the_optimal_entry_of_the_catalogue_is_the_optimal_option():
    test = planted(500, seed=2)
    np.testing.assert_array_equal(
        fitted("label-aggregation-optimal").score(test),
        fitted("label-aggregation", values="optimal").score(test),
    )


def test_the_inner_problem_of_aucm_moves_to_its_saddle():
    loss = loss_of("aucm", inner_rate=0.5)
    scores = torch.tensor([1.0, 0.0, 2.0, -1.0])
    labels = torch.tensor([[1, 0], [0, 0], [1, 0], [0, 0]])
    loss.memory["a"][:] = 0.3
    before = {name: value.clone() for name, value in loss.memory.items()}
    loss(scores, Arrays(scores[:, None], labels, labels))
    # A rate of one half goes all the way: a = μ⁺, b = μ⁻, α = [margin − Δμ]₊.
    assert loss.memory["a"][0] == pytest.approx(1.5)
    assert loss.memory["b"][0] == pytest.approx(-0.5)
    assert loss.memory["alpha"][0] == 0
    # The second objective has no positive here and keeps what it had.
    for name in ("a", "b", "alpha"):
        assert loss.memory[name][1] == before[name][1]


def test_a_policy_gradient_agrees_with_the_reward_it_climbs():
    loss = loss_of("reinforce", draws=4000, sigma=1.0)
    loss.weights = torch.ones(1)
    rng = np.random.default_rng(0)
    labels = torch.from_numpy((rng.random((40, 1)) < 0.4).astype(np.uint8))
    scores = torch.from_numpy(rng.normal(size=40)).requires_grad_()
    batch = Arrays(labels, labels, labels)
    loss(scores, batch).loss.backward()
    slope = -scores.grad.numpy()
    positive = labels[:, 0].numpy() > 0
    # To raise a positive or lower a negative is rewarded.
    assert slope[positive].mean() > 0 > slope[~positive].mean()
    assert np.corrcoef(slope, positive)[0, 1] > 0.8


def test_a_reward_is_the_auc_sum():
    rng = np.random.default_rng(0)
    labels = (rng.random((50, 3)) < [0.1, 0.5, 0.0]).astype(np.uint8)
    draws, w, v = rng.normal(size=(4, 50)), np.array([2.0, 1.0, 1.0]), rng.uniform(0, 2, 50)
    for weight in (None, v):
        expected = [np.nansum(w * (auc(d, labels, sample_weight=weight) - 0.5)) for d in draws]
        np.testing.assert_allclose(auc_sums(draws, labels, w, weight), expected, atol=1e-12)


def test_a_batch_that_shows_no_objective_gives_a_policy_no_gradient():
    loss = loss_of("reinforce")
    labels = torch.zeros((10, 2), dtype=torch.uint8)
    scores = torch.linspace(0, 1, 10).requires_grad_()
    loss(scores, Arrays(labels, labels, labels)).loss.backward()
    np.testing.assert_array_equal(scores.grad, 0)


@pytest.mark.parametrize(
    ("name", "option", "message"),
    [
        ("reinforce", {"draws": 1}, "'draws' of reinforce must be a whole number from 2"),
        ("reinforce", {"sigma": 0.0}, "'sigma' of reinforce must be a number above 0"),
        ("aucm", {"inner_rate": 0.6}, "'inner_rate' of aucm must be a number above 0 up to 0.5"),
        ("logistic", {"ridges": ()}, "'ridges' .* must be a list, each a number above 0"),
        ("lightgbm", {"leaves": (1,)}, "'leaves' .* a list, each a whole number from 2"),
        ("lightgbm", {"trees": 0}, "'trees' .* a whole number from 1"),
    ],
)
def test_what_cannot_be_meant_is_refused(name, option, message):
    with pytest.raises(UsageError, match=message):
        method_class(name)(**option)


@pytest.mark.parametrize("name", ["logistic", "lightgbm", "closed-form", "prevalence-weights"])
def test_weights_can_be_changed_after_the_fit(name):
    method = method_class(name)(**SMALL.get(name, {}))
    method.fit(planted(), SCHEMA, valid=planted(1000, seed=1))
    test = planted(4000, seed=2)
    even, buy = (method.evaluate(test, weights=w) for w in (None, {"like": 0.0}))
    assert buy.auc["buy"].estimate > even.auc["buy"].estimate + 0.02
    assert buy.auc["like"].estimate < even.auc["like"].estimate - 0.02


def test_a_score_that_never_changes_is_no_trouble():
    train = planted().with_columns(p_like=0.3)
    method = method_class("logistic")().fit(train, SCHEMA)
    assert method.evaluate(train).auc["buy"].estimate > 0.7


def test_a_logistic_shrunk_without_end_is_the_closed_form():
    train, test = planted(), planted(500, seed=2)
    shrunk = method_class("logistic")(ridges=(1e9,)).fit(train, SCHEMA, valid=train)
    closed = method_class("closed-form")().fit(train, SCHEMA, valid=train)
    np.testing.assert_allclose(shrunk.score(test), closed.score(test), rtol=1e-3)
