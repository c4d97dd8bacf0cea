import json

import numpy as np
import polars as pl
import pytest

import harmonrank as hr

NETWORK = ("--method", "harmonrank-paper", "--set", "epochs=2", "--set", "buckets=8")


@pytest.fixture
def fit(run, folder):
    def command(*more, code=0, method=("--method", "closed-form")):
        columns = () if "--scores" in more else ("--schema", folder / "schema.toml")
        done = run("fit", "--train", folder / "train.parquet", *columns, *method, *more)
        assert done.code == code, done
        return done

    return command


def test_a_model_is_written_and_measured_on_the_validation_rows(fit, folder):
    done = fit("--valid", folder / "valid.parquet", "-o", folder / "m")
    assert "Fitted closed-form in" in done.err
    assert done.out.split()[:2] == ["objective", "AUC"]
    model = hr.load(folder / "m")
    by_hand = hr.ClosedForm().fit(
        folder / "train.parquet", model.schema, valid=folder / "valid.parquet"
    )
    test = folder / "test.parquet"
    np.testing.assert_array_equal(model.score(test), by_hand.score(test))


def test_options_name_columns_as_a_schema_file_does(fit, folder):
    fit("-o", folder / "a", "--weights", "buy=2")
    fit(
        *("-o", folder / "b", "--scores", "p_buy,p_like", "--labels", "buy,like"),
        *("--context", "hour,age", "--request", "request_id", "--weights", "buy=2"),
    )
    assert hr.load(folder / "a").schema == hr.load(folder / "b").schema


def test_options_win_over_the_schema_file(fit, folder):
    fit("-o", folder / "m", "--context", "hour", "--request", "age", "--sample-weight", "p_buy")
    schema = hr.load(folder / "m").schema
    assert (schema.context, schema.request, schema.sample_weight) == (("hour",), "age", "p_buy")


def test_settings_reach_the_method(fit, folder):
    fit("-o", folder / "m", "--set", "calibration=isotonic")
    assert hr.load(folder / "m").config.calibration == "isotonic"


def test_a_network_tells_its_epochs_line_by_line(fit, folder):
    done = fit("-o", folder / "m", method=NETWORK)
    assert "epoch 1: loss " in done.err
    assert "epoch 2: loss " in done.err
    assert not (folder / "m.checkpoint").exists()


def test_the_same_seed_writes_the_same_weights_and_another_seed_others(fit, folder):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        fit("-o", folder / name, "--seed", seed, method=NETWORK)
    read = [(folder / name / "weights.safetensors").read_bytes() for name in "abc"]
    assert read[0] == read[1] != read[2]


def test_json_on_standard_output_is_alone_there(fit, folder):
    done = fit("-o", folder / "m", "--valid", folder / "valid.parquet", "--json", "-")
    numbers = json.loads(done.out)
    assert set(numbers) == {"method", "model", "fit_seconds", "valid", "missing", "position"}
    assert numbers["valid"]["auc"].keys() == {"buy", "like"}
    assert "objective" in done.err


def test_json_in_a_file_holds_the_same_keys_without_validation_rows(fit, folder):
    done = fit("-o", folder / "m", "--json", folder / "deep" / "fit.json")
    numbers = json.loads((folder / "deep" / "fit.json").read_text())
    assert numbers["valid"] is None
    assert numbers["method"] == "closed-form"
    assert done.out == ""


def test_quiet_prints_nothing(fit, folder):
    done = fit("-o", folder / "m", "--valid", folder / "valid.parquet", "--quiet")
    assert (done.out, done.err) == ("", "")


def test_validation_rows_that_cannot_measure_do_not_cost_the_model(fit, folder):
    valid = pl.read_parquet(folder / "valid.parquet").with_columns(buy=pl.lit(0))
    valid.write_parquet(folder / "valid.parquet")
    done = fit("-o", folder / "m", "--valid", folder / "valid.parquet", "--json", "-")
    assert "Not measured on the validation rows: Objective 'buy' has no positive" in done.err
    assert json.loads(done.out)["valid"] is None
    assert (folder / "m" / "model.json").exists()


def test_a_model_is_overwritten_when_asked(fit, folder):
    fit("-o", folder / "m")
    fit("-o", folder / "m", "--overwrite", "--set", "calibration=isotonic")
    assert hr.load(folder / "m").config.calibration == "isotonic"


def test_a_path_with_brackets_is_printed_as_it_is(fit, folder):
    done = fit("-o", folder / "m[1]")
    assert f"wrote {folder / 'm[1]'}." in done.err
