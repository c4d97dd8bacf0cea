"""`fit --set optimise=requests`, and what other verbs say of such a model."""

import json

import pytest


def test_evaluate_and_explain_tell_which_auc_is_optimised(run, world_folder, tmp_path):
    table, model = world_folder / "test.parquet", tmp_path / "model"
    train, schema = world_folder / "train.parquet", world_folder / "schema.toml"
    done = run(
        *("fit", "--train", train, "--schema", schema, "--set", "optimise=requests", "-o", model)
    )
    assert done.code == 0, done
    done = run("evaluate", model, table, "--json", "-")
    found = json.loads(done.out)
    assert found["optimises"] == "requests"
    assert found["requests"]["ci"][0] < found["requests"]["auc_sum"] < found["requests"]["ci"][1]
    assert found["requests"]["regret"] > 0
    assert found["regret"] > 0
    assert "Within requests: AUC-sum" in done.err
    assert "the fit is for AUC within requests" in " ".join(done.err.split())
    done = run("explain", model, "--data", table, "--row", 5, "--json", "-")
    found, text = json.loads(done.out), " ".join(done.err.split())
    assert found["optimises"] == "requests"
    plain = run("explain", model).out
    assert "Fitted for AUC within requests." in " ".join(plain.split())
    assert "w κ p, as fitted for requests" in text
    assert sum(found["row"]["adds"].values()) == pytest.approx(found["row"]["fused"])


def test_a_fit_without_requests_is_refused_in_one_sentence(run, world_folder, tmp_path):
    columns = ("--scores", "p_buy,p_like", "--labels", "buy,like", "--context", "age")
    done = run(
        *("fit", "--train", world_folder / "train.parquet", *columns),
        *("--set", "optimise=requests", "-o", tmp_path / "model"),
    )
    assert done.code == 2
    assert "needs a request column" in done.err
    assert not (tmp_path / "model").exists()
