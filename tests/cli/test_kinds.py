"""Objectives of every kind from the command line, from a csv file to a report."""

import json

import polars as pl
import pytest

import harmonrank as hr

KINDS = ("--graded", "long_view", "--given", "like=click", "--unwanted", "share")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a simulated log of every kind, as csv files."""
    from harmonrank.worlds import world
    from harmonrank_lab.worlds import simulate

    path = tmp_path_factory.mktemp("kinds") / "log"
    kinds = {"graded": ("long_view",), "given": {"like": "click"}, "unwanted": ("share",)}
    simulate(world("qkvideo"), 3000, path, kinds=kinds)
    for name in ("train", "test"):
        frame = pl.read_parquet(path / f"{name}.parquet")
        frame.select(pl.exclude("^true_.*$")).write_csv(path / f"{name}.csv")
    return path


def test_a_simulated_log_of_kinds_knows_its_ceiling(run, tmp_path):
    run("simulate", "qkvideo", "--rows", 2000, *KINDS, "-o", tmp_path / "log")
    schema = hr.Schema.read(tmp_path / "log" / "schema.toml")
    assert schema.graded == ("long_view",)
    assert schema.given == {"like": "click"}
    assert schema.unwanted == ("share",)
    train = pl.read_parquet(tmp_path / "log" / "train.parquet")
    assert (train["like"].is_null() == (train["click"] == 0)).all()
    assert train["long_view"].max() > 60
    assert not [name for name in train.columns if name.startswith("true_")]
    told = json.loads((tmp_path / "log" / "ceiling.json").read_text())
    model = hr.HarmonRank().fit(train, schema)
    quality = model.evaluate(tmp_path / "log" / "test.parquet")
    assert quality.ceiling == pytest.approx(told["ceiling"])
    assert 0 < quality.regret < 0.3


def test_the_whole_way_from_csv_files(run, folder, tmp_path):
    columns = ["--context", "age,gender", "--request", "request_id"]
    names = ("click", "like", "follow", "share", "long_view")
    columns += ["--labels", ",".join(names), "--scores", ",".join(f"p_{name}" for name in names)]
    model = tmp_path / "model"
    run("fit", "--train", folder / "train.csv", *columns, *KINDS, "-o", model)
    told = run("evaluate", model, folder / "test.csv", "--json", "-")
    numbers = json.loads(told.out)
    assert numbers["kinds"] == {"like": "given click", "long_view": "graded"}
    assert numbers["weights"]["share"] == -1
    for words in ("like is given click", "long_view is graded (AUC is con", "share is unwanted"):
        assert words in " ".join(told.err.split())
    run("score", model, folder / "test.csv", "-o", tmp_path / "scored.csv")
    assert pl.read_csv(tmp_path / "scored.csv")["fused"].is_finite().all()
    told = run("explain", model, "--data", folder / "test.csv", "--row", 3, "--json", "-")
    row = json.loads(told.out)["row"]
    assert sum(row["adds"].values()) == pytest.approx(row["fused"])
    assert row["probabilities"]["long_view"] > 1  # seconds
    page = tmp_path / "frontier.html"
    options = ("--points", 20, "--keep", "share<=current+0.01", "--report", page)
    told = run("frontier", model, "--data", folder / "test.csv", *options, "--json", "-")
    assert json.loads(told.out)["unwanted"] == ["share"]
    assert "share (unwanted)" in page.read_text()


def test_a_comparison_lists_every_kind_and_what_a_method_cannot(run, folder, tmp_path):
    page = tmp_path / "page.html"
    told = run(
        "compare",
        *("--train", folder / "train.csv", "--test", folder / "test.parquet"),
        *("--schema", folder / "schema.toml", "--methods", "harmonrank,closed-form,mbce"),
        *("--report", page, "--json", tmp_path / "c.json"),
    )
    board = json.loads((tmp_path / "c.json").read_text())
    by_name = {entry["name"]: entry for entry in board["methods"]}
    assert by_name["harmonrank"]["regret"] < 0.3
    assert by_name["mbce"]["error"].startswith("mbce cannot learn objectives that are")
    assert "share (unwanted)" in page.read_text()
    assert "mbce cannot learn" in told.out


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--graded", "watch"), "`graded` names an unknown objective 'watch'"),
        (("--given", "like"), "--given takes pairs such as order=click. Got 'like'"),
        (("--given", "like=long_view", "--graded", "long_view"), "which is graded"),
    ],
)
def test_kinds_that_cannot_be_are_one_sentence(run, folder, tmp_path, options, sentence):
    schema = hr.Schema.read(folder / "schema.toml").to_dict()
    for part in ("graded", "given", "unwanted"):
        schema.pop(part)
    (tmp_path / "s.toml").write_text(hr.Schema.from_dict(schema).to_toml())
    told = run(
        *("fit", "--train", folder / "train.csv", "--schema", tmp_path / "s.toml", *options),
        *("-o", tmp_path / "m"),
    )
    assert told.code == 2
    assert sentence in told.err
    assert not (tmp_path / "m").exists()
