"""`frontier`, and what --at means in every verb that takes it."""

import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr


@pytest.fixture(scope="module")
def fitted(tmp_path_factory, world_folder):
    schema = hr.Schema.read(world_folder / "schema.toml").subset(["comment", "like", "long_view"])
    path = tmp_path_factory.mktemp("frontier") / "model"
    hr.ClosedForm().fit(world_folder / "train.parquet", schema).save(path)
    return path


@pytest.fixture
def model(fitted, tmp_path):
    hr.load(fitted).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def frontier(run, model, world_folder):
    """Return a function that runs the verb on few points."""

    def command(*more, model=model, rows="test"):
        table = world_folder / f"{rows}.parquet"
        return run("frontier", model, "--data", table, "--points", 10, *more)

    return command


def test_the_verb_prints_points_and_writes_all_of_them_as_json(frontier, tmp_path):
    done = frontier("--json", tmp_path / "f.json", "-k", 3)
    assert done.code == 0, done
    for words in ("current", "knee", "most like", "Hypervolume above chance", "events at 3"):
        assert words in done.out
    assert max(map(len, done.out.splitlines())) <= 80
    parts = json.loads((tmp_path / "f.json").read_text())
    assert parts["objectives"] == ["comment", "like", "long_view"]
    assert set(parts["fronts"]) == {"auc", "request_auc", "events_at_k"}
    assert parts["points"][0]["weights"] == {"comment": 1, "like": 1, "long_view": 1}
    assert parts["criterion"] == "within requests"
    assert parts["points"][parts["knee"]]["unbeaten"]["request_auc"]
    assert parts["chosen"] is None
    assert "|" in frontier("--format", "md").out


@pytest.mark.parametrize(
    ("choose", "weights"),
    [
        ((), None),
        (("--choose", "knee"), None),
        (("--choose", "current"), {"comment": 1, "like": 1, "long_view": 1}),
        (("--choose", "1"), {"comment": 0, "like": 0, "long_view": 3}),
        (("--choose", "like=5"), {"comment": 1, "like": 5, "long_view": 1}),
    ],
    ids=["left out", "knee", "current", "number", "weights"],
)
def test_a_point_is_kept_in_the_model(frontier, model, choose, weights):
    done = frontier("--save", "mine", *choose, "--json", "-")
    assert done.code == 0, done
    chosen = json.loads(done.out)["chosen"]
    kept = hr.load(model).points["mine"]
    assert chosen["name"] == "mine"
    assert kept == pytest.approx(weights or chosen["weights"])


def test_at_means_the_weights_of_the_point_in_every_verb(
    frontier, run, model, world_folder, tmp_path
):
    assert frontier("--save", "likes", "--choose", "like=9,comment=0.2").code == 0
    test, fitted = world_folder / "test.parquet", hr.load(model)
    weights = {"like": 9, "comment": 0.2}
    run("score", model, test, "--at", "likes", "-o", tmp_path / "s.parquet")
    scored = pl.read_parquet(tmp_path / "s.parquet")["fused"].to_numpy()
    np.testing.assert_array_equal(scored, fitted.score(test, weights=weights))
    run("rank", model, test, "--at", "likes", "-k", 2, "-o", tmp_path / "r.parquet")
    best = fitted.rank(test, 2, weights=weights)
    assert pl.read_parquet(tmp_path / "r.parquet")["fused"].equals(best["fused"])
    told = json.loads(run("evaluate", model, test, "--at", "likes", "--json", "-").out)
    assert told["auc_sum"] == fitted.evaluate(test, weights=weights).auc_sum.estimate
    told = json.loads(run("explain", model, "--at", "likes", "--json", "-").out)
    assert told["weight"]["like"] == 9
    told = json.loads(frontier("--at", "likes", "--json", "-").out)
    assert told["count"] == {"comment": 0.2, "like": 9, "long_view": 1}
    assert told["named"] == {"likes": len(told["points"]) - 1}


def test_weights_say_what_each_auc_counts(frontier):
    told = json.loads(frontier("--weights", "like=3", "--json", "-").out)
    point = told["points"][4]
    assert told["count"] == {"comment": 1, "like": 3, "long_view": 1}
    expected = sum(told["count"][name] * area for name, area in point["auc"].items())
    assert point["auc_sum"] == pytest.approx(expected)
    assert told["named"] == {}


def test_a_new_model_gets_the_point_and_the_old_one_stays(frontier, model, tmp_path):
    assert frontier("--save", "mine", "-o", tmp_path / "new").code == 0
    assert list(hr.load(tmp_path / "new").points) == ["mine"]
    assert hr.load(model).points == {}


def test_refits_are_shown(frontier, world_folder):
    done = frontier("--refit", world_folder / "train.parquet", "--json", "-", rows="valid")
    refits = json.loads(done.out)["refits"]
    assert refits[0]["number"] == 0
    assert max(refit["largest"] for refit in refits) < 0.003
    assert "no AUC differs by over 0.0000" in done.err


def test_an_experiment_tries_points(frontier, run, world_folder, tmp_path):
    frontier("--save", "likes", "--choose", "like=9,comment=0,long_view=0")
    small = ("--hours", 2, "--requests", 200, "--users", 500)
    done = run(
        *("lab", "ab", "simulate", "elive", tmp_path / "model", "--at", "likes", *small),
        *("-o", tmp_path / "log.csv", "--json", tmp_path / "ab.json"),
    )
    assert done.code == 0, done
    assert "exact lift %" in done.out
    told = json.loads((tmp_path / "ab.json").read_text())
    assert told["arms"] == {"current": "closed-form", "likes": "closed-form"}
    (lift,) = (x for x in told["exact"] if x["outcome"] == "like")
    assert lift["lift"] > 0
    again = run(
        *("lab", "ab", "analyse", tmp_path / "log.csv", "--outcomes", "like"),
        *("--impressions", "impressions", "--control", "current"),
    )
    assert again.code == 0, again


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--save", "a b"), "An operating point is named by up to 64 letters"),
        (("--save", "x", "--choose", "best"), "--choose takes knee, current, the number of a"),
        (("--save", "x", "--choose", "999"), "Points are numbered from 0 to"),
        (("--save", "x", "--choose", "lik=2"), "unknown objective 'lik'. Did you mean 'like'?"),
        (("-o", "new"), "-o writes a model with a point; add --save NAME"),
        (("--at", "sales"), "There is no operating point 'sales'. There are none."),
        (("--weights", "like=nan"), "The weight of 'like' must be a finite number"),
        (("--keep", "like<=0.7"), "'like' is wanted; write like>=… Got 'like<=0.7'"),
    ],
)
def test_a_mistake_is_one_sentence_and_changes_nothing(frontier, model, arguments, sentence):
    before = {file: file.read_bytes() for file in model.iterdir()}
    done = frontier(*arguments)
    assert done.code == 2
    assert sentence in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert {file: file.read_bytes() for file in model.iterdir()} == before


def test_a_point_is_replaced_only_when_asked(frontier, model):
    frontier("--save", "mine", "--choose", "1")
    done = frontier("--save", "mine")
    assert done.code == 2
    assert "The model has a point 'mine'; choose another name, or --overwrite" in done.err
    assert frontier("--save", "mine", "--choose", "2", "--overwrite").code == 0
    assert hr.load(model).points["mine"] == pytest.approx(
        {"comment": 0, "like": 1.5, "long_view": 1.5}
    )


def test_a_version_of_a_registry_is_not_changed(frontier, run, model, tmp_path):
    run("registry", "init", tmp_path / "r")
    assert run("registry", "publish", tmp_path / "r", model).code == 0
    version = tmp_path / "r" / "versions" / "1" / "model"
    done = frontier("--save", "mine", model=version)
    assert done.code == 2
    assert "is a version of a registry, which never changes" in done.err
    assert frontier("--save", "mine", "-o", tmp_path / "new", model=version).code == 0


def test_at_and_values_exclude_each_other(run, model, world_folder, tmp_path):
    arguments = ("--at", "x", "--value", "like=2", "-o", tmp_path / "s.parquet")
    done = run("score", model, world_folder / "test.parquet", *arguments)
    assert done.code == 2
    assert "Give either --at or --value, not both" in done.err


def test_floors_are_kept_and_their_point_is_saved(frontier, model, world_folder):
    fitted, valid = hr.load(model), world_folder / "valid.parquet"
    now = dict(zip(fitted.schema.names, _request_areas(fitted, valid), strict=True))
    keep = ("--keep", f"like>={now['like'] + 0.004:.6f}", "--keep", "comment>=current-0.05")
    done = frontier(*keep, "--level", 0, "--save", "guarded", "--json", "-", rows="valid")
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["guarded"]["feasible"]
    assert told["guarded"]["auc"]["like"] >= now["like"] + 0.0039
    assert told["guarded"]["prices"]["like"] > 0
    assert told["chosen"]["weights"] == pytest.approx(hr.load(model).points["guarded"])
    assert "can be kept: AUC-sum" in done.err
    there = _request_areas(hr.load(model).at("guarded"), valid)
    assert there == pytest.approx(list(told["guarded"]["auc"].values()))


def _request_areas(model, table):
    """Return AUC within requests, as `evaluate` measures it."""
    return list(model.evaluate(table).requests.areas.values())


def test_floors_may_be_what_ranks_today(frontier):
    keep = ("--keep", "like>=today-0.1", "--level", 0, "--json", "-")
    done = frontier("--baseline", "p_comment + 0.2 * p_like", *keep)
    assert done.code == 0, done
    told = json.loads(done.out)
    assert told["baseline"] == "p_comment + 0.2 * p_like"
    today = dict(zip(told["objectives"], told["fronts"]["request_auc"]["today"], strict=True))
    assert told["guarded"]["auc"]["like"] >= today["like"] - 0.1
    assert "today" in done.err.split("Hypervolume")[0]
    assert "Today (p_comment + 0.2 * p_like): AUC-sum within requests" in done.err
    done = frontier("--keep", "like>=today")
    assert done.code == 2
    assert "What ranks today is not known; name it by --baseline COLUMN." in done.err


def test_floors_that_conflict_are_named_and_nothing_is_saved(frontier, model):
    keep = ("--keep", "like>=0.95", "--keep", "comment>=0.5")
    done = frontier(*keep, "--save", "guarded", "--json", "-")
    assert done.code == 3
    told = json.loads(done.out)["guarded"]
    assert told["conflict"] == ["like>=0.95"]
    assert told["short"] > 0
    assert "like>=0.95 cannot hold at all" in done.err
    assert "No point was saved." in done.err
    assert hr.load(model).points == {}
    assert frontier(*keep, "--save", "guarded", "--choose", "nearest").code == 0
    assert list(hr.load(model).points) == ["guarded"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--keep", "like>0.5"), "--keep takes floors such as buy>=0.75"),
        (("--keep", "like@0>=today"), "unknown objective 'like@0'"),
        (("--keep", "lik>=0.5"), "unknown objective 'lik'. Did you mean 'like'?"),
        (("--keep", "like>=0.5", "--level", "2"), "must be from 0 to below 1. Got 2"),
    ],
)
def test_a_wrong_floor_is_one_sentence(frontier, arguments, sentence):
    done = frontier(*arguments)
    assert done.code == 2
    assert sentence in done.err
