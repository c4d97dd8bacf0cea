import json

import pytest

import harmonrank as hr


@pytest.fixture(scope="module")
def model(tmp_path_factory, world_folder):
    path = tmp_path_factory.mktemp("explain") / "model"
    schema = hr.Schema.read(world_folder / "schema.toml")
    hr.HarmonRank().fit(world_folder / "train.parquet", schema).save(path)
    return path


def test_explain_shows_effective_weights_and_noise(run, model):
    result = run("explain", model, "--json", "-")
    facts = json.loads(result.out)
    assert facts["method"] == "harmonrank"
    assert sum(facts["effective_weight"].values()) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in facts["noise_share"].values())
    assert "effective" in result.err


def test_explain_follows_other_weights(run, model):
    plain = json.loads(run("explain", model, "--json", "-").out)["effective_weight"]
    doubled = json.loads(run("explain", model, "--weights", "like=2", "--json", "-").out)
    odds = doubled["effective_weight"]["like"] / doubled["effective_weight"]["buy"]
    assert odds == pytest.approx(2 * plain["like"] / plain["buy"])
