"""The worlds of the package itself, with and without those that the laboratory adds."""

from dataclasses import fields

import numpy as np
import pytest

from harmonrank.support import UsageError
from harmonrank.worlds import PRESETS, preset, presets, world, world_names
from harmonrank_lab.worlds import World, lab_world


@pytest.fixture
def without_lab(monkeypatch):
    monkeypatch.setattr(presets, "plugins", lambda _: {})


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_the_world_that_the_laboratory_changes(name):
    plain, open_world = preset(name), lab_world(name)
    assert all(getattr(plain, f.name) is getattr(open_world, f.name) for f in fields(plain))
    ours, theirs = plain.sample(3000, seed=1, start=100), open_world.sample(3000, seed=1, start=100)
    for part in ("scores", "labels", "request", "time"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))
    np.testing.assert_allclose(ours.truth, theirs.truth, rtol=1e-12)


@pytest.mark.parametrize("name", PRESETS)
def test_stored_intercepts_are_those_that_give_the_prevalences(name):
    place = World.of(preset(name))
    solved = place.with_prevalence(list(PRESETS[name].prevalence.values()))
    np.testing.assert_allclose(solved.mu.base, place.mu.base, rtol=1e-9)


@pytest.mark.usefixtures("without_lab")
def test_without_the_laboratory_its_own_worlds_work():
    assert world_names() == tuple(PRESETS)
    assert world("conflict").sample(100, seed=0).truth.shape == (100, 5)


@pytest.mark.usefixtures("without_lab")
@pytest.mark.parametrize("asked", [{"name": "tails"}, {"name": "elive", "redraw": 1}])
def test_without_the_laboratory_its_worlds_say_where_they_are(asked):
    with pytest.raises(UsageError, match="pip install harmonrank-lab"):
        world(**asked)
