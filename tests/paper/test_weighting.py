import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from check_method import SCHEMA, SMALL, planted
from harmonrank.fusion import method_class
from harmonrank.paper.training.weightings import min_norm_weights, raise_the_last
from harmonrank.support.events import EpochEnded

# The policy gradient needs more steps than a test of its weights should take; a network with heads
# of its own needs no weights in training.
NEURAL = [
    name
    for name, options in SMALL.items()
    if "epochs" in options and name not in ("reinforce", "harmonrank-network")
]


@pytest.mark.parametrize("seed", range(20))
def test_the_smallest_combination_is_the_smallest(seed):
    rng = np.random.default_rng(seed)
    M = int(rng.integers(1, 7))
    g = rng.normal(size=(M, int(rng.integers(1, 9)))) * np.exp(2 * rng.normal(size=(M, 1)))
    g /= np.abs(g).max()
    w = min_norm_weights(g)
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1)
    found = minimize(
        lambda v: ((v @ g) ** 2).sum(),
        np.full(M, 1 / M),
        jac=lambda v: 2 * g @ (v @ g),
        bounds=[(0, 1)] * M,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert ((w @ g) ** 2).sum() <= found.fun + 1e-7


def test_the_direction_makes_no_objective_worse():
    g = np.random.default_rng(0).normal(size=(4, 50))
    direction = min_norm_weights(g) @ g
    assert (g @ direction >= direction @ direction - 1e-9).all()


def test_an_objective_without_a_gradient_gets_no_weight():
    np.testing.assert_allclose(
        min_norm_weights(np.array([[0.0, 0], [3, 0], [0, 3]])), [0, 0.5, 0.5]
    )
    np.testing.assert_allclose(min_norm_weights(np.zeros((2, 3))), [0.5, 0.5])


def test_equal_gradients_are_no_trouble():
    w = min_norm_weights(np.ones((3, 5)))
    assert w.sum() == pytest.approx(1)
    assert w.min() >= 0


def test_no_weight_is_raised_when_no_objective_is_behind():
    weights = np.array([0.5, 0.5])
    raised = raise_the_last(weights, np.array([0.8, 0.7]), np.array([0.8, 0.6]))
    np.testing.assert_array_equal(raised, weights)


def test_an_objective_of_unknown_auc_is_not_raised():
    raised = raise_the_last(np.ones(2) / 2, np.array([np.nan, 0.5]), np.array([0.9, 0.6]))
    np.testing.assert_allclose(raised, [0.5, 0.55])


@pytest.mark.parametrize("weighting", ["pantheon", "min-norm"])
@pytest.mark.parametrize("name", NEURAL)
def test_every_loss_learns_with_moving_weights(name, weighting):
    method = method_class(name)(**SMALL[name], weighting=weighting)
    test = planted(4000, seed=2)
    quality = method.fit(planted(), SCHEMA, valid=planted(1000, seed=1)).evaluate(test)
    assert quality.auc_sum.estimate > 1.1


@pytest.mark.parametrize(
    ("name", "weighting"),
    [("aucm", "fixed"), ("aucm", "pantheon"), ("mbce", "min-norm"), ("reinforce", "fixed")],
)
def test_a_fit_that_was_killed_remembers_what_its_loss_knew(name, weighting, tmp_path):
    options = {**SMALL[name], "epochs": 4, "patience": 4, "weighting": weighting}
    train, valid, test = planted(), planted(1000, seed=1), planted(500, seed=2)
    whole = method_class(name)(**options).fit(train, SCHEMA, valid=valid)

    class Killed(Exception):  # noqa: N818
        pass

    def kill(event):
        if isinstance(event, EpochEnded) and event.epoch == 1:
            raise Killed

    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        method_class(name)(**options).fit(
            train, SCHEMA, valid=valid, checkpoint=path, on_event=kill
        )
    again = method_class(name)(**options).fit(train, SCHEMA, valid=valid, checkpoint=path)
    np.testing.assert_array_equal(again.score(test), whole.score(test))
    for key, value in whole._memory.items():
        assert torch.equal(again._memory[key], value)


def test_pantheon_raises_an_objective_that_its_loss_neglects():
    options = {**SMALL["mbce"], "epochs": 4, "patience": 4, "weighting": "pantheon"}
    method = method_class("mbce")(**options).fit(planted(), SCHEMA, valid=planted(1000, seed=1))
    weights = method._memory["weights"].numpy()
    assert weights.sum() > 2
    assert (weights >= 1).all()
