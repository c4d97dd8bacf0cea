"""The README's figure of regrets."""

import importlib.util
import json
import re
from math import log10
from pathlib import Path

import pytest

from browser import need_browser

ROOT = Path(__file__).parents[2]
WORLDS = [f"world{i}" for i in range(8)]
METHODS = [f"method-{i}" for i in range(17)]


@pytest.fixture(scope="module")
def figure():
    spec = importlib.util.spec_from_file_location("figure", ROOT / "benchmarks" / "figure.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(method, world, regret):
    return {"method": method, "world": world, "regret": regret}


def test_every_dot_of_every_world_lies_inside_the_axis(figure):
    regrets = {
        m: {w: 10.0 ** (i % 5 - 5 + k / 8) for k, w in enumerate(WORLDS)}
        for i, m in enumerate(METHODS)
    }
    chart = figure.regret_plot("t", regrets)
    low, high = chart.layout["xaxis"]["range"]
    dots = [trace for trace in chart.data if trace["mode"] == "markers"]
    assert [trace["name"] for trace in dots] == WORLDS
    assert all(trace["y"] == METHODS for trace in dots)
    assert all(low < log10(x) < high for trace in dots for x in trace["x"])
    looks = {(t["marker"]["color"], t["marker"]["symbol"]) for t in dots}
    assert len(looks) == len(WORLDS)
    assert len(chart.table.rows) == len(METHODS)


def test_a_method_may_lack_a_world_and_a_regret_of_0_has_a_place(figure):
    chart = figure.regret_plot("t", {"a": {"x": 0.0, "y": 0.1}, "b": {"y": 0.2}})
    assert [trace["y"] for trace in chart.data[1:]] == [["a"], ["a", "b"]]
    assert chart.data[1]["x"][0] > 0
    assert list(chart.table.texts())[1] == ["b", "–", "0.20000"]


def test_regrets_are_means_over_seeds_and_the_least_comes_first(figure):
    rows = [row("a", "x", 0.1), row("a", "x", 0.3), row("b", "x", 0.01), row("b", "y", 0.02)]
    rows.append({"method": "b", "world": "z", "error": "failed"})
    assert figure.regrets_of(rows) == {"b": {"x": 0.01, "y": 0.02}, "a": {"x": pytest.approx(0.2)}}


def test_the_readmes_figure_shows_every_world_and_method_of_the_stored_results(figure):
    results = json.loads((ROOT / "benchmarks/results/regret.json").read_text())["results"]
    regrets = figure.regrets_of(results)
    drawn = (ROOT / "docs/regret.svg").read_text(encoding="utf-8")
    names = set(re.findall(r">([^<>]+)</t(?:ext|span)>", drawn))
    assert names >= {*regrets, *(world for of_worlds in regrets.values() for world in of_worlds)}, (
        "run `python benchmarks/figure.py`"
    )
    assert drawn.endswith(figure.mark_of(regrets)), "run `python benchmarks/figure.py`"


def test_the_figure_is_drawn_from_any_results(figure, tmp_path):
    need_browser()
    rows = [row(m, w, 0.01) for m in METHODS for w in WORLDS]
    (tmp_path / "r.json").write_text(json.dumps({"results": rows}))
    figure.main(tmp_path / "r.json", tmp_path / "r.svg")
    drawn = (tmp_path / "r.svg").read_text(encoding="utf-8")
    assert drawn.startswith("<svg")
    assert all(name in drawn for name in [*METHODS, *WORLDS])
