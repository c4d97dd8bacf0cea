import numpy as np
import pytest
import torch

from harmonrank.data import read_log
from harmonrank.fusion import method_class
from harmonrank_lab.bench import _child, _result, _score
from harmonrank_lab.bench._peers import peer
from harmonrank_lab.bench._result import (
    Result,
    Size,
    fitted,
    interleaved,
    measure,
    schema_of,
    table_of,
    world_log,
    write_repeated,
)


def test_work_is_done_in_turn_after_a_call_that_warms_up(monkeypatch):
    order = []
    work = {name: (lambda name=name: order.append(name)) for name in ("ours", "theirs")}
    monkeypatch.setattr(_result, "_TURN_SECONDS", 0.0)
    interleaved(work, seconds=0.0, least=2)
    both = ["ours", "theirs"]
    turn = ["ours"] * 2 + ["theirs"] * 2  # its first call is not counted
    assert order == both + both + turn * 2


def test_a_turn_of_short_work_has_many_calls():
    calls = []
    interleaved({"ours": lambda: calls.append(1), "theirs": list}, seconds=0.0, least=1, most=50)
    assert len(calls) == 2 + 1 + 50


def test_our_time_stands_apart_from_that_of_peers():
    timing = measure(5, {"ours": list, "theirs": dict}, 0.0, note="why")
    result = Result("rank", "nothing", *timing)
    assert result.ours_seconds > 0
    assert set(result.peers) == {"theirs"}
    assert set(result.to_dict()) == {"group", "name", "rows", "ours_seconds", "peers", "note"}


def test_a_package_that_fails_to_load_counts_as_absent(tmp_path, monkeypatch):
    (tmp_path / "broken_peer.py").write_text("raise RuntimeError('no')")
    monkeypatch.syspath_prepend(tmp_path)
    assert peer("broken_peer") is None


@pytest.mark.parametrize("name", ["harmonrank", "harmonrank-paper"])
def test_all_runtimes_of_a_contest_give_the_same_scores(name):
    method = fitted(name, 5000)
    ours, network = _score._both(method, bent=False)
    log = world_log(1000)
    scores, codes = _score._single(log), method.fitted.encoder.encode(log.context)
    with torch.no_grad():
        example = torch.from_numpy(scores), torch.from_numpy(codes)
        theirs = network(*example).numpy()
    fused = ours(scores, codes)
    np.testing.assert_allclose(fused, theirs, atol=1e-4 * fused.std())


def test_a_repeated_log_has_the_rows_and_columns_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(_result, "_PIECE", 400)
    size = write_repeated(tmp_path / "log.parquet", 1000, objectives=3)
    log = read_log(tmp_path / "log.parquet", schema_of(3))
    assert log.scores.shape == (1000, 3)
    assert len(np.unique(log.request)) == 50
    assert size == pytest.approx(table_of(1000, 3).to_arrow().nbytes, rel=0.05)


def test_the_default_is_also_timed_with_what_its_residual_found():
    size = Size(seconds=0.0, batch_rows=500, request_rows=100, head_rows=20_000)
    for case in [case for case in _score.cases(size) if case.name.endswith("with residual")][::2]:
        result = case.run()
        assert result.ours_seconds > 0
        assert not result.peers
        counts = [int(word) for word in result.note.split() if word.isdigit()]
        assert counts[1] > 0, "no surface is timed"
        assert counts[2] == 5


def test_a_first_score_finds_no_kernels_where_none_have_been_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kept"))
    log = world_log(1000)
    method_class("closed-form")().fit(log, log.schema).save(tmp_path / "model")
    columns = dict(zip(log.schema.score_columns, log.scores.T, strict=True))
    log.context.with_columns(**columns).write_parquet(tmp_path / "rows.parquet")
    paths = tmp_path / "model", tmp_path / "rows.parquet"
    assert _child.first_score(*paths, compiling=True) > 0
    assert not (tmp_path / "kept").exists()
    assert _child.first_score(*paths) > 0
