import json

import pytest

import harmonrank as hr
from logs import small_table

ROOMY = ("--set", "tolerance=0.05", "--set", "calibration=1")


@pytest.fixture
def place(folder):
    schema = hr.Schema.read(folder / "schema.toml")
    for seed, name in enumerate("ab"):
        hr.ClosedForm().fit(small_table(2000, seed), schema).save(folder / name)
    return folder


def test_the_life_of_a_registry(run, place):
    registry, test = place / "registry", place / "test.parquet"
    assert "0.05" in run("registry", "init", registry, *ROOMY).out
    done = run("registry", "publish", registry, place / "a", "--data", test, "--window", "May")
    assert done.code == 0, done
    assert "Version 1: current" in done.out
    done = run("registry", "publish", registry, place / "b", "--data", test, "--json", "-")
    assert json.loads(done.out)["parent"] == 1
    settings = place / "s.toml"
    settings.write_text('[registry.list]\nformat = "md"', encoding="utf-8")
    listed = run("registry", "list", registry, "--settings", settings).out
    assert "| 1 | accepted |" in listed
    assert "| **2** | **current** |" in listed
    assert max(map(len, run("registry", "list", registry).out.splitlines())) <= 80
    assert "Window: May." in run("registry", "show", registry, "1").out
    assert "prevalence" in run("registry", "diff", registry, "1", "2", "--data", test).out
    assert run("registry", "rollback", registry).out == "Version 1 is current; it was 2.\n"
    assert json.loads(run("registry", "prune", registry, "--json", "-").out) == {"removed": []}


def test_a_refused_version_has_an_exit_code_of_its_own(run, place):
    registry = place / "registry"
    run("registry", "init", registry, "--set", "require_labels=true")
    done = run("registry", "publish", registry, place / "a")
    assert done.code == 3
    assert "Version 1: refused" in done.out
    assert "no labelled table" in done.out


def test_the_current_version_can_be_published_recalibrated(run, place):
    registry, recent = place / "registry", place / "recent.parquet"
    small_table(3000, seed=7).drop("buy", "like").write_parquet(recent)
    run("registry", "init", registry, *ROOMY)
    run("registry", "publish", registry, place / "a", "--data", place / "test.parquet")
    done = run("registry", "publish", registry, "--recalibrated-on", recent, "--json", "-")
    assert done.code == 0, done
    assert json.loads(done.out)["recalibrated"] is True


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("init", "R2", "--set", "tolerances=1"), "Option 'tolerances' of a registry must be"),
        (("init", "R2", "--set", "tolerence=1"), "Did you mean 'tolerance'?"),
        (("init", "R"), "exists already"),
        (("publish", "R"), "Name either the folder of a MODEL or --recalibrated-on DATA."),
        (("publish", "R", "none"), "There is no saved model"),
        (("show", "R"), "has no current version"),
        (("show", "R", "4"), "There is no version 4"),
        (("list", "none"), "is not a registry"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(run, place, monkeypatch, arguments, sentence):
    monkeypatch.chdir(place)
    assert run("registry", "init", "R").code == 0
    done = run("registry", *arguments)
    assert done.code == 2
    assert sentence in done.err
