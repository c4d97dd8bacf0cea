import json
from math import fsum

import polars as pl
import pytest

import harmonrank as hr
from logs import rare_table


@pytest.fixture(scope="module")
def model(tmp_path_factory, world_folder):
    path = tmp_path_factory.mktemp("explain") / "model"
    schema = hr.Schema.read(world_folder / "schema.toml")
    hr.HarmonRank().fit(world_folder / "train.parquet", schema).save(path)
    return path


def test_explain_shows_effective_weights_and_noise(run, model):
    result = run("explain", model, "--json", "-")
    facts = json.loads(result.out)
    assert facts["method"] == "harmonrank"
    assert sum(facts["effective_weight"].values()) == pytest.approx(1)
    assert all(0 <= share <= 1 for share in facts["noise_share"].values())
    assert "effective" in result.err


def test_explain_follows_other_weights(run, model):
    plain = json.loads(run("explain", model, "--json", "-").out)["effective_weight"]
    doubled = json.loads(run("explain", model, "--weights", "like=2", "--json", "-").out)
    odds = doubled["effective_weight"]["like"] / doubled["effective_weight"]["buy"]
    assert odds == pytest.approx(2 * plain["like"] / plain["buy"])


def test_fit_and_explain_say_which_objective_rules(run, tmp_path):
    table = rare_table(4000)
    table.write_parquet(tmp_path / "t.parquet")
    columns = ("--scores", "p_buy,p_like,p_view", "--labels", "buy,like,view")
    fit = ("fit", "--train", tmp_path / "t.parquet", "--valid", tmp_path / "t.parquet", *columns)
    done = run(*fit, "--request", "request_id", "--method", "closed-form", "-o", tmp_path / "m")
    assert done.code == 0, done
    said = "All weights are equal, yet 'buy' has"
    assert " ".join(done.out.split()).startswith(said)
    shown = run("explain", tmp_path / "m", "--data", tmp_path / "t.parquet")
    assert said in shown.out.splitlines()[0]


# On rows


def explained(run, model, table, *more):
    done = run("explain", model, "--data", table, *more, "--json", "-")
    assert done.code == 0, done
    return json.loads(done.out), done.err


def test_rows_show_what_moves_the_score_overall_and_by_context(run, model, world_folder):
    told, text = explained(run, model, world_folder / "test.parquet")
    assert sum(told["pulls"].values()) == pytest.approx(1)
    for values in told["by_context"].values():
        for shares in values.values():
            assert sum(shares.values()) == pytest.approx(1)
    assert set(told["by_context"]) == {"hour", "app_version", "age", "gender"}
    curve = told["responses"]["buy"]
    assert len(curve["score"]) == len(curve["fused_sd"])
    assert curve["fused_sd"][-1] > curve["fused_sd"][0]
    assert "What each score moves, by context" in text
    assert "█" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_row_adds_up_exactly_and_its_place_is_that_of_the_ranking(run, model, world_folder):
    table = world_folder / "test.parquet"
    told, text = explained(run, model, table, "--row", 37)
    row, fitted = told["row"], hr.load(model)
    frame = pl.read_parquet(table)
    request = frame.filter(pl.col("request_id") == frame["request_id"][37])
    fused = fitted.score(request)
    assert row["fused"] == fitted.score(frame)[37]
    assert fsum(row["adds"].values()) == row["fused"]
    assert row["place"] == 1 + (fused > row["fused"]).sum()
    assert row["candidates"] == len(fused)
    assert sum(row["shares"].values()) == pytest.approx(1)
    p = fitted.probabilities(request)
    usual = fitted.fuser.parts_of(p, fitted.fuser.weights()).mean(axis=0)
    assert list(row["usual"].values()) == pytest.approx(usual.tolist())
    assert f"Row 37: {row['sentences'][0].split()[3]} of" in text
    assert row["context"]["age"] == frame["age"][37]


def test_a_counterfactual_is_what_the_model_says_of_the_changed_row(
    run, model, world_folder, tmp_path
):
    table = world_folder / "test.parquet"
    (tmp_path / "s.toml").write_text("[explain]\nadd = 0.2", encoding="utf-8")
    told, text = explained(run, model, table, "--row", 5, "--settings", tmp_path / "s.toml")
    frame, fitted = pl.read_parquet(table), hr.load(model)
    request = frame.filter(pl.col("request_id") == frame["request_id"][5])
    here = int((frame["request_id"][:5] == frame["request_id"][5]).sum())
    changes = {(c["column"], c["after"] > c["before"]): c for c in told["row"]["changes"]}
    raised = changes["p_like", True]
    assert raised["after"] == pytest.approx(raised["before"] + 0.2)
    at = pl.int_range(pl.len()) == here
    moved = request.with_columns(
        p_like=pl.when(at).then(pl.lit(raised["after"])).otherwise("p_like")
    )
    fused = fitted.score(moved)
    assert raised["place"] == 1 + (fused > fused[here]).sum()
    assert raised["place"] < told["row"]["place"]
    assert f"+0.2 on p_like lifts it from {told['row']['sentences'][0].split()[3]} to" in text
    # Below 0 there is no probability.
    assert ("p_buy", False) not in changes


def test_explanations_follow_points_weights_and_values(run, model, world_folder, tmp_path):
    table = world_folder / "test.parquet"
    hr.load(model).with_point("likes", {"like": 50}).save(tmp_path / "kept")
    plain = explained(run, model, table, "--row", 3)[0]
    fitted, frame = hr.load(model), pl.read_parquet(table)
    for options, asked in [
        (("--at", "likes"), {"weights": {"like": 50}}),
        (("--weights", "like=50"), {"weights": {"like": 50}}),
        (("--value", "like=2,buy=30"), {"value": {"like": 2, "buy": 30}}),
    ]:
        told = explained(run, tmp_path / "kept", table, "--row", 3, *options)[0]
        assert told["row"]["fused"] == fitted.score(frame, **asked)[3]
        assert fsum(told["row"]["adds"].values()) == told["row"]["fused"]
        assert told["row"]["shares"]["like"] > plain["row"]["shares"]["like"]
        assert told["pulls"]["like"] > plain["pulls"]["like"]
    assert told["points"].keys() == {"likes"}


def test_without_requests_a_row_is_one_of_the_table(run, folder):
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"})
    hr.ClosedForm().fit(folder / "train.parquet", schema).save(folder / "m")
    told, _ = explained(run, folder / "m", folder / "test.parquet", "--row", 0)
    assert told["row"]["candidates"] == 600
    assert told["by_context"] == {}


def test_a_method_without_probabilities_says_so_and_shows_the_rest(run, folder):
    from harmonrank.fusion import method_class

    schema = hr.Schema.read(folder / "schema.toml")
    model = method_class("formula-grid")(trials=3).fit(folder / "train.parquet", schema)
    model.save(folder / "m")
    told, text = explained(run, folder / "m", folder / "test.parquet", "--row", 3)
    assert told["row"]["adds"] is None
    assert told["row"]["changes"]
    assert told["notes"] == [
        "formula-grid gives no probability of an objective, so its fused score has no part of "
        "each; where another score would put the row is known all the same."
    ]
    assert "formula-grid gives no probability of an objective" in " ".join(text.split())


def test_a_missing_score_has_no_counterfactual(run, folder):
    schema = hr.Schema.read(folder / "schema.toml")
    hr.HarmonRank().fit(folder / "train.parquet", schema).save(folder / "m")
    first = pl.int_range(pl.len()) == 0
    pl.read_parquet(folder / "test.parquet").with_columns(
        p_like=pl.when(~first).then("p_like")
    ).write_parquet(folder / "holes.parquet")
    told, _ = explained(run, folder / "m", folder / "holes.parquet", "--row", 0)
    assert told["row"]["scores"]["like"] is None
    assert {change["column"] for change in told["row"]["changes"]} == {"p_buy"}
    assert fsum(told["row"]["adds"].values()) == told["row"]["fused"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--row", 3), "--row and --report explain rows; add --data TABLE"),
        (("--data", "T", "--row", 10**6), "Rows are counted from 0 to 3,999. Got 1,000,000"),
        (("--data", "T", "--at", "x"), "There is no operating point 'x'. There are none."),
    ],
)
def test_a_mistake_is_one_sentence(run, model, world_folder, arguments, sentence):
    table = world_folder / "test.parquet"
    done = run("explain", model, *(table if word == "T" else word for word in arguments))
    assert done.code == 2
    assert sentence in done.err


def test_the_page_explains_the_model_and_the_row(run, model, world_folder, tmp_path):
    done = run(
        *("explain", model, "--data", world_folder / "test.parquet", "--row", 3, "-q"),
        *("--report", tmp_path / "e.html"),
    )
    assert done.code == 0, done
    page = (tmp_path / "e.html").read_text(encoding="utf-8")
    for key in ("row", "model", "weights", "context", "responses"):
        assert f'<section id="{key}">' in page
    assert "row-places" in page
