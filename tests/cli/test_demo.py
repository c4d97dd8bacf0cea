import json
from importlib import import_module

import pytest

from harmonrank.fusion import METHODS


@pytest.fixture(autouse=True)
def one_method(monkeypatch, tmp_path):
    """Compare only the closed form: that every method can be compared is tested elsewhere."""
    compare = import_module("harmonrank.evaluation.compare")
    monkeypatch.setattr(compare, "installed_methods", lambda: ("closed-form",))
    monkeypatch.chdir(tmp_path)


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
    assert lines[3].split()[0] == "own"
    assert len(lines) == 2 + 1 + 1 + 3


def test_the_files_are_kept_when_asked(run, tmp_path):
    out = tmp_path / "w"
    assert run("demo", "--rows", 4000, "-o", out).code == 0
    assert (out / "schema.toml").exists()
    done = run("demo", "--rows", 4000, "-o", out, "--overwrite", "--json", "-")
    assert json.loads(done.out)["rows"] == {"train": 4000, "test": 2000}


def test_a_page_is_written_and_named_unless_declined(run, tmp_path):
    pytest.importorskip("plotly")
    done = run("demo", "--rows", 4000)
    assert "Report: harmonrank-demo.html" in done.err
    assert "conflict" in (tmp_path / "harmonrank-demo.html").read_text(encoding="utf-8")
    done = run("demo", "--rows", 4000, "--no-report", "-o", "w")
    assert "Report" not in done.err
    assert run("demo", "--rows", 4000, "--report", "mine.html").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["harmonrank-demo.html", "mine.html", "w"]


def test_without_plotly_the_demo_goes_on_and_says_what_is_missing(run, tmp_path, monkeypatch):
    monkeypatch.setattr("harmonrank.cli.parts.pages.is_installed", lambda _: False)
    done = run("demo", "--rows", 4000)
    assert done.code == 0
    assert "pip install 'harmonrank[report]'" in done.err
    assert list(tmp_path.iterdir()) == []
