"""Ray: one start serves this file, so that all small tests of the cluster are here."""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.rows import engine_blocks
from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.engine import LocalEngine, in_order, using
from harmonrank.fusion import method_class, score_files
from harmonrank.support import DataError, HarmonRankError
from logs import small_table
from losing_engine import LosingEngine
from ray_jobs import (
    Remembered,
    alone,
    count_from,
    count_on,
    die_in_task,
    die_once,
    double,
    fail,
    process_of,
)

pytest.importorskip("ray")


def test_calls_come_back_in_order_and_errors_are_our_own(ray_engine):
    assert list(in_order(ray_engine, double, range(20))) == list(range(0, 40, 2))
    with pytest.raises(DataError, match="^Row 7 is odd; repair it.$"):
        ray_engine.get(ray_engine.call(fail, 7))


def test_a_state_stays_on_its_worker_and_is_built_again_after_a_kill(ray_engine, tmp_path):
    resident = ray_engine.keep(count_from, 10)
    assert ray_engine.get(resident.call(count_on, 1)) == 11
    assert ray_engine.get(resident.call(die_once, tmp_path / "died")) == "alive"
    assert (tmp_path / "died").exists()
    assert ray_engine.get(resident.call(count_on, 2)) == 12


def test_states_share_processes_in_turn_and_are_forgotten_with_their_handle(ray_engine, tmp_path):
    marker = tmp_path / "forgotten"
    states = [ray_engine.keep(Remembered, marker), *(ray_engine.keep(int, k) for k in range(3))]
    a, b, c, d = (ray_engine.get(state.call(process_of)) for state in states)
    assert (a, b) == (c, d)
    assert a != b
    assert not marker.exists()
    del states[0]
    for state in states:  # The next calls of the engine tell the process.
        ray_engine.get(state.call(process_of))
    assert marker.exists()


def test_sums_of_many_workers_are_added_up_on_the_way_to_the_same_bits(ray_engine, monkeypatch):
    from harmonrank.engine.ray_engine import RayEngine

    monkeypatch.setattr(engine_blocks, "SENDERS", 2)
    parts = [np.random.default_rng(k).normal(size=50) for k in range(11)]
    (expected,) = HeldBlocks(parts).total(alone)
    (result,) = EngineBlocks(RayEngine(5), HeldBlocks(parts)).total(alone)
    np.testing.assert_array_equal(result, expected)


def test_a_killed_worker_costs_its_call_alone_and_makes_no_noise(ray_engine, tmp_path, capfd):
    marker = tmp_path / "died"
    assert list(in_order(ray_engine, die_in_task, range(6), marker)) == [0, 2, 4, 6, 8, 10]
    assert marker.exists()
    assert capfd.readouterr() == ("", "")


def test_nothing_listens_beyond_this_machine(ray_engine):
    import ray

    assert {node["NodeManagerAddress"] for node in ray.nodes()} == {"127.0.0.1"}
    mine = set(ray_processes())
    assert mine
    for line in Path("/proc/net/tcp6").read_text().splitlines()[1:]:
        place, state, inode = (line.split()[k] for k in (1, 3, 9))
        if state == "0A" and inode in sockets(mine):
            assert place.startswith("0000000000000000FFFF00000100007F"), place
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        place, state, inode = (line.split()[k] for k in (1, 3, 9))
        if state == "0A" and inode in sockets(mine):
            assert place.startswith("0100007F"), place


def ray_processes():
    """Yield this process and all below it."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return below


def sockets(processes):
    result = set()
    for pid in processes:
        for handle in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                target = str(handle.readlink())
            except OSError:
                continue
            if target.startswith("socket:["):
                result.add(target[8:-1])
    return result


@pytest.fixture
def parts(tmp_path):
    """Return a folder with five parts of a log."""
    folder = tmp_path / "log"
    for k in range(5):
        target = folder / f"day={k // 2}" / f"part-{k}.parquet"
        target.parent.mkdir(parents=True, exist_ok=True)
        small_table(seed=k).write_parquet(target)
    return folder


@pytest.fixture
def model(tmp_path, table, schema):
    path = tmp_path / "model"
    hr.HarmonRank().fit(table, schema).save(path)
    return path


def test_scores_of_workers_are_those_of_one_process(run, model, parts, tmp_path, ray_engine):
    here = run("score", model, parts, "-o", tmp_path / "one.parquet", "--quiet")
    there = run("score", model, parts, "-o", tmp_path / "many", "--engine", "ray", "--quiet")
    assert (here.code, there.code) == (0, 0), there.err
    one, many = tmp_path / "one.parquet", tmp_path / "many"
    names = sorted(p.relative_to(many).as_posix() for p in many.rglob("*.parquet"))
    assert names == [f"day={k // 2}/part-{k}.parquet" for k in range(5)]
    frames = [pl.read_parquet(many / name, hive_partitioning=False) for name in names]
    assert pl.concat(frames).equals(pl.read_parquet(one))


def test_a_restart_of_scoring_keeps_the_files_that_are_done(model, parts, tmp_path, ray_engine):
    """The last file cannot be written at first; once it can, the others stay as they are."""
    out, method = tmp_path / "many", hr.load(model)
    files = [str(path) for path in sorted(parts.rglob("*.parquet"))]
    blocked = tmp_path / ".many.resumable" / "day=2"
    seen = []

    def on_file(done, total):
        seen.append((done, total))
        if done == 1:  # a file of this name where a folder is to be made
            blocked.parent.mkdir(exist_ok=True)
            blocked.touch()

    with pytest.raises(HarmonRankError, match="cannot be written"):
        score_files(LocalEngine(), method, files, out, on_file=on_file)
    assert not out.exists()
    blocked.unlink()
    done = sorted(blocked.parent.rglob("*.parquet"))
    assert len(done) == 4
    times = {path.name: path.stat().st_mtime_ns for path in done}
    rows = score_files(ray_engine, method, files, out)
    assert rows == sum(pl.read_parquet(path).height for path in files)
    for name, written in times.items():
        (path,) = out.rglob(name)
        assert path.stat().st_mtime_ns == written


def test_quality_by_workers_is_that_of_one_process(world_folder, schema, tmp_path, ray_engine):
    from harmonrank.data import Schema
    from harmonrank.data.rows.log_blocks import FileBlocks
    from harmonrank.evaluation import partitioned_quality

    path = world_folder / "test.parquet"
    schema = Schema.read(world_folder / "schema.toml")
    model = hr.ClosedForm().fit(world_folder / "train.parquet", schema)
    expected = model.evaluate(path)
    for engine, rows in ((LocalEngine(), 1000), (ray_engine, 700), (ray_engine, 10_000)):
        result = partitioned_quality(model, FileBlocks(path, schema, size=rows), engine)
        assert result.rows == expected.rows
        for name, interval in expected.auc.items():
            assert result.auc[name].estimate == interval.estimate
            np.testing.assert_allclose(result.auc[name].low, interval.low, rtol=1e-9)
        np.testing.assert_allclose(result.auc_sum.high, expected.auc_sum.high, rtol=1e-9)
        assert result.request_auc == pytest.approx(expected.request_auc, rel=1e-12)
        assert result.exact_auc == pytest.approx(expected.exact_auc, rel=1e-12)
        assert result.ceiling == pytest.approx(expected.ceiling, rel=1e-12)
        assert result.effective_weights == pytest.approx(expected.effective_weights)


def test_files_scored_by_a_killed_worker_are_scored_again(model, parts, tmp_path, ray_engine):
    method, marker = hr.load(model), tmp_path / "died"
    score_files(LocalEngine(), method, parts, tmp_path / "one")
    score_files(LosingEngine(ray_engine, 3, marker), method, parts, tmp_path / "many")
    assert marker.exists()
    names = sorted(p.relative_to(tmp_path / "one") for p in (tmp_path / "one").rglob("*.*"))
    assert len(names) == 6
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("at", [2, 5])
def test_a_worker_killed_while_measuring_changes_no_figure(world_folder, tmp_path, ray_engine, at):
    from harmonrank.data import Schema
    from harmonrank.data.rows.log_blocks import FileBlocks
    from harmonrank.evaluation import partitioned_quality

    path, marker = world_folder / "test.parquet", tmp_path / "died"
    schema = Schema.read(world_folder / "schema.toml")
    model = hr.ClosedForm().fit(world_folder / "train.parquet", schema)
    blocks = FileBlocks(path, schema, size=700)
    expected = partitioned_quality(model, blocks, ray_engine)
    losing = LosingEngine(ray_engine, at, marker)
    assert partitioned_quality(model, blocks, losing) == expected
    assert marker.exists()


def test_workers_measure_whatever_one_process_does(run, folder, ray_engine, monkeypatch):
    monkeypatch.setattr("harmonrank.evaluation.table_rows._WORKER_ROWS", 250)
    given = ["fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml", "-q"]
    assert run(*given, "-o", folder / "m").code == 0
    asked = ("--baseline", "p_buy", "--value", "buy=2,like=1", "--recalibrate")
    result = []
    for engine in ("local", "ray"):
        page, out = folder / f"{engine}.html", folder / f"{engine}.json"
        more = (*asked, "--report", page, "--json", out, "--engine", engine)
        tables = [folder / f"{name}.parquet" for name in ("train", "test")]
        done = run("evaluate", folder / "m", *tables, *more)
        assert done.code == 0, done.err
        assert page.exists()
        result.append(json.loads(out.read_text()))
    here, there = result
    assert there.keys() == here.keys()
    for part in ("auc_sum", "ci", "auc", "prevalence", "request_auc", "auc_sum_as_fitted"):
        assert there[part] == pytest.approx(here[part], rel=1e-9)
    for part in ("drift", "verdict", "missing", "rows", "value"):
        assert there[part] == here[part]
    assert there["baseline"]["auc"] == here["baseline"]["auc"]


def heads_of(table, blocks_of):

    from harmonrank.data import ContextEncoder, read_log
    from harmonrank.model.fit_rows import cut_rows
    from harmonrank.model.linear.heads_fit import fit_blocks
    from harmonrank.support.storage.stored import stored

    log = read_log(table, {"objectives": {"buy": "p_buy", "like": "p_like"}, "context": ["hour"]})
    encoder = ContextEncoder.fit(log.context)
    rows = cut_rows(log.scores, log.codes(encoder), log.known_labels(), size=100)
    assert len(rows) > 5
    return stored(fit_blocks(blocks_of(rows), encoder.slots))[1]


def test_workers_fit_the_default_of_one_process_to_the_last_bit(table, ray_engine, tmp_path):
    expected = heads_of(table, lambda rows: rows)
    for blocks_of in (
        lambda rows: EngineBlocks(LocalEngine(), rows),
        lambda rows: EngineBlocks(ray_engine, rows),
        lambda rows: Mortal(EngineBlocks(ray_engine, rows), tmp_path / "died"),
    ):
        result = heads_of(table, blocks_of)
        assert result.keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(result[name], array, err_msg=name)
    assert (tmp_path / "died").exists()


class Mortal:
    """Blocks of which a worker is killed in the midst of the fit."""

    def __init__(self, blocks, marker, passes=0):
        self.blocks, self.marker, self.passes = blocks, marker, passes

    def __len__(self):
        return len(self.blocks)

    def __getitem__(self, number):
        return self.blocks[number]

    def made(self, work, *given):
        return Mortal(self.blocks.made(work, *given), self.marker)

    def each(self, work, *given):
        self.passes += 1
        if self.passes == 3:
            list(self.blocks.each(die_once, self.marker))
        return self.blocks.each(work, *given)

    def total(self, work, *given):
        self.passes += 1
        if self.passes == 3:
            list(self.blocks.each(die_once, self.marker))
        return self.blocks.total(work, *given)


def test_the_default_is_fitted_by_workers_from_the_command_line(run, folder, ray_engine):
    given = ["fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml", "-q"]
    here = run(*given, "-o", folder / "one")
    there = run(*given, "-o", folder / "two", "--engine", "ray")
    assert (here.code, there.code) == (0, 0), there.err
    for name in ("model.json", "weights.safetensors"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


@pytest.mark.parametrize(
    ("method", "valid"),
    [
        ("logistic", True),
        ("closed-form", False),
        pytest.param("logistic", False, marks=pytest.mark.slow),
        pytest.param("closed-form", True, marks=pytest.mark.slow),
    ],
)
def test_sums_of_other_methods_are_those_of_workers_to_the_last_bit(
    run, folder, ray_engine, monkeypatch, method, valid
):
    monkeypatch.setattr("harmonrank.data.rows.log_blocks.BLOCK_ROWS", 150)
    monkeypatch.setattr("harmonrank.model.fit_rows.BLOCK_ROWS", 150)
    given = ["fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml", "-q"]
    given += ["--method", method] + ["--valid", folder / "valid.parquet"] * valid
    here = run(*given, "-o", folder / "one")
    there = run(*given, "-o", folder / "two", "--engine", "ray")
    assert (here.code, there.code) == (0, 0), there.err
    for name in ("model.json", "weights.safetensors"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()


@pytest.mark.parametrize("kind", ["unwanted", "graded", "given"])
def test_objectives_of_other_kinds_are_fitted_as_in_one_process_and_measured_or_refused(
    run, folder, ray_engine, kind, monkeypatch
):
    monkeypatch.setattr("harmonrank.data.rows.log_blocks.BLOCK_ROWS", 150)
    monkeypatch.setattr("harmonrank.model.fit_rows.BLOCK_ROWS", 150)
    schema = folder / "kinds.toml"
    parts = f'{kind} = ["like"]\n' if kind != "given" else 'given = {like = "buy"}\n'
    parts += 'context = ["hour", "age"]\n'
    schema.write_text(parts + '[objectives]\nbuy = "p_buy"\nlike = "p_like"\n')
    given = ["fit", "--train", folder / "train.parquet", "--schema", schema, "-q"]
    here = run(*given, "-o", folder / "one")
    there = run(*given, "-o", folder / "two", "--engine", "ray")
    assert (here.code, there.code) == (0, 0), there.err
    for name in ("model.json", "weights.safetensors"):
        assert (folder / "one" / name).read_bytes() == (folder / "two" / name).read_bytes()
    measured = run("evaluate", folder / "one", folder / "test.parquet", "--engine", "ray")
    if kind != "unwanted":
        assert measured.code == 2
        assert "on a cluster, takes objectives of 0 and 1" in measured.err
        assert len(measured.err.strip().splitlines()) == 1
        return
    alone = run("evaluate", folder / "one", folder / "test.parquet")
    assert (measured.code, alone.code) == (0, 0)
    rows = [[line.split()[:2] for line in done.out.splitlines()[1:3]] for done in (measured, alone)]
    assert [name for name, _ in rows[0]] == ["buy", "like"]
    assert rows[0] == rows[1]


@pytest.mark.slow
def test_methods_are_compared_by_workers_with_the_same_result(run, folder, ray_engine):
    given = ["compare", "--train", folder / "train.parquet", "--test", folder / "test.parquet"]
    given += ["--schema", folder / "schema.toml", "--quiet"]
    given += ["--methods", "harmonrank,closed-form,formula-cem"]
    boards = []
    for engine in ("local", "ray"):
        done = run(*given, "--engine", engine, "--json", folder / f"{engine}.json")
        assert done.code == 0, done.err
        board = json.loads((folder / f"{engine}.json").read_text())
        for entry in board["methods"]:
            assert entry.pop("fit_seconds") > 0
        boards.append(board)
    assert boards[0] == boards[1]


@pytest.mark.parametrize("method", ["formula-cem", "formula-grid"])
def test_formulas_are_tried_by_workers_with_the_same_result(folder, schema, ray_engine, method):
    result = []
    for engine in (LocalEngine(), ray_engine):
        with using(engine):
            model = method_class(method)(trials=20).fit(folder / "train.parquet", schema)
        formula = model.state.formula
        result.append((formula.form, *formula.log_a, *formula.log_b))
    assert result[0] == result[1]


def test_the_engine_is_quiet_and_leaves_nothing(folder):
    """A whole command in a process of its own, with a cluster of its own."""
    hr.HarmonRank().fit(folder / "train.parquet", {"objectives": {"buy": "p_buy"}}).save(
        folder / "model"
    )
    given = ["score", folder / "model", folder / "test.parquet", "-o", folder / "scored"]
    # A place of its own, with a short name, as other tests may start a Ray meanwhile.
    with TemporaryDirectory(dir="/tmp") as place:
        done = subprocess.run(
            [sys.executable, "-m", "harmonrank", *given, "--engine", "ray", "--workers", "1"],
            env=os.environ | {"TMPDIR": place},
            capture_output=True,
            text=True,
            check=True,
        )
        assert not list(Path(place).glob("hr-ray-*"))
    assert done.stderr == ""
    assert len(done.stdout.splitlines()) == 1
    assert done.stdout.startswith("Scored ")


def test_an_address_without_a_cluster_is_one_sentence(tmp_path):
    code = (
        "from harmonrank.engine import open_engine\n"
        "with open_engine('ray', address='127.0.0.1:1'): pass"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "EngineError: There is no Ray cluster at '127.0.0.1:1'" in done.stderr
