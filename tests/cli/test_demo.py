import json
from importlib import import_module

import pytest

ONE = ("--methods", "closed-form")


@pytest.fixture(autouse=True)
def one_method(monkeypatch, tmp_path):
    """Compare only the closed form: that every method can be compared is tested elsewhere."""
    compare = import_module("harmonrank.evaluation.compare")
    monkeypatch.setattr(compare, "installed_methods", lambda: ("closed-form",))
    monkeypatch.chdir(tmp_path)


def test_few_methods_are_shown_by_default_beside_what_ranks_today(run):
    done = run("demo", "--rows", 3000, "--no-report", "--json", "-")
    names = {method["name"] for method in json.loads(done.out)["methods"]}
    assert names == {"harmonrank", "logistic", "closed-form", "today"}
    said = [line for line in done.err.splitlines() if not line.startswith("Simulating")]
    assert len(said) <= 40
    assert "Within requests harmonrank is " in done.err
    assert "Note: Few positives among the test rows" in done.err


@pytest.mark.parametrize("world", ["elive", "qkvideo", "conflict"])
def test_the_leaderboard_of_every_world_fits_a_terminal(run, world):
    done = run("demo", "--world", world, "--methods", "all", "--rows", 4000)
    assert done.code == 0, done
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith("Within requests closed-form is ")
    text = "\n".join(lines)
    heads = [line for line in lines if line.startswith("method ")]
    assert heads[0].split()[:5] == ["method", "within", "regret", "vs", "today"]
    assert "long_view" in text
    assert "\nceiling " in text
    assert "\nown score " in text
    assert len(lines) <= 40


def test_the_files_are_kept_when_asked(run, tmp_path):
    out = tmp_path / "w"
    assert run("demo", *ONE, "--rows", 4000, "-o", out).code == 0
    assert (out / "schema.toml").exists()
    done = run("demo", *ONE, "--rows", 4000, "-o", out, "--overwrite", "--json", "-")
    assert json.loads(done.out)["rows"] == {"train": 4000, "test": 2000}


def test_a_page_is_written_and_named_unless_declined(run, tmp_path):
    pytest.importorskip("plotly")
    done = run("demo", *ONE, "--rows", 4000)
    assert "Report: harmonrank-demo.html" in done.err
    assert "conflict" in (tmp_path / "harmonrank-demo.html").read_text(encoding="utf-8")
    done = run("demo", *ONE, "--rows", 4000, "--no-report", "-o", "w")
    assert "Report" not in done.err
    assert run("demo", *ONE, "--rows", 4000, "--report", "mine.html").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["harmonrank-demo.html", "mine.html", "w"]


def test_without_plotly_the_demo_goes_on_and_says_what_is_missing(run, tmp_path, monkeypatch):
    monkeypatch.setattr("harmonrank.cli.parts.pages.is_installed", lambda _: False)
    done = run("demo", *ONE, "--rows", 4000)
    assert done.code == 0
    assert "pip install 'harmonrank[report]'" in done.err
    assert list(tmp_path.iterdir()) == []
