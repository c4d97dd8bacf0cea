import json
from dataclasses import replace

import pytest

from harmonrank_lab import bench

TINY = replace(
    bench.QUICK,
    seconds=0.0,
    batch_rows=500,
    rank_rows=(50, 200),
    metric_rows=2000,
    train_rows=15_000,
    head_rows=3000,
    score_rows=2000,
    request_rows=100,
    file_rows=3000,
    growth_rows=(2000,),
    growth_objectives=(2,),
    objective_rows=2000,
    serve_seconds=0.5,
    serve_rows=500,
)


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    monkeypatch.setattr(bench, "QUICK", TINY)


def check_contract(report):
    assert {"processor", "cores", "python", "numpy", "torch", "numba"} <= set(report["machine"])
    assert report["results"]
    for result in report["results"]:
        assert isinstance(result["name"], str)
        assert result["rows"] > 0
        assert result["ours_seconds"] > 0
        assert all(seconds > 0 for seconds in result["peers"].values())


@pytest.mark.parametrize("what", ["rank", "metrics"])
def test_json_keeps_the_contract_and_the_table_fits_a_terminal(run, tmp_path, what):
    done = run("lab", "bench", what, "--quick", "--json", tmp_path / "b.json")
    assert done.code == 0, done
    assert max(map(len, done.out.splitlines())) <= 80
    report = json.loads((tmp_path / "b.json").read_text())
    check_contract(report)


def test_a_peer_that_is_not_installed_is_left_out(run, monkeypatch):
    from harmonrank_lab.bench import _metrics, _rank

    for part in (_metrics, _rank):
        monkeypatch.setattr(part, "peer", lambda name: None)
    for what in ("rank", "metrics"):
        report = json.loads(run("lab", "bench", what, "--quick", "--json", "-", "--quiet").out)
        names = {name for result in report["results"] for name in result["peers"]}
        assert names <= {"numpy stable", "numpy unstable"}
        assert all(error["peers"] == {} for error in report["errors"])


def test_an_installed_peer_is_measured(run):
    pytest.importorskip("sklearn")
    report = json.loads(run("lab", "bench", "metrics", "--quick", "--json", "-").out)
    assert "scikit-learn" in report["results"][0]["peers"]


def test_every_case_is_announced_as_it_ends(run):
    done = run("lab", "bench", "metrics", "--quick")
    assert "[1/6] auc, logits, 2,000 rows: " in done.err
    assert "[6/6] bootstrap of 200, 2,000 rows: " in done.err


@pytest.mark.slow
def test_training_is_measured_against_pytorch(run):
    report = json.loads(run("lab", "bench", "train", "--quick", "--json", "-").out)
    check_contract(report)
    results = {result["name"]: result for result in report["results"]}
    assert "torch-eager" in results["training step, rank loss"]["peers"]
    assert set(results["training step, rank loss against BCE"]["peers"]) == {"our BCE"}
    assert "torch-eager L-BFGS" in results["fit of the default's linear heads"]["peers"]


@pytest.mark.slow
@pytest.mark.parametrize("what", ["score", "growth", "serve"])
def test_scoring_growth_and_serving_keep_the_contract(run, what):
    report = json.loads(run("lab", "bench", what, "--quick", "--json", "-").out)
    check_contract(report)
    if what == "growth":
        fits = [result for result in report["results"] if result["name"].startswith("fit")]
        assert all(result["memory_mb"] > 0 for result in fits)


def test_a_case_that_fails_is_named_and_the_others_go_on(run, tmp_path, monkeypatch):
    from harmonrank_lab.bench import _metrics

    def fail(*_, **options):
        raise MemoryError("too much")

    monkeypatch.setattr(_metrics, "grouped_auc", fail)
    done = run("lab", "bench", "metrics", "--quick", "--json", "-")
    report = json.loads(done.out)
    assert done.code == 1
    assert report["failures"] == [{"name": "grouped auc", "error": "MemoryError: too much"}]
    assert len(report["results"]) == 5
    assert "grouped auc failed: MemoryError: too much" in done.err


def test_an_unknown_part_is_refused(run):
    done = run("lab", "bench", "ranks")
    assert done.code == 2
    assert "There is no benchmark 'ranks'. Did you mean 'rank'?" in done.err
