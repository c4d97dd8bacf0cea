from dataclasses import replace

import numpy as np
import pytest

from harmonrank.fusion.baselines.trees import Trees
from harmonrank.support import DataError
from harmonrank.support.storage.stored import restored, stored

lightgbm = pytest.importorskip("lightgbm")

ROWS, SCORES = 3000, 2


def boosters():
    """Return two models on numbers and categories, and their features."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.random((ROWS, SCORES)), rng.integers(0, [5, 90], (ROWS, 2))], axis=1)
    chance = np.where(x[:, 3] % 3 == 0, x[:, 0], x[:, 1]) * np.where(x[:, 2] == 1, 0.3, 0.9)
    parameters = {"objective": "binary", "verbosity": -1, "min_data_in_leaf": 5, "num_threads": 1}
    boosters = []
    for leaves in (2, 31):
        labels = (rng.random(ROWS) < chance).astype(np.float32)
        rows = lightgbm.Dataset(x, labels, categorical_feature=[2, 3])
        boosters.append(lightgbm.train({**parameters, "num_leaves": leaves}, rows, 20))
    # Labels that nothing explains give a tree of one leaf.
    rows = lightgbm.Dataset(x, labels, categorical_feature=[2, 3])
    boosters.append(lightgbm.train({**parameters, "min_data_in_leaf": ROWS}, rows, 2))
    return boosters, x


@pytest.fixture(scope="module")
def grown():
    return boosters()


@pytest.fixture
def trees(grown):
    return Trees.of([booster.model_to_string() for booster in grown[0]])


def test_trees_predict_as_lightgbm_does(grown, trees):
    models, x = grown
    expected = np.stack([model.predict(x) for model in models], axis=1)
    np.testing.assert_allclose(trees.probabilities(x), expected, rtol=1e-14)


def test_categories_never_seen_go_where_lightgbm_sends_them(grown, trees):
    models, x = grown
    strange = x.copy()
    strange[:, 3] = np.random.default_rng(1).integers(80, 5000, ROWS)
    expected = np.stack([model.predict(strange) for model in models], axis=1)
    np.testing.assert_allclose(trees.probabilities(strange), expected, rtol=1e-14)


def test_what_was_stored_is_taken_over(grown, trees):
    again = restored(Trees, *stored(trees))
    np.testing.assert_array_equal(again.probabilities(grown[1]), trees.probabilities(grown[1]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left", lambda old: np.zeros_like(old)),  # the way back to the root
        ("left", lambda old: old + 10_000),
        ("right", lambda old: np.full_like(old, -100_000)),
        ("root", lambda old: old + 10_000),
        ("bits", lambda old: np.where(old >= 0, 100_000, old)),
        ("words", lambda old: old + 100_000),
        ("first", lambda old: old + 1),
        ("leaf", lambda old: old[:3]),
    ],
)
def test_trees_that_lead_nowhere_are_refused(trees, name, value):
    with pytest.raises(DataError, match="lead to nodes, leaves or categories that are not there"):
        replace(trees, **{name: value(getattr(trees, name))}).check(3, 4)
