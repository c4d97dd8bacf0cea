import json

import pytest

from harmonrank.methods import METHODS


@pytest.fixture(autouse=True)
def one_method(monkeypatch):
    """Compare only the closed form: that every method can be compared is tested elsewhere."""
    monkeypatch.setattr("harmonrank.methods.METHODS", ("closed-form",))


def test_every_method_is_shown_by_default():
    assert {"closed-form", "harmonrank-paper"} <= set(METHODS)


@pytest.mark.parametrize("world", ["elive", "qkvideo", "conflict"])
def test_the_leaderboard_of_every_world_fits_a_terminal(run, world):
    done = run("demo", "--world", world, "--rows", 4000)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split()[:3] == ["method", "AUC-sum", "regret"]
    assert "long_view" in lines[0]
    assert lines[1].split()[0] == "ceiling"
    assert len(lines) == 2 + 1 + 2


def test_the_files_are_kept_when_asked(run, tmp_path):
    out = tmp_path / "w"
    assert run("demo", "--rows", 4000, "-o", out).code == 0
    assert (out / "schema.toml").exists()
    done = run("demo", "--rows", 4000, "-o", out, "--overwrite", "--json", "-")
    assert json.loads(done.out)["rows"] == {"train": 4000, "test": 2000}
