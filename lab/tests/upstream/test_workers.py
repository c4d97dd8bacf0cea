"""Networks that predict are trained by the workers of a Ray cluster, to the same bytes."""

from functools import partial

import pytest

from harmonrank.engine import LocalEngine, using
from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.team import in_parallel
from losing_engine import LosingEngine
from ray_jobs import die_in_pool, fail_in_parallel, gather_and_die

pytest.importorskip("ray")


@pytest.mark.slow
def test_workers_that_work_in_parallel_all_begin_again(ray_engine, tmp_path, capfd):
    pytest.importorskip("torch")
    found = in_parallel(ray_engine.workers, gather_and_die, tmp_path / "team", tmp_path / "died")
    assert found == [[[0, 0]], [[1, 1], [1, 1]]]
    assert [path.name for path in tmp_path.iterdir()] == ["died"]
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_what_one_of_them_refuses_is_refused(ray_engine, tmp_path):
    pytest.importorskip("torch")
    with pytest.raises(DataError, match="^Row 7 is odd; repair it.$"):
        in_parallel(ray_engine.workers, fail_in_parallel, tmp_path / "team")


@pytest.fixture(scope="module")
def raw_log(tmp_path_factory):
    from harmonrank_lab.upstream.logs import ImportedLog, find_kuairand, import_log
    from harmonrank_lab.worlds.raw import KuaiRandWorld
    from harmonrank_lab.worlds.raw_simulation import simulate_log

    base = tmp_path_factory.mktemp("logs")
    simulate_log(KuaiRandWorld(users=80, items=40), 16_000, base / "raw", seed=3)
    import_log(find_kuairand(base / "raw"), base / "log")
    return ImportedLog.open(base / "log")


@pytest.mark.slow
def test_networks_that_predict_are_trained_by_workers_to_the_same_bytes(
    raw_log, tmp_path, ray_engine
):
    pytest.importorskip("torch")
    from harmonrank_lab.upstream import PredictorConfig, fit_predictor, score_log

    config = PredictorConfig(epochs=1, refits=1, embedding=4)
    for engine in (LocalEngine(), ray_engine):
        with using(engine):
            predictor = fit_predictor(raw_log, tmp_path / engine.name, config, folds=2, seed=1)
            score_log(predictor, raw_log, tmp_path / f"scored-{engine.name}")
    for before in ("", "scored-"):
        one, many = tmp_path / f"{before}local", tmp_path / f"{before}ray"
        names = sorted(path.name for path in one.iterdir())
        assert names == sorted(path.name for path in many.iterdir())
        for name in names:
            assert (one / name).read_bytes() == (many / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize("data_parallel", [False, True])
def test_a_worker_killed_in_the_midst_of_training_changes_no_byte(
    raw_log, tmp_path, ray_engine, monkeypatch, data_parallel
):
    """Each batch has two pieces, one for each of two workers, and each pool eight groups."""
    pytest.importorskip("torch")
    from harmonrank_lab.upstream import PredictorConfig, fit_predictor, fitting

    config = PredictorConfig(
        epochs=2, refits=1, embedding=4, pool_rows=4000, batch_rows=5000, checkpoint_seconds=1e-3
    )
    fit_predictor(raw_log, tmp_path / "one", config, folds=0, seed=1)
    (tmp_path / "notes").mkdir()
    monkeypatch.setattr(fitting, "_silent", partial(die_in_pool, tmp_path / "notes"))
    with using(ray_engine):
        given = {"folds": 0, "seed": 1, "data_parallel": data_parallel}
        fit_predictor(raw_log, tmp_path / "many", config, **given)
    notes = {path.name: path.read_text() for path in (tmp_path / "notes").iterdir()}
    assert notes.pop("died") == ""
    assert len(notes) == (2 if data_parallel else 1)
    assert len(set(notes.values())) == 1
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "many").iterdir())
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "many" / name).read_bytes()


@pytest.mark.slow
def test_a_log_scored_with_a_killed_worker_has_the_same_bytes(raw_log, tmp_path, ray_engine):
    pytest.importorskip("torch")
    from harmonrank_lab.upstream import PredictorConfig, fit_predictor, score_log

    config = PredictorConfig(epochs=1, refits=0, embedding=4)
    predictor = fit_predictor(raw_log, tmp_path / "predictor", config, folds=2)
    losing = LosingEngine(ray_engine, 2, tmp_path / "died")
    for engine, name in ((LocalEngine(), "one"), (losing, "many")):
        with using(engine):
            score_log(predictor, raw_log, tmp_path / name)
    assert (tmp_path / "died").exists()
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "many" / path.name).read_bytes(), path.name
