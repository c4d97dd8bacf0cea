"""The paper's own recipe, and the loss as it is printed."""

import numpy as np
import pytest

import harmonrank as hr
from check_method import SCHEMA, planted
from harmonrank.paper import PUBLISHED


def test_the_preset_is_the_recipe_that_the_paper_prints():
    config = hr.HarmonRankPaper(preset="paper").config
    assert (config.optimizer, config.learning_rate, config.weight_decay) == ("sgd", 1e-4, 0.0)
    assert (config.batch_rows, config.epochs, config.early_stopping) == (10_240, 500, False)
    assert (config.buckets, config.scale, config.interpolate) == (300, "raw", False)
    assert config.pairs == "published"


def test_options_beside_the_preset_hold():
    config = hr.HarmonRankPaper(preset="paper", epochs=3, pairs="each").config
    assert (config.epochs, config.pairs, config.optimizer) == (3, "each", "sgd")


def test_a_saved_preset_is_loaded_as_it_was(tmp_path):
    model = hr.HarmonRankPaper(preset="paper", epochs=2, batch_rows=500)
    model.fit(planted(), SCHEMA, valid=planted(1000, seed=1)).save(tmp_path / "model")
    again = hr.load(tmp_path / "model")
    assert again.config == model.config
    np.testing.assert_array_equal(again.score(planted(99)), model.score(planted(99)))


@pytest.mark.parametrize("pairs", ["each", "published"])
def test_both_ways_to_count_pairs_are_options(pairs):
    model = hr.HarmonRankPaper(pairs=pairs, epochs=2, batch_rows=500)
    assert model.fit(planted(), SCHEMA, valid=planted(500, seed=1)).score(planted(99)).std() > 0


def test_the_recipe_names_options_that_exist():
    assert set(PUBLISHED) <= set(hr.HarmonRankPaper.Config.__dataclass_fields__)
