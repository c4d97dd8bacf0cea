"""The page of a frontier, in a real browser."""

import numpy as np
import pytest

from harmonrank.evaluation import Baseline, Sweep, frontier_of
from harmonrank.metrics import expected_grouped_auc
from harmonrank.reports import run_of
from harmonrank.reports.frontier import front_plots, frontier_page, frontier_table
from harmonrank.reports.frontier._charts import pairs_of


@pytest.fixture(scope="module")
def frontier(models, logs):
    model = models["harmonrank"].with_point("sales", {"buy": 4})
    return frontier_of(Sweep.of(model, logs[1]), points=60, k=5)


@pytest.fixture(scope="module")
def path(frontier, tmp_path_factory):
    path = tmp_path_factory.mktemp("frontier") / "frontier.html"
    path.write_text(frontier_page("A frontier", frontier, run_of("x"), 3), encoding="utf-8")
    return path


def test_the_table_lists_what_a_reader_looks_at_first(frontier):
    table = frontier_table(frontier, chosen=3)
    words = [row[1] for row in table.rows]
    assert words[0].startswith("current")
    for name in ("knee", "sales", "most buy", "most long_view", "chosen"):
        assert any(name in each for each in words), name
    assert sum(style == "bold" for style in table.emphasis.values()) == 1


def test_pairs_that_are_traded_most_come_first(frontier):
    pairs = pairs_of(frontier.auc, 4)
    assert len(pairs) == 4
    assert len(pairs_of(frontier.auc, 99)) == 10


def test_today_is_marked_in_the_table_and_in_every_chart(models, logs):
    score = logs[1].scores[:, 0]
    frontier = frontier_of(
        Sweep.of(models["harmonrank"], logs[1], baseline=Baseline("mine", score)), points=20
    )
    assert frontier.within
    np.testing.assert_array_equal(
        frontier.decisive.today, expected_grouped_auc(score, logs[1].truth, logs[1].request)
    )
    table = frontier_table(frontier)
    point, what, *figures = table.rows[0][:7]
    assert (point.text, what) == ("–", "today")
    assert figures == frontier.decisive.today.tolist()
    assert table.rows[0][7] == pytest.approx(frontier.decisive.today @ frontier.count)
    for front in (frontier.request_auc, frontier.auc, frontier.events):
        for each in front_plots(frontier, front, "AUC", "key", 2):
            (mark,) = [trace for trace in each.data if trace["name"] == "today"]
            assert mark["x"][0] in front.today
            assert "ids" not in mark
    page = frontier_page("A frontier", frontier, run_of("x"))
    assert "Today (mine): AUC-sum within requests" in page
    assert page.index("AUC within requests</h2>") < page.index("AUC over all rows</h2>")
    told = frontier.to_dict()
    assert (told["criterion"], told["baseline"]) == ("within requests", "mine")
    assert told["fronts"]["auc"]["today"] == frontier.auc.today.tolist()
    assert frontier_of(Sweep.of(models["harmonrank"], logs[1]), points=20).decisive.today is None


@pytest.mark.parametrize("width", [1280, 390])
def test_a_point_that_is_picked_is_shown_in_every_chart(driver, seen, path, width):
    seen(path, width)
    chosen = (
        "return [...document.querySelectorAll('.chart')].map(c => c.data.filter(t => t.ids)"
        ".flatMap(t => (t.selectedpoints ?? []).map(i => t.ids[i])))"
    )
    assert all(not each for each in driver.execute_script(chosen))
    driver.execute_script(
        "const chart = document.querySelector('.chart');"
        "chart.emit('plotly_click', {points: [{id: '7'}]})"
    )
    picked = driver.execute_script(chosen)
    assert len(picked) > 10
    assert all(each == ["7"] for each in picked)
    for output in driver.find_elements("css selector", ".picker output"):
        assert output.text.startswith("Point 7: buy ")
        assert output.text.endswith("--save NAME --choose 7")
    typed = driver.find_elements("css selector", ".picker input")[-1]
    typed.clear()
    typed.send_keys("9")
    assert all(each == ["9"] for each in driver.execute_script(chosen))
