"""Networks that predict are trained by the workers of a Ray cluster, to the same bytes."""

from functools import partial

import pytest

from harmonrank.engine import LocalEngine, using
from losing_engine import LosingEngine
from ray_jobs import die_in_pool

pytest.importorskip("ray")


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
def test_a_worker_killed_in_the_midst_of_training_changes_no_byte(
    raw_log, tmp_path, ray_engine, monkeypatch
):
    pytest.importorskip("torch")
    from harmonrank_lab.upstream import PredictorConfig, fit_predictor, fitting

    config = PredictorConfig(
        epochs=2, refits=1, embedding=4, pool_rows=4000, batch_rows=5000, checkpoint_seconds=1e-3
    )
    fit_predictor(raw_log, tmp_path / "one", config, folds=0, seed=1)
    (tmp_path / "notes").mkdir()
    monkeypatch.setattr(fitting, "_silent", partial(die_in_pool, tmp_path / "notes"))
    with using(ray_engine):
        fit_predictor(raw_log, tmp_path / "many", config, folds=0, seed=1)
    notes = {path.name: path.read_text() for path in (tmp_path / "notes").iterdir()}
    assert notes.pop("died") == ""
    assert len(notes) == 1
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
