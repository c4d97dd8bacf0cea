"""The paper made again: the rule of verdicts, what is run and what is not, every table."""

import json
import shutil
from dataclasses import make_dataclass, replace

import numpy as np
import pytest

from harmonrank.paper.methods.neural_methods import Mbce
from harmonrank.support import DataError, UsageError, limited_threads
from harmonrank_lab.events import CellEnded, CellStarted
from harmonrank_lab.paper_tables import (
    PAPER,
    QUICK,
    TABLES,
    Estimate,
    PaperTable,
    Settings,
    _online,
    _speed,
    reproduce,
)
from harmonrank_lab.paper_tables._data import data_of
from harmonrank_lab.paper_tables._fit import FitCell, fewer_positives
from harmonrank_lab.paper_tables._speed import SpeedCell, _sizes
from harmonrank_lab.paper_tables._table import estimate_of, judge, verdict

TINY = replace(QUICK, rows=2000, seeds=2, epochs=1, shares=(0.5,), seconds=0.0)
FITS = ("main", "losses", "components", "buckets", "skew", "pareto", "relations")


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """On tiny batches threads only wait."""
    with limited_threads(1):
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def tables(runs):
    return reproduce(FITS, TINY, runs=runs, command="harmonrank lab reproduce")


# The rule


def test_an_interval_over_seeds_is_that_of_the_t_test():
    stats = pytest.importorskip("scipy.stats")
    values = np.array([0.02, 0.05, 0.03, 0.06])
    estimate = estimate_of(values[:, None])
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert estimate.reach == pytest.approx((high - low) / 2, rel=2e-3)
    assert estimate.mean == pytest.approx(values.mean())
    assert estimate.seeds == 4


def test_resampled_rows_add_to_the_interval_in_squares():
    rng = np.random.default_rng(0)
    seeds, rows = np.array([[1.0], [1.2]]), rng.normal(1.1, 0.3, (1, 200))
    both = estimate_of(np.hstack([seeds, np.repeat(rows, 2, axis=0)]))
    alone = estimate_of(seeds)
    extra = 1.96 * rows.std(ddof=1)
    assert both.reach**2 == pytest.approx(alone.reach**2 + extra**2, rel=1e-3)


def test_a_resampled_log_that_lost_a_class_is_left_out():
    values = np.array([[1.0, 0.9, 1.1, np.nan], [1.0, 0.9, 1.1, np.nan]])
    assert estimate_of(values).reach == pytest.approx(1.96 * np.std([0.9, 1.1], ddof=1), rel=1e-3)


def test_a_claim_holds_only_if_all_of_the_interval_says_so():
    assert judge(Estimate(0.3, 0.1, 0.5, 3)) == "held"
    assert judge(Estimate(-0.3, -0.5, -0.1, 3)) == "did not hold"
    assert judge(Estimate(0.1, -0.1, 0.3, 3)) == "cannot be told"
    assert judge(Estimate(0.0, 0.0, 0.0, 3)) == "cannot be told"


def test_one_seed_tells_nothing_about_chance_and_neither_does_a_failure():
    assert verdict("x", np.array([[9.0]])).outcome == "cannot be told"
    assert verdict("x", None).outcome == "cannot be told"
    assert verdict("x", np.array([[9.0], [9.1]])).outcome == "held"


# What is run


def test_a_second_run_does_nothing_and_finds_the_same(runs, tables):
    events = []
    again = reproduce(
        FITS, TINY, runs=runs, command="harmonrank lab reproduce", on_event=events.append
    )
    assert again == tables
    assert not [event for event in events if isinstance(event, CellStarted)]
    assert all(event.kept for event in events if isinstance(event, CellEnded))


def test_tables_share_experiments(tmp_path, runs, tables):
    events = []
    reproduce(["buckets", "components", "losses"], TINY, runs=runs, on_event=events.append)
    kept = [event.name for event in events]
    assert len(kept) == len(set(kept)) == 2 * (1 + 4 + 5 + 4), "few on the logit are the default"
    assert kept.count("elive-5 harmonrank-paper seed=0") == 1


def test_a_run_that_was_stopped_does_the_rest_only(tmp_path):
    class StopError(Exception):
        pass

    def stop(event):
        if isinstance(event, CellEnded) and event.index == 2:
            raise StopError

    with pytest.raises(StopError):
        reproduce(["losses"], TINY, runs=tmp_path, on_event=stop)
    started = []
    reproduce(["losses"], TINY, runs=tmp_path, on_event=started.append)
    assert sum(isinstance(event, CellStarted) for event in started) == 2 * 5 - 3


def test_a_damaged_result_is_made_again(tmp_path):
    first = reproduce(["relations"], TINY, runs=tmp_path)
    for path in tmp_path.glob("*.json"):
        path.write_text("{", encoding="utf-8")
    assert reproduce(["relations"], TINY, runs=tmp_path) == first


def test_an_experiment_that_fails_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    def fails(*_, **__):
        raise DataError("These rows cannot be learned from.")

    monkeypatch.setattr("harmonrank.fusion.method.Method.fit", fails)
    (table,) = reproduce(["losses"], TINY, runs=tmp_path)
    failed = [row for row in table.rows if row.name != "best possible"]
    assert all(row.ours is None and "cannot be learned from" in row.note for row in failed)
    assert {v.outcome for v in table.verdicts} == {"cannot be told"}


def test_other_settings_are_other_experiments():
    data = data_of("elive", 2000)
    cell = FitCell(data, data.objectives, "mbce", 0)
    assert cell.key == FitCell(data_of("elive", 2000), data.objectives, "mbce", 0).key
    others = [
        FitCell(data_of("elive", 3000), data.objectives, "mbce", 0),
        replace(cell, seed=1),
        replace(cell, options=(("epochs", 3),)),
        replace(cell, weights=(1.0, 0, 0, 0, 0)),
        replace(cell, skewed="buy", odds=100),
        replace(cell, objectives=data.objectives[:3]),
    ]
    assert len({cell.key, *(other.key for other in others)}) == 7


# Protocols


def test_a_method_with_another_default_is_another_experiment(monkeypatch):
    data = data_of("elive", 2000)
    cell = FitCell(data, data.objectives, "mbce", 0)
    before = cell.key
    tuned = make_dataclass(
        "Tuned", [("learning_rate", float, 0.5)], bases=(Mbce.Config,), frozen=True
    )
    monkeypatch.setattr(Mbce, "Config", tuned)
    assert cell.key != before


def test_the_papers_protocol_treats_all_networks_alike_and_our_default_as_it_is():
    networks = [PAPER.options(name) for name in ("mbce", "reinforce", "harmonrank-paper")]
    assert networks[0] == networks[1] == networks[2]
    assert networks[0] == {
        "buckets": 300,
        "scale": "raw",
        "interpolate": False,
        "optimizer": "sgd",
        "learning_rate": 1e-4,
        "schedule": "constant",
        "weight_decay": 0.0,
        "batch_rows": 10_240,
        "epochs": 500,
        "early_stopping": False,
    }
    assert PAPER.options("harmonrank") == {}
    assert (PAPER.rows, PAPER.seeds) == (1_000_000, 3)


def test_summed_losses_raise_the_rate_by_the_rows_of_a_batch_and_make_tables_of_their_own():
    summed = Settings(losses="sum")
    assert summed.options("mbce")["learning_rate"] == pytest.approx(1.024)
    assert Settings(losses="sum", batch_rows=100).options("mbce")["learning_rate"] == 0.01
    assert summed.options("harmonrank") == {}
    assert summed.words().startswith("paper protocol, summed losses: ")


def test_a_budget_changes_what_it_says_and_the_words_say_it():
    budget = Settings(epochs=50, rows=300_000)
    assert budget.options("mbce")["epochs"] == 50
    assert "50 epochs" in budget.words()
    tuned = Settings(protocol="tuned", steps=2000, batch_rows=2048)
    assert tuned.options("mbce") == {"steps": 2000, "batch_rows": 2048}
    assert tuned.options("reinforce") == {"steps": 2000, "batch_rows": 512}, "its own are smaller"
    assert "at most 2,000 steps" in tuned.words()
    assert Settings(protocol="tuned").options("mbce") == {}
    assert Settings(protocol="tuned").words().endswith("each method's own tuned settings")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rows": 10}, "Option 'rows' of reproduce must be a whole number from 1,000. Got 10."),
        ({"seeds": 0}, "Option 'seeds' of reproduce must be a whole number from 1 to .* Got 0."),
        ({"epochs": 0}, "Option 'epochs' of reproduce must be a whole number from 1 to .* Got 0."),
        ({"losses": "max"}, "Option 'losses' of reproduce must be 'mean' or 'sum'. Got 'max'."),
        ({"losses": "sum", "protocol": "tuned"}, "Summed losses belong to the paper protocol"),
        (
            {"protocol": "best"},
            "Option 'protocol' of reproduce must be 'paper' or 'tuned'. Got 'best'.",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        Settings(**change)


# Tables


def test_every_table_has_the_papers_figures_an_interval_and_a_verdict_per_claim(tables):
    assert [table.key for table in tables] == ["main", *FITS]
    for table in tables:
        assert table.verdicts
        assert all(row.ours is not None and row.ours.reach is not None for row in table.rows)
        assert "2 seeds" in table.settings
        stated = [row for row in table.rows if row.paper is not None]
        assert stated or table.key in ("pareto", "relations")
        for row in table.rows:
            if row.unit == "AUC-sum" and row.name != "best possible":
                assert row.regret.mean > -1e-9


def test_main_compares_five_ways_on_two_data_sets_and_two_sets_of_objectives(tables):
    elive, qkvideo = tables[0], tables[1]
    assert "‘elive’" in elive.data
    assert "‘qkvideo’" in qkvideo.data
    assert [row.group for row in elive.rows] == ["3 objectives"] * 6 + ["5 objectives"] * 6
    assert [row.paper for row in qkvideo.rows[:4]] == [2.2420, 2.4040, 2.2488, 2.4617]
    gap = next(v for v in elive.verdicts if v.claim == "HarmonRank beats MBCE, 5 objectives")
    assert gap.paper == pytest.approx(3.7522 - 3.6682)


def test_a_verdict_is_the_difference_of_the_rows_it_compares(tables):
    losses = next(table for table in tables if table.key == "losses")
    by_name = {row.name: row.ours.mean for row in losses.rows}
    whole = by_name["soft ranks (HarmonRank)"]
    beaten = [v for v in losses.verdicts if v.claim.startswith("the rank loss beats ")]
    assert len(beaten) == 3
    for v in beaten:
        name = v.claim.removeprefix("the rank loss beats ")
        assert v.ours.mean == pytest.approx(whole - by_name[name])


def test_drops_compare_like_with_like(tables):
    skew = next(table for table in tables if table.key == "skew")
    rows = {(row.group, row.name): row for row in skew.rows}
    for v in skew.verdicts:
        if "drops less than MBCE" in v.claim:
            odds = v.claim.rpartition(" at ")[2]
            both = [rows[f"drop at {odds}", n] for n in ("MBCE", "HarmonRank (paper)")]
            assert v.ours.mean == pytest.approx(both[0].ours.mean - both[1].ours.mean)
            assert v.paper == pytest.approx(both[0].paper - both[1].paper)
    drop = rows["drop at 1:10⁵", "MBCE"].paper
    assert drop == pytest.approx(9.8, abs=0.05)


def test_fewer_positives_thins_out_one_objective_and_nests():
    train = data_of("conflict", 20_000).logs(0, data_of("conflict", 20_000).objectives).train
    some, few = (fewer_positives(train, 3, odds, seed=1) for odds in (100, 1000))
    counts = [int(log.known_labels()[:, 3].sum()) for log in (train, some, few)]
    negatives = train.rows - counts[0]
    assert counts[1:] == [round(negatives / 100), round(negatives / 1000)]
    assert some.rows - counts[1] == few.rows - counts[2] == negatives
    alive = {tuple(row) for row in some.scores}
    assert all(tuple(row) in alive for row in few.scores)


def test_fronts_have_a_point_per_weight_and_none_covers_more_than_the_best(tables):
    pareto = next(table for table in tables if table.key == "pareto")
    assert list(pareto.curves) == [
        "buy – follow",
        "comment – buy",
        "comment – follow",
        "long_view – follow",
    ]
    for curves in pareto.curves.values():
        assert {len(points) for points in curves.values()} == {1}
    assert all(row.regret is None or row.regret.mean > 0 for row in pareto.rows)


def test_relations_show_labels_truth_and_attention(tables):
    relations = tables[-1]
    assert list(relations.matrices) == ["labels (Spearman)", "attention A_r", "true latent logits"]
    attention = np.array(relations.matrices["attention A_r"])
    assert attention.sum(axis=1) == pytest.approx(np.ones(5))
    assert len(relations.rows) == 3


def test_speeds_are_measured_in_turn(tmp_path, monkeypatch):
    monkeypatch.setattr(_speed, "_TURN_ROWS", 4000)
    timed = reproduce(["training-speed", "inference"], TINY, runs=tmp_path)
    speed, cost = timed
    assert [row.paper for row in speed.rows] == [27_400, 24_800, 26_900, 26_000]
    assert all(row.ours.mean > 0 and row.ours.seeds >= 5 for row in speed.rows)
    sizes = {row.name: row.ours.mean for row in cost.rows if row.group == "network"}
    assert sizes == {"parameters": 2426, "FLOPs": 272_793_600}


def test_sizes_need_no_context(table, schema):
    from harmonrank.data import read_log

    log = read_log(table, replace(schema, context=()))
    assert _sizes(log)["parameters"] > 0


def test_a_table_survives_json(tables):
    for table in tables:
        assert PaperTable.from_dict(json.loads(json.dumps(table.to_dict()))) == table


# Other data


def test_a_folder_resamples_its_rows_and_knows_no_ceiling_of_three(world_folder, tmp_path):
    (table,) = reproduce(["main"], TINY, runs=tmp_path, data=str(world_folder))
    assert "the world ‘elive’" in table.data
    three = [row for row in table.rows if row.group == "3 objectives"]
    five = [row for row in table.rows if row.group == "5 objectives"]
    assert all(row.regret is None for row in three)
    assert all(row.regret is not None for row in five if row.name != "best possible")
    ours = next(row for row in five if "ours" in row.name)
    assert ours.ours.reach > 0, "seeds change nothing in our default, but rows do"
    assert ours.paper is None


def test_a_log_without_truth_and_with_two_objectives_has_tables_too(folder, tmp_path):
    settings = replace(TINY, rows=1000)
    done = reproduce(["main", "skew", "pareto", "relations"], settings, runs=tmp_path / "r",
                     data=str(folder))  # fmt: skip
    assert [table.key for table in done] == ["main", "skew", "pareto", "relations"]
    assert all(row.paper is None and row.regret is None for table in done for row in table.rows)
    assert list(done[2].curves) == ["buy – like"]
    assert list(done[3].matrices) == ["labels (Spearman)", "attention A_r"]


def test_bad_data_is_refused_before_any_work(tmp_path):
    with pytest.raises(UsageError, match="There is no world or folder 'elife'. Did you mean 'el"):
        data_of("elife", None)
    with pytest.raises(DataError, match="has no schema.toml and no train.parquet and no valid"):
        data_of(str(tmp_path), None)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="is a file; expected a world"):
        data_of(str(tmp_path / "file"), None)


@pytest.mark.parametrize(
    "content", ["5", "null", '"world"', '{"world": {}}', '{"world": ["elive"]}', '{"world": 3}']
)
def test_a_ceiling_that_is_none_is_refused_in_a_sentence(world_folder, tmp_path, content):
    folder = shutil.copytree(world_folder, tmp_path / "w")
    (folder / "ceiling.json").write_text(content)
    with pytest.raises(DataError, match=r"ceiling.json': expected (object|str)"):
        data_of(str(folder), None)


def test_a_timing_has_one_name_whatever_kernels_do_to_the_threads():
    cell = SpeedCell(data_of("elive", 2000), "inference", 1.0)
    before = cell.key
    with limited_threads(7):
        assert cell.key == before


def test_an_unknown_table_is_refused(tmp_path):
    with pytest.raises(UsageError, match="There is no table 'loses'. Did you mean 'losses'?"):
        reproduce(["loses"], TINY, runs=tmp_path)
    with pytest.raises(UsageError, match="Name at least one table. Known: main, "):
        reproduce([], TINY, runs=tmp_path)
    assert SpeedCell(data_of("elive", 2000), "inference", 1.0).key.startswith("elive-inference-")
    assert set(FITS) < set(TABLES)


def test_online_compares_four_arms_by_true_chance(tmp_path, monkeypatch):
    # Networks would take their thousands of steps here too.
    monkeypatch.setattr(_online, "_ARMS", dict.fromkeys(_online._ARMS, "harmonrank"))
    rules = {
        "days": 1, "hours": 2, "users": 300, "requests_per_hour": 100, "warmup_hours": 3,
        "retrain_hours": 3,
    }  # fmt: skip
    settings = replace(TINY, online=rules)
    (table,) = reproduce(["online"], settings, data="qkvideo", runs=tmp_path)
    exact = [row for row in table.rows if row.group.endswith("by true chance")]
    measured = [row for row in table.rows if row.group.endswith("as measured, seed 0")]
    assert len(exact) == 3 * 5
    assert len(measured) > 5
    assert all(row.ours.reach is not None for row in exact)
    assert len(table.verdicts) == 3 * 5
    assert reproduce(["online"], settings, data="qkvideo", runs=tmp_path) == (table,)


def test_online_without_a_purchase_to_learn_from_says_so(tmp_path):
    rules = {"days": 1, "hours": 1, "users": 50, "requests_per_hour": 5, "warmup_hours": 1}
    (table,) = reproduce(["online"], replace(TINY, online=rules), runs=tmp_path)
    assert not table.rows
    assert "The warm-up is too short" in table.notes[0]


def test_online_needs_a_world(world_folder, tmp_path):
    with pytest.raises(UsageError, match="The table 'online' needs a world"):
        reproduce(["online"], TINY, runs=tmp_path, data=str(world_folder))
