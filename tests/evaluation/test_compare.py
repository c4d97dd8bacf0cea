import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.engine import LocalEngine, current_engine
from harmonrank.evaluation import evaluate
from harmonrank.fusion.baselines.closed_form import ClosedFormConfig
from harmonrank.fusion.baselines.logistic import LogisticConfig
from harmonrank.metrics import Interval, expected_grouped_auc, grouped_auc
from harmonrank.support import Column, DataError, OutputError, UsageError
from harmonrank.support.events import MethodEnded, MethodStarted
from harmonrank.worlds import as_frame, world, world_schema
from logs import rare_table

QUICK = {"prevalence-weights": {}}
BOTH = ["logistic", "closed-form"]


@pytest.fixture(scope="module")
def board(world_folder):
    return hr.compare(
        world_folder / "train.parquet",
        hr.Schema.read(world_folder / "schema.toml"),
        BOTH,
        test=world_folder / "test.parquet",
        valid=world_folder / "valid.parquet",
        options=QUICK,
    ).board


def test_the_json_form_is_the_contract_that_other_programs_read(board):
    numbers = json.loads(json.dumps(board.to_dict(), allow_nan=False))
    keys = {"objectives", "rows", "ceiling", "request_ceiling", "methods", "recalibrated", "drift"}
    keys |= {"upstream", "baseline", "verdict", "warnings", "criterion", "influence"}
    assert set(numbers) == keys
    assert numbers["criterion"] == "within requests"
    assert numbers["objectives"] == ["buy", "comment", "follow", "like", "long_view"]
    assert numbers["rows"] == {"train": 8000, "test": 4000}
    assert {method["name"] for method in numbers["methods"]} == set(BOTH)
    for method in numbers["methods"]:
        assert set(method["auc"]) == set(numbers["objectives"])
        assert method["auc_sum"] == pytest.approx(sum(method["auc"].values()))
        assert method["ci"][0] < method["auc_sum"] < method["ci"][1]
        assert method["regret"] == pytest.approx(numbers["ceiling"] - method["exact_auc_sum"])
        within = method["requests"]
        assert method["request_auc"] == within["auc"]
        assert method["request_ci"][0] < method["request_auc_sum"] < method["request_ci"][1]
        expected = numbers["request_ceiling"] - within["exact_auc_sum"]
        assert method["request_regret"] == pytest.approx(expected)
        assert method["events_at_k"]["k"] == 10
        for name, (low, high) in method["events_at_k"]["ci"].items():
            assert 0 < low < method["events_at_k"]["mean"][name] < high
        assert method["fit_seconds"] > 0
        assert method["error"] is None


def test_a_fit_and_a_comparison_work_on_the_engine_that_they_are_given():
    table, engine, used = rare_table(2000), LocalEngine(), []
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"})

    def note(event):
        used.append(current_engine() is engine)

    hr.compare(table, schema, ["closed-form"], test=table, engine=engine, on_event=note)
    few = len(used)
    model = hr.HarmonRank().fit(table, schema, engine=engine, on_event=note)
    assert len(used) > few
    assert all(used)
    assert current_engine() is not engine
    same, again = (evaluate(model, table, engine=each) for each in (None, engine))
    assert again.quality == same.quality


def test_an_objective_that_rules_is_said_right_after_the_verdict(tmp_path):
    table, names = rare_table(4000), ("buy", "like", "view")
    schema = hr.Schema({name: f"p_{name}" for name in names}, request="request_id")
    result = hr.compare(table, schema, ["closed-form"], test=table, baseline="p_like")
    board = result.board
    said = f"{board.verdict.sentence} All weights are equal, yet 'buy' has"
    assert result.to_table().title.startswith(said)
    assert board.to_dict()["warnings"][0] == board.caution != ""
    assert not any("All weights are equal" in note for note in result.notes)
    one = evaluate(result.models["closed-form"], table)
    assert one.to_table().title == one.board.caution == board.caution
    lifts = [note for note in result.to_table().notes if note.startswith("Events in the first 10,")]
    against = evaluate(result.models["closed-form"], table, baseline="p_like").to_table()
    assert set(lifts) <= set(against.notes)
    assert len(lifts) == 1


def test_every_score_is_measured_alone(board, world_folder):
    frame = pl.read_parquet(world_folder / "test.parquet")
    labels = frame.select(board.objectives).to_numpy()
    for m, (name, alone) in enumerate(board.to_dict()["upstream"].items()):
        areas = hr.auc(frame[alone["score"]].to_numpy(), labels)
        assert alone["score"] == f"p_{name}"
        assert alone["auc"] == areas[m]
        assert alone["auc_ci"][0] < areas[m] < alone["auc_ci"][1]
        assert alone["auc_sum"] == pytest.approx(areas.sum())
        truth = frame[f"true_{name}"].to_numpy()
        score, groups = frame[alone["score"]].to_numpy(), frame["request_id"].to_numpy()
        assert alone["exact_auc"] == hr.auc(score, truth)
        assert alone["request_exact_auc"] == expected_grouped_auc(score, truth, groups)[0]
        by_pairs = grouped_auc(score, labels[:, m], groups)[0]
        assert alone["request_auc"] == pytest.approx(by_pairs, rel=1e-12)
    row = board.to_table().rows[-1]
    assert row[0] == "own score"
    # By the measure of the other rows of the table.
    upstream = board.to_dict()["upstream"].values()
    assert row[5:10] == tuple(alone["request_exact_auc"] for alone in upstream)


def test_no_method_exceeds_the_ceiling_and_the_best_comes_first(board):
    regrets = [entry.quality.requests.regret for entry in board.entries]
    assert min(regrets) > 0
    assert min(entry.quality.regret for entry in board.entries) > 0
    assert regrets == sorted(regrets)


def test_the_ceiling_is_that_of_the_simulation(board, world_folder):
    assert board.ceiling == pytest.approx(
        json.loads((world_folder / "ceiling.json").read_text())["ceiling"]
    )


def test_without_truth_there_is_no_ceiling_and_the_measured_sum_decides(table, schema):
    board = hr.compare(table, schema, ["closed-form"], test=table).board
    assert board.ceiling is None
    assert board.to_dict()["methods"][0]["regret"] is None


@pytest.mark.parametrize(
    ("error", "told"),
    [(ZeroDivisionError("oh no"), "ZeroDivisionError: oh no"), (DataError("Too few."), "Too few.")],
)
def test_a_method_that_fails_is_listed_last_and_the_others_go_on(
    table, schema, monkeypatch, error, told
):
    def explode(*_):
        raise error

    monkeypatch.setattr(LogisticConfig, "fit", explode)
    result = hr.compare(table, schema, BOTH, test=table)
    good, bad = result.to_dict()["methods"]
    assert (good["name"], good["error"]) == ("closed-form", None)
    assert bad["error"] == told
    assert {bad[key] for key in ("auc_sum", "ci", "regret")} == {None}
    assert set(result.models) == {"closed-form"}
    assert not result.failed
    # The ceiling of a world is known even if every method fails.
    assert hr.compare(table, schema, BOTH[:1], test=table).failed


def test_a_wrong_option_is_told_before_anything_is_fitted(table, schema):
    with pytest.raises(UsageError, match="'calibration' of closed-form must be"):
        hr.compare(table, schema, BOTH, options={"closed-form": {"calibration": 3}}, test=table)


def test_events_tell_which_method_begins_and_ends(table, schema):
    events = []
    board = hr.compare(
        table, schema, ["closed-form", "closed-form"], on_event=events.append, test=table
    ).board
    (entry,) = board.entries
    measured = replace(entry, behind=None)
    assert events == [
        MethodStarted("closed-form", 0, 1),
        MethodEnded("closed-form", 0, 1, measured),
    ]


def test_every_method_gets_the_same_rows_whatever_its_place(table, schema):
    one = hr.compare(table, schema, BOTH, options=QUICK, seed=3, test=table).board
    other = hr.compare(table, schema, BOTH[::-1], options=QUICK, seed=3, test=table).board
    sums = [{e.name: e.quality.auc_sum.estimate for e in b.entries} for b in (one, other)]
    assert sums[0] == sums[1]


def test_weights_of_the_schema_count_in_the_sum(table):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, weights={"buy": 4})
    numbers = hr.compare(table, schema, ["closed-form"], test=table).board.to_dict()["methods"][0]
    auc = numbers["auc"]
    np.testing.assert_allclose(numbers["auc_sum"], 4 * auc["buy"] + auc["like"])


@pytest.mark.parametrize(
    ("methods", "options", "message"),
    [
        (["closed-fom"], {}, "There is no method 'closed-fom'. Did you mean 'closed-form'?"),
        ([], {}, "Name at least one method"),
        (["closed-form"], {"closedform": {}}, "There is no method 'closedform'"),
    ],
)
def test_methods_must_be_known(table, schema, methods, options, message):
    with pytest.raises(UsageError, match=message):
        hr.compare(table, schema, methods, options=options, test=table)


@pytest.mark.parametrize(("place", "purpose"), [("train", "training"), ("test", "test")])
def test_an_objective_without_a_positive_is_refused_before_any_fit(table, schema, place, purpose):
    tables = {"train": table, "test": table}
    tables[place] = table.with_columns(like=pl.lit(0))
    with pytest.raises(DataError, match=f"'like' has no positive label among the 600 {purpose} ro"):
        hr.compare(**tables, schema=schema, methods=["closed-form"])


def test_a_method_is_compared_with_the_first_on_the_same_resampled_rows(table, schema):
    board = hr.compare(table, schema, ["closed-form", "prevalence-weights"], test=table).board
    first, second = board.entries
    assert first.behind == Interval(0.0, 0.0, 0.0, 0.95)
    assert first.tied
    ours, theirs = first.quality.requests.auc_sum, second.quality.requests.auc_sum
    gap = ours.estimate - theirs.estimate
    assert second.behind.estimate == pytest.approx(gap)
    assert second.behind.low <= second.behind.estimate <= second.behind.high
    width = second.behind.high - second.behind.low
    assert width < theirs.high - theirs.low  # pairing removes the noise that both share
    assert board.to_dict()["methods"][1]["tied_with_best"] == second.tied


def test_finished_methods_are_not_fitted_again(table, schema, tmp_path, monkeypatch):
    names = ["closed-form", "prevalence-weights"]
    first = hr.compare(table, schema, names[:1], runs=tmp_path, test=table).board
    monkeypatch.setattr(ClosedFormConfig, "fit", None)  # would fail if it were called
    events = []
    board = hr.compare(
        table, schema, names, runs=tmp_path, on_event=events.append, test=table
    ).board
    kept = {e.entry.name: e.kept for e in events if isinstance(e, MethodEnded)}
    assert kept == {"closed-form": True, "prevalence-weights": False}
    assert {e.name: e.error for e in board.entries} == dict.fromkeys(names)
    entry = next(e for e in board.entries if e.name == "closed-form")
    assert entry.quality == first.entries[0].quality
    assert hr.load(tmp_path / "prevalence-weights").name == "prevalence-weights"


@pytest.mark.parametrize("name", ["closed-form.json", "closed-form/notes.txt"])
def test_a_foreign_file_among_the_runs_is_left_alone(table, schema, tmp_path, monkeypatch, name):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text('{"ten": "years of work"}')
    monkeypatch.setattr(ClosedFormConfig, "fit", None)  # it is told before any fit
    with pytest.raises(OutputError, match=r"so it is not overwritten; choose another"):
        hr.compare(table, schema, ["closed-form"], runs=tmp_path, test=table)
    assert mine.read_text() == '{"ten": "years of work"}'
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == [mine]


@pytest.mark.parametrize("change", ["seed", "data", "options", "broken"])
def test_a_kept_result_of_anything_else_is_made_again(table, schema, tmp_path, change):
    hr.compare(table, schema, ["closed-form"], runs=tmp_path, test=table)
    options, seed = {}, 0
    if change == "seed":
        seed = 1
    elif change == "data":
        table = table.head(500)
    elif change == "options":
        options = {"closed-form": {"calibration": "isotonic"}}
    else:
        record = tmp_path / "closed-form.json"
        record.write_bytes(record.read_bytes()[:100])
    events = []
    hr.compare(
        table,
        schema,
        ["closed-form"],
        test=table,
        seed=seed,
        options=options,
        runs=tmp_path,
        on_event=events.append,
    )
    assert not events[-1].kept


def test_every_method_is_shown_recalibrated_and_as_fitted(tmp_path):
    old = world("conflict")
    new = old.with_upstream(("like",), a=1.6, b=-1.0)
    train, test = (
        as_frame(old, old.sample(30_000, seed=1)),
        as_frame(new, new.sample(30_000, seed=2)),
    )
    names = ["harmonrank", "closed-form"]
    plain = {
        e.name: e for e in hr.compare(train, world_schema(old), names, test=test).board.entries
    }
    for _ in range(2):  # fitted, then kept
        board = hr.compare(
            train, world_schema(old), names, runs=tmp_path, recalibrate=True, test=test
        ).board
        assert board.drift.replaced == ("p_like",)
        assert board.to_dict()["recalibrated"]
        for entry in board.entries:
            assert entry.as_fitted == plain[entry.name].quality
            assert entry.quality.regret < entry.as_fitted.regret - 0.005
        table = board.to_table()
        assert [c.title for c in table.columns[:3]] == ["method", "within requests", "as fitted"]
        before = [entry.as_fitted.requests.total for entry in board.entries]
        assert [row[2] for row in table.rows[1:-1]] == before
        assert table.rows[0][table.columns.index(Column("regret", ".4f"))] == 0
        assert "without labels" in str(table)


def test_rows_of_weight_0_count_for_nothing_in_a_comparison(table, schema):
    schema = replace(schema, sample_weight="v")
    real, lies = (table.with_columns(v=pl.lit(v)) for v in (1.0, 0.0))
    lies = lies.with_columns(buy=1 - pl.col("buy"), p_buy=1 - pl.col("p_buy"))
    one, other = (
        hr.compare(rows, schema, ["closed-form", "logistic"], test=rows).board.to_dict()
        for rows in (real, pl.concat([real, lies]))
    )
    for board in (one, other):
        for entry in board["methods"]:
            del entry["fit_seconds"]
    assert one == other


def test_the_models_are_those_that_were_measured_kept_or_not(table, schema, tmp_path):
    fitted, kept = (
        hr.compare(table, schema, ["closed-form"], test=table, runs=tmp_path) for _ in range(2)
    )
    expected = hr.ClosedForm().fit(table, schema).score(table)
    for result in (fitted, kept):
        np.testing.assert_array_equal(result.models["closed-form"].score(table), expected)


def test_a_log_is_cut_as_a_split_cuts_it_and_its_baseline_with_it(table, schema):
    log = table.with_columns(at=pl.int_range(pl.len()) // 10 * 60)
    schema = replace(schema, time="at")
    methods = ["closed-form", "logistic"]
    train, test = log.head(480), log.tail(120)
    two = hr.compare(train, schema, methods, test=test, baseline="p_buy")
    one = hr.compare(log, schema, methods, split="time", baseline="p_buy")
    assert one.notes[0].startswith("Split by time, test rows from 1970-01-01 00:48:00: 480 train")
    assert one.verdict == two.verdict
    assert one.board.qualities == two.board.qualities
    share = hr.Cut("request", test_share=0.5)
    assert hr.compare(log, schema, methods, split=share).board.test_rows < 400
    with pytest.raises(UsageError, match="Give either --test TABLE, or --split"):
        hr.compare(log, schema, methods)


def test_a_table_larger_than_memory_is_compared_in_blocks(world_folder, monkeypatch):
    monkeypatch.setattr("harmonrank.fusion.quality.block_quality.SAMPLE_ROWS", 2000)
    schema = hr.Schema.read(world_folder / "schema.toml")
    tables = {"train": world_folder / "train.parquet", "test": world_folder / "test.parquet"}
    whole = hr.compare(**tables, schema=schema, methods=BOTH)
    blocks = hr.compare(**tables, schema=schema, methods=BOTH, memory="1KB")
    assert blocks.board.to_dict()["rows"] == whole.board.to_dict()["rows"]
    assert blocks.test.rows < whole.test.rows
    for name, quality in whole.board.qualities.items():
        for objective, area in quality.auc.items():
            again = blocks.board.qualities[name].auc[objective]
            assert again.estimate == pytest.approx(area.estimate, abs=1e-9)
    assert [note.split(".")[0] for note in blocks.notes[:2]] == ["Training rows", "Test rows"]


def test_the_page_of_a_comparison_is_one_call(table, schema, tmp_path):
    pytest.importorskip("plotly")
    result = hr.compare(table, schema, ["closed-form", "logistic"], test=table)
    result.report(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 fusions of buy, like" in text
    assert result.verdict.sentence in text
