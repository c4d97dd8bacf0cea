import re
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from msgspec.structs import replace

from harmonrank.reports import run_of
from harmonrank.reports.stream import StreamHistory, stream_page, stream_table
from harmonrank.reports.stream._charts import drift_plots, learner_plots, pace_plots, quality_plots
from harmonrank.reports.stream._marks import milliseconds
from harmonrank.reports.stream._tables import newest_table, version_table
from harmonrank.streaming import BatchLearned, IntervalCompleted
from harmonrank.streaming.loop_events import Publication, QualityFacts, ScoreMove

OBJECTIVES = ("buy", "comment", "follow", "like", "long_view")
AREAS = np.array([0.78, 0.73, 0.76, 0.74, 0.71])
FIRST = datetime(2026, 3, 1, tzinfo=UTC)
REFUSAL = "auc buy: AUC changes by -0.0213 (-0.0301 to -0.0125); it may fall by 0.002"


def quality(rng, shift, noise, exact=True):
    areas = AREAS + shift + noise * rng.normal(size=5)
    wide = 6 * noise + 0.004
    truth = AREAS + shift
    return QualityFacts(
        1,
        20_000,
        dict(zip(OBJECTIVES, areas, strict=True)),
        {n: (a - wide, a + wide) for n, a in zip(OBJECTIVES, areas, strict=True)},
        areas.sum(),
        (areas.sum() - 3 * wide, areas.sum() + 3 * wide),
        dict(zip(OBJECTIVES, truth, strict=True)) if exact else None,
        truth.sum() if exact else None,
        AREAS.sum() + 0.11 if exact else None,
    )


def stream_history(hours=72, *, exact=True, swap=40):
    """Return a stream of some hours; upstream models of two scores are replaced at one of them."""
    rng, version, intervals, batches, learned = np.random.default_rng(0), 0, [], [], 0
    for hour in range(hours):
        end = FIRST + timedelta(hours=hour + 1)
        jump = hour == swap
        moves = {
            f"p_{name}": ScoreMove(
                float(rng.normal(0, 0.01) + 0.9 * (jump and name in ("like", "comment"))),
                1.0,
                "as before",
                float(abs(rng.normal(0.003, 0.002)) + 0.7 * (jump and name in ("like", "comment"))),
            )
            for name in OBJECTIVES
        }
        offer = None
        if jump:
            offer = Publication(version := version + 1, None, recalibrated=True)
        change = ["p_comment", "p_like"] if jump else []
        evidence = ["p_like moved and p_buy did not, though their correlation is +0.41."] * jump
        rows = int(20_000 + 8_000 * np.sin(hour / 24 * 2 * np.pi))
        interval = {"start": end - timedelta(hours=1), "end": end, "rows": rows}
        intervals.append(
            IntervalCompleted(
                **interval,
                moves=moves if hour > 1 else {},
                replaced=change,
                evidence=evidence,
                version=offer,
            )
        )
        learned += rows
        loss = -0.03 * max(0, 1 - abs(hour - swap) / 2) if hour >= swap else 0.0
        shift = 0.015 * (1 - np.exp(-hour / 12)) + loss / 5
        refused = REFUSAL if hour in (12, 13, 50) else None
        made = None if hour < 2 else Publication(version := version + 1, refused)
        batches.append(
            BatchLearned(
                **interval,
                learned=rows,
                learned_rows=learned,
                guard_rows=0,
                positives={},
                window=quality(rng, shift, 0.001, exact) if hour > 1 else None,
                batch=quality(rng, shift, 0.01, exact) if hour > 1 else None,
                version=made,
                held="too few rows for a model yet" if hour < 2 else None,
                learner={
                    "learner": "sums",
                    "learned_rows": learned,
                    "half_life_hours": 24.0 + hour % 5,
                },
                lag_seconds=3720 + float(rng.normal(0, 60)),
                rows_per_second=210_000 + float(rng.normal(0, 9_000)),
                aside={"late": 12 * hour, "duplicate": 3 * hour, "malformed": 2},
            )
        )
    return StreamHistory(intervals, batches)


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


def test_what_is_known_within_requests_comes_first_and_all_rows_stand_beside_it(history):
    def known(quality):
        facts = QualityFacts(1, 20_000, {"buy": 0.61}, {"buy": (0.6, 0.62)}, 0.61, (0.59, 0.63))
        return quality and replace(quality, requests=facts)

    both = StreamHistory(
        history.intervals,
        [replace(b, window=known(b.window), batch=known(b.batch)) for b in history.batches],
    )
    titles = [plot.title for plot in quality_plots(both)]
    assert titles[:2] == [
        f"{what} within requests, prequential" for what in ("AUC-sum", "AUC of buy")
    ]
    assert titles[2] == "AUC-sum over all rows, prequential"
    assert len(titles) == 2 + 6
    newest = history.batches[-1].window
    assert f"0.6100 (0.5900 to 0.6300) within requests, and over all rows {newest.auc_sum:.4f}" in (
        body_of(both)
    )
    table = stream_table(both)
    assert table.rows[-1][2:5] == (0.61, "0.5900 – 0.6300", newest.auc_sum)
    assert max(map(len, table.to_text(80).splitlines())) <= 80


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
