import re
from dataclasses import replace

import numpy as np
import pytest

from harmonrank.evaluation import Baseline
from harmonrank.reports.figures.methods import calibration_plots
from harmonrank.reports.model_facts import Bin
from harmonrank.reports.plots import logit_axis
from harmonrank.reports.sections import sections

go = pytest.importorskip("plotly.graph_objects")


@pytest.fixture(scope="module")
def plots(facts):
    return [plot for part in sections(facts) for plot in part.plots]


def coloured(value):
    """Give theme names a colour, as the page does."""
    if isinstance(value, dict):
        return {key: coloured(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [coloured(part) for part in value]
    if isinstance(value, str) and value.startswith("--"):
        return "Blues" if value.startswith("--scale-") else "#123456"
    return value


def test_plotly_knows_every_part_of_every_chart(plots):
    for plot in plots:
        figure = go.Figure(data=coloured(plot.data), layout=coloured(plot.layout))
        assert len(figure.data) == len(plot.data)


def test_names_are_unique_and_fit_for_files(plots):
    names = [plot.name for plot in plots]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w.-]+", name) for name in names)


def test_every_kind_of_chart_is_there(plots):
    kinds = {plot.name.split("-")[0] for plot in plots}
    assert kinds == {
        *("difference", "auc", "weights", "response", "frontier"),
        *("relation", "attention", "calibration", "training", "drift"),
    }


def test_every_axis_of_numbers_has_a_title(plots):
    for plot in plots:
        if plot.data[0]["type"] == "heatmap":
            continue
        assert plot.layout["xaxis"]["title"]["text"]
        named = plot.layout["yaxis"].get("autorange") == "reversed"
        assert named or plot.layout["yaxis"]["title"]["text"]


def test_the_numbers_behind_a_chart_are_a_full_table(plots):
    for plot in plots:
        assert plot.table.rows
        for row in plot.table.rows:
            assert len(row) == len(plot.table.columns)
        assert all(all(texts) for texts in plot.table.texts())


def test_the_first_chart_is_the_paired_difference_and_ties_are_hollow(facts):
    (dots,) = sections(facts)[0].plots[0].data
    _first, *others = facts.board.entries
    assert dots["y"] == [entry.name for entry in others]
    assert dots["x"] == pytest.approx([-entry.behind.estimate for entry in others])
    whisker = dots["error_x"]
    for x, minus, plus, entry, symbol in zip(
        dots["x"], whisker["arrayminus"], whisker["array"], others, dots["marker"]["symbol"],
        strict=True,
    ):  # fmt: skip
        assert x - minus == pytest.approx(-entry.behind.high)
        assert x + plus == pytest.approx(-entry.behind.low)
        assert (symbol == "circle-open") == (entry.behind.low <= 0 <= entry.behind.high)


def test_with_a_baseline_the_first_chart_is_against_today(facts):
    last = facts.board.entries[-1]
    today = Baseline("prod", np.zeros(1))
    entries = (*facts.board.entries[:-1], replace(last, name="today"))
    board = replace(facts.board, entries=entries, baseline=today)
    methods = {name: facts.methods[name] for name in facts.methods if name in board.qualities}
    changed = replace(facts, board=board, methods=methods, frontier=None)
    chart = sections(changed)[0].plots[0]
    assert chart.data[0]["y"] == [entry.name for entry in entries[:-1]]
    gaps = [entry.minus(entries[-1]).estimate for entry in entries[:-1]]
    assert chart.data[0]["x"] == pytest.approx(gaps)
    assert chart.layout["xaxis"]["title"]["text"] == "AUC-sum within requests − that of today"
    assert "“today” is what ranks now: prod." in sections(changed)[0].lead


def test_attention_is_shown_only_where_it_is_not_uniform(facts):
    def kinds(share):
        rows = ((share, *[(1 - share) / 4] * 4),) * 5
        methods = {n: replace(f, attention=rows) for n, f in facts.methods.items()}
        (part,) = [s for s in sections(replace(facts, methods=methods)) if s.key == "relations"]
        return part, [plot.name.split("-")[0] for plot in part.plots]

    told, shown = kinds(0.4)
    assert "attention" in shown
    assert "Attention A_r" in told.lead
    plain, left_out = kinds(0.2005)
    assert "attention" not in left_out
    assert "is uniform here, so it is not shown" in plain.lead


def test_marks_of_a_trade_off_are_in_the_legend_and_tell_their_weights(facts):
    part = next(s for s in sections(facts) if s.key == "trade-offs")
    named = [name for name, *_ in part.legend]
    assert named == ["reached", "best possible", *facts.board.qualities]
    assert len(part.plots) == 4
    for chart in part.plots:
        assert [trace["meta"] for trace in chart.data if "meta" in trace] == [
            *("best possible", "reached"),
            *facts.board.qualities,
        ]
        assert all("weights: " in trace["hovertemplate"] for trace in chart.data[2:])


def test_odd_names_of_objectives_still_make_files(facts):
    from harmonrank.reports.plots import plot
    from harmonrank.support import table_of

    names = [
        plot(name, "", [], table_of((), ()), x={}, y={}).name
        for name in ("auc-a b", "auc-a/b", "auc-ä", "auc-a-b")
    ]
    assert len(set(names)) == 4
    assert all(re.fullmatch(r"[\w.-]+", name, re.ASCII) for name in names)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.2, 0.2), (1e-9, 2e-9), (0.4, 0.45)])
def test_an_axis_of_probabilities_has_ticks_wherever_it_lies(low, high):
    axis = logit_axis("score", low, high)
    assert axis["ticktext"]
    assert axis["range"][0] < axis["range"][1]


def test_sections_without_data_are_left_out(facts):
    bare = replace(
        facts, methods={}, upstream=(), context_pulls={}, frontier=None, drift=(), focus=None
    )
    keys = [part.key for part in sections(bare)]
    assert keys == ["leaderboard", "scores", "objectives", "weights", "relations", "data"]


def test_a_calibration_axis_has_ticks_however_narrow_it_is(facts):
    narrow = ((Bin(0.3, 0.3, 0.2, 0.4, 50), Bin(0.6, 0.5, 0.4, 0.6, 50)),) * 5
    methods = {name: replace(each, calibration=narrow) for name, each in facts.methods.items()}
    for plot in calibration_plots(replace(facts, methods=methods, upstream=narrow)):
        assert plot.layout["xaxis"]["dtick"] == "D2"
