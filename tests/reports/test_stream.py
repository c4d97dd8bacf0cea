import re

import pytest
from msgspec.structs import replace

from harmonrank.reports.facts import run_of
from harmonrank.reports.stream import StreamHistory, stream_page, stream_table
from harmonrank.reports.stream._charts import drift_plots, learner_plots, pace_plots, quality_plots
from harmonrank.reports.stream._marks import milliseconds
from harmonrank.reports.stream._tables import newest_table, version_table
from stream_records import FIRST, OBJECTIVES, REFUSAL, stream_history

RUN = run_of("harmonrank report state -o page.html")


@pytest.fixture(scope="module")
def history():
    return stream_history()


def body_of(history, title="A stream"):
    page = stream_page(title, history, RUN)
    return page[page.index("<body") : page.index("id=figures")]


def test_the_line_of_the_sum_is_that_of_the_window_and_marks_stand_on_it(history):
    whole = quality_plots(history)[0]
    traces = {trace["name"]: trace for trace in whole.data if "name" in trace}
    scored = [batch for batch in history.batches if batch.window is not None]
    assert traces["window"]["y"] == [batch.window.auc_sum for batch in scored]
    assert traces["window"]["x"] == [milliseconds(batch.end) for batch in scored]
    assert traces["exact"]["y"] == [batch.batch.exact_auc_sum for batch in scored]
    assert traces["ceiling"]["y"] == [batch.batch.ceiling for batch in scored]
    assert traces["each batch"]["y"] == [batch.batch.auc_sum for batch in scored]
    assert len(traces["published"]["x"]) == 67
    assert len(traces["refused"]["x"]) == 3
    assert "version 11 refused: auc buy" in traces["refused"]["text"][0]
    place = traces["window"]["x"].index(traces["recalibrated"]["x"][0])
    assert traces["recalibrated"]["y"] == [traces["window"]["y"][place]]
    (line,) = whole.layout["shapes"]
    assert line["x0"] == traces["recalibrated"]["x"][0]


def test_every_objective_has_its_chart_and_its_numbers(history):
    plots = quality_plots(history)[1:]
    assert [plot.title for plot in plots] == [f"AUC of {name}, prequential" for name in OBJECTIVES]
    for plot, name in zip(plots, OBJECTIVES, strict=True):
        newest = history.batches[-1].window
        row = plot.table.rows[0]
        assert row[2:5] == (newest.auc[name], *newest.auc_ci[name])
        assert row[5] == history.batches[-1].batch.exact_auc[name]


def test_without_truth_there_is_neither_an_exact_line_nor_a_ceiling():
    history = stream_history(12, exact=False)
    names = {trace.get("meta") for plot in quality_plots(history) for trace in plot.data}
    assert names == {"window", "each batch", "published"}
    assert "exact, it is" not in body_of(history)


def test_drift_has_a_line_per_score_and_its_limits(history):
    index, offset = drift_plots(history)
    assert [trace["name"] for trace in index.data] == [f"p_{name}" for name in OBJECTIVES]
    like = history.intervals[40].moves["p_like"]
    assert max(index.data[3]["y"]) == like.psi
    assert max(offset.data[3]["y"]) == like.offset
    assert [shape["y0"] for shape in index.layout["shapes"][1:]] == [0.1, 0.25]


def test_pace_shows_lag_in_a_unit_that_can_be_read(history):
    titles = {plot.title: plot for plot in pace_plots(history)}
    assert list(titles) == ["Labelled rows", "Speed", "Lag", "Set aside"]
    assert titles["Lag"].layout["yaxis"]["title"]["text"] == "minutes"
    late = titles["Set aside"].data[0]
    assert (late["name"], late["y"][-1]) == ("late", history.batches[-1].aside["late"])


def test_facts_of_the_learner_that_move_are_drawn(history):
    assert [plot.title for plot in learner_plots(history)] == ["Half life hours"]


def test_versions_of_one_outcome_share_a_row(history):
    rows = version_table(history).rows
    assert [row[:3] for row in rows[-3:]] == [
        ("13–38", 26, "published"),
        ("11–12", 2, "refused"),
        ("1–10", 10, "published"),
    ]
    assert rows[-2][4] == REFUSAL
    assert sum(row[1] for row in rows) == 71


def test_the_table_of_a_terminal_has_the_newest_batches(history):
    text = stream_table(history).to_text(100)
    assert "1,439,972 rows learned; versions: 67 published, 1 recalibrated, 3 refused." in text
    assert len(stream_table(history).rows) == 24


def test_of_many_rows_a_table_shows_the_newest():
    table = newest_table(("a",), [(i,) for i in range(500)])
    assert [row[0] for row in table.rows] == list(range(499, 299, -1))
    assert table.notes == ("The newest 200 of 500.",)


def test_names_and_reasons_are_escaped(history):
    batch = replace(history.batches[-1], aside={"<i>late": 3}, held="<script>x")
    body = body_of(StreamHistory(history.intervals, [batch]), "a <b> stream")
    assert "&lt;i&gt;late" in body
    assert "&lt;script&gt;x" in body
    assert "a &lt;b&gt; stream" in body
    assert "<script>x" not in body


def test_a_stream_that_has_only_begun_has_a_page_too():
    empty = StreamHistory([], [])
    assert "No batch has been scored by a model yet." in body_of(empty)
    first = stream_history(2)
    body = body_of(first)
    assert 'id="pace"' in body
    assert 'id="quality"' not in body
    assert stream_table(first).rows[0][0] == "2026-03-01 01:00"
    assert FIRST.year == 2026


def test_without_script_the_numbers_are_there(history):
    body = body_of(history)
    numbers = body[body.index("<details class=numbers open>") :]
    assert re.search(rf"{history.batches[-1].window.auc_sum:.4f}", numbers)


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_it_draws_light_and_dark_without_an_error_or_a_request_and_fits(
    driver, seen, history, tmp_path, width, scheme
):
    path = tmp_path / "stream.html"
    path.write_text(stream_page("A stream", history, RUN), encoding="utf-8")
    assert seen(path, width, scheme) >= 13
    # All charts share the time axis, whatever is written beside a line.
    spans = driver.execute_script(
        "return [...document.querySelectorAll('.chart')].map(c => c._fullLayout.xaxis.range.join())"
    )
    assert len(set(spans)) == 1
