import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr


@pytest.fixture
def model(folder):
    schema = hr.Schema.read(folder / "schema.toml")
    hr.ClosedForm().fit(folder / "train.parquet", schema).save(folder / "m")
    return folder / "m"


def test_one_column_is_added_and_rows_stay_in_order(run, folder, model):
    done = run("score", model, folder / "test.parquet", "-o", folder / "out.parquet")
    assert done.code == 0, done
    assert "Scored 600 rows in" in done.out
    given, scored = (pl.read_parquet(folder / f"{n}.parquet") for n in ("test", "out"))
    assert scored.columns == [*given.columns, "fused"]
    assert scored.drop("fused").equals(given)
    np.testing.assert_array_equal(scored["fused"], hr.load(model).score(given))


def test_labels_are_not_needed(run, folder, model):
    bare = pl.read_parquet(folder / "test.parquet").drop("buy", "like", "request_id")
    bare.write_csv(folder / "bare.csv")
    assert run("score", model, folder / "bare.csv", "-o", folder / "out.csv").code == 0
    assert pl.read_csv(folder / "out.csv").columns == ["hour", "age", "p_buy", "p_like", "fused"]


def test_a_context_value_never_seen_in_training_works(run, folder, model):
    strange = pl.read_parquet(folder / "test.parquet").with_columns(
        hour=pl.lit(77), age=pl.lit("ageless")
    )
    strange.write_parquet(folder / "strange.parquet")
    done = run("score", model, folder / "strange.parquet", "-o", folder / "out.parquet")
    assert done.code == 0, done
    assert pl.read_parquet(folder / "out.parquet")["fused"].is_finite().all()


def test_other_weights_another_column_and_json(run, folder, model):
    done = run(
        *("score", model, folder / "test.parquet", "-o", folder / "o.parquet"),
        *("--weights", "buy=5", "--column", "s", "--json", "-"),
    )
    numbers = json.loads(done.out)
    assert set(numbers) == {"rows", "seconds", "output", "column", "recalibrated", "drift"}
    assert (numbers["rows"], numbers["column"]) == (600, "s")
    np.testing.assert_array_equal(
        pl.read_parquet(folder / "o.parquet")["s"],
        hr.load(model).score(folder / "test.parquet", weights={"buy": 5}),
    )


def test_a_long_path_is_not_broken_in_the_message(run, folder, model):
    out = folder / ("x" * 100) / "out.parquet"
    done = run("score", model, folder / "test.parquet", "-o", out)
    assert f"wrote {out}." in done.out


def test_the_best_rows_of_every_request_are_written(run, folder, model):
    test, out = folder / "test.parquet", folder / "top.parquet"
    done = run("rank", model, test, "-k", 3, "-o", out)
    assert done.code == 0, done
    assert f"Wrote the best 3 of 60 requests, 180 rows, to {out}." in done.out
    assert pl.read_parquet(out).equals(hr.load(model).rank(test, k=3))


def test_weights_json_and_another_kind_of_table(run, folder, model):
    test, out = folder / "test.parquet", folder / "top.csv"
    done = run(
        *("rank", model, test, "-k", 2, "-o", out, "--weights", "buy=9"),
        *("--request", "hour", "--json", "-"),
    )
    numbers = json.loads(done.out)
    assert {key: numbers[key] for key in ("rows", "requests", "k")} == {
        "rows": 48, "requests": 24, "k": 2
    }  # fmt: skip
    expected = hr.load(model).rank(test, k=2, request="hour", weights={"buy": 9})
    assert pl.read_csv(out)["fused"].to_list() == pytest.approx(expected["fused"].to_list())


def test_no_rows_give_no_rows(run, folder, model):
    pl.read_parquet(folder / "test.parquet").clear().write_parquet(folder / "none.parquet")
    for verb, column in (("rank", "place"), ("score", "fused")):
        done = run(verb, model, folder / "none.parquet", "-o", folder / f"{verb}.parquet")
        assert done.code == 0, done
        assert pl.read_parquet(folder / f"{verb}.parquet").columns[-1] == column


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("-k", "0"), "0 is not in the range"),
        (("--weights", "bux=2"), "unknown objective 'bux'"),
        (("--request", "session"), "has no column 'session'"),
    ],
)
def test_what_cannot_be_ranked_is_one_sentence(run, folder, model, more, message):
    out = folder / "top.parquet"
    done = run("rank", model, folder / "test.parquet", "-o", out, *more)
    assert done.code == 2
    assert message in done.err
    assert not out.exists()
