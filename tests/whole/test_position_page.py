"""What docs/position.md says of measurements is what the stored results say."""

import json
import re

import pytest

from pages import ROOT

PAGE = (ROOT / "docs" / "position.md").read_text("utf-8")


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text("utf-8"))


def table_after(sentence):
    """Return the cells of the first table below a sentence, without its head."""
    lines = PAGE.partition(sentence)[2].split("\n\n")[1].splitlines()[2:]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in lines]


def test_correction_leaves_a_third_of_the_naive_regret_where_the_page_says_so():
    results = stored("position.json")["results"]
    ratios = {
        (r["world"], r["power"]): r["ratio"]["harmonrank"] for r in results if r["rows"] == 100_000
    }
    (long,) = [r["regret"]["harmonrank"] for r in results if r["rows"] == 400_000]
    assert long["corrected"] < long["naive"] / 3
    figures = [f"{long[way]:.4f}".removeprefix("0") for way in ("corrected", "naive")]
    assert f"with 400,000 rows it is {figures[0]} in place of {figures[1]}" in PAGE
    told = table_after("Regret after 100,000 rows shown:")
    assert len(told) == len(ratios)
    for world, power, *_, ratio in told:
        assert ratios[world, float(power)] == pytest.approx(float(ratio), abs=0.0051)
        assert world == "tails" or float(ratio) <= 1 / 3


def test_coverage_and_rank_correlation_are_those_of_the_stored_runs():
    result = stored("offline.json")
    assert result["runs"] == 100
    told = table_after("the least of the five objectives:")
    assert len(told) == len(result["coverage"])
    for (platform, curve, *counts), one in zip(told, result["coverage"], strict=True):
        assert (platform, curve) == (one["platform"], one["curve"])
        least = [min(one["covered"][part].values()) for part in
                 ("robust", "snips", "robust_lift", "snips_lift")]  # fmt: skip
        assert [int(count) for count in counts] == least
        assert min(least) >= 90
    correlation = result["rank_correlation"]
    assert len(correlation["pairs"]) == 10
    assert min(correlation["spearman"].values()) >= 0.9
    sentence = re.search(r"Spearman's correlation is (.*?) for", PAGE)[1]
    figures = [float(figure) for figure in re.findall(r"\.\d+", sentence)]
    assert figures == [round(value, 2) for value in correlation["spearman"].values()]
