import json
import re
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from logs import SCHEMA_TOML, small_table

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
    assert done.out.split()[:2] == ["objective", "within"]
    model = hr.load(folder / "m")
    by_hand = hr.ClosedForm().fit(
        folder / "train.parquet", model.schema, valid=folder / "valid.parquet"
    )
    test = folder / "test.parquet"
    np.testing.assert_array_equal(model.score(test), by_hand.score(test))


def test_in_a_world_the_areas_of_a_fit_lie_within_their_own_intervals(
    run, world_folder, tmp_path, monkeypatch
):
    tables = [f"--{part}={world_folder / part}.parquet" for part in ("train", "valid")]
    schema = world_folder / "schema.toml"
    monkeypatch.setenv("COLUMNS", "200")
    done = run(
        *("fit", *tables, "--schema", schema, "--method", "closed-form", "-o", tmp_path / "m"),
    )
    assert done.code == 0, done
    rows = re.findall(r"^\w+ +([\d.]+) +([\d.]+) – ([\d.]+)", done.out, re.MULTILINE)
    assert len(rows) == 6
    for estimate, low, high in rows:
        assert float(low) <= float(estimate) <= float(high)


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
    assert set(numbers) == {
        *("method", "model", "fit_seconds", "valid", "missing", "position", "fading"),
        *("rows", "fitted_rows", "blocks", "caution"),
    }
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


SETTINGS = ("--set", "epochs=6", "--set", "patience=99", "--set", "batch_rows=100")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    small_table(1500).write_parquet(folder / "train.parquet")
    small_table(500, seed=1).write_parquet(folder / "valid.parquet")
    (folder / "schema.toml").write_text(SCHEMA_TOML)
    return folder


def arguments(place, name, *more, train="train"):
    return [
        *("fit", "--train", place / f"{train}.parquet", "--valid", place / "valid.parquet"),
        *("--schema", place / "schema.toml", "--method", "harmonrank-paper", *SETTINGS),
        *("-o", place / name, *more),
    ]


@pytest.fixture(scope="module")
def killed(place):
    """Return the checkpoint of a fit that was killed once it told that two epochs were over."""
    command = [sys.executable, "-m", "harmonrank", *arguments(place, "killed")]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        # An epoch is told of after its checkpoint is written, and the pipe ends with the fit.
        told = next((line for line in process.stderr if line.startswith("epoch 2:")), None)
        process.kill()
    assert told is not None, "the fit ended before it could be killed"
    assert not (place / "killed").exists()
    return (place / "killed.checkpoint").read_bytes()


def test_a_killed_fit_resumes_to_the_same_bytes(run, place, killed):
    assert run(*arguments(place, "whole"), "-q").code == 0
    (place / "killed.checkpoint").write_bytes(killed)
    done = run(*arguments(place, "killed"))
    assert done.code == 0, done
    assert "resumed in epoch 3" in done.err
    assert "epoch 2:" not in done.err
    for name in ("weights.safetensors", "model.json", "checksums.json"):
        assert (place / "killed" / name).read_bytes() == (place / "whole" / name).read_bytes()
    assert not (place / "killed.checkpoint").exists()


@pytest.mark.parametrize("change", ["seed", "option", "data"])
def test_a_checkpoint_of_another_fit_is_refused_with_the_remedy(run, place, killed, change):
    small_table(1500, seed=9).write_parquet(place / "other.parquet")
    changes = {
        "seed": ("--seed", 1),
        "option": ("--set", "width=3"),
        "data": ("--train", place / "other.parquet"),
    }
    checkpoint = place / f"{change}.checkpoint"
    checkpoint.write_bytes(killed)
    done = run(*arguments(place, change, *changes[change]))
    assert done.code == 2, done
    assert "is of other data, options or seed" in done.err
    assert "The option --restart deletes it." in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert checkpoint.read_bytes() == killed
    assert not (place / change).exists()


def test_restart_forgets_the_checkpoint(run, place, killed):
    (place / "restarted.checkpoint").write_bytes(killed)
    done = run(*arguments(place, "restarted", "--restart"))
    assert done.code == 0, done
    assert "resumed" not in done.err
    assert not (place / "restarted.checkpoint").exists()


def test_a_damaged_checkpoint_is_refused_with_the_remedy(run, place, killed):
    checkpoint = place / "damaged.checkpoint"
    checkpoint.write_bytes(killed[:-1] + bytes([killed[-1] ^ 1]))
    done = run(*arguments(place, "damaged"))
    assert done.code == 2, done
    assert "cannot be read" in done.err
    assert "The option --restart deletes it." in done.err
    assert not (place / "damaged").exists()


@pytest.mark.parametrize("more", [(), ("--restart",)])
@pytest.mark.parametrize("method", ["harmonrank-paper", "closed-form"])
def test_what_is_no_checkpoint_is_neither_read_nor_deleted(run, place, method, more):
    foreign = place / "foreign.checkpoint"
    options = ("--schema", place / "schema.toml", "--method", method, "-o", place / "foreign")
    for make in (lambda: foreign.write_text("mine"), foreign.mkdir):
        make()
        done = run("fit", "--train", place / "train.parquet", *options, *more)
        assert done.code == 2, done
        assert "is something else, so it is neither read nor deleted" in done.err
        assert not (place / "foreign").exists()
        if foreign.is_file():
            assert foreign.read_text() == "mine"
            foreign.unlink()
    foreign.rmdir()


def test_a_model_is_written_to_the_empty_folder_one_is_in(run, place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ("--schema", place / "schema.toml", "--method", "closed-form", "-o", ".")
    done = run("fit", "--train", place / "train.parquet", *options, "--overwrite")
    assert done.code == 0, done
    assert (tmp_path / "model.json").is_file()


def test_an_interrupted_command_says_so_and_leaves_no_output(run, folder, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("harmonrank.fusion.baselines.closed_form.ClosedFormConfig.fit", interrupt)
    table = folder / "train.parquet"
    before = sorted(folder.iterdir())
    done = run(
        *("fit", "--train", table, "--schema", folder / "schema.toml"),
        *("--method", "closed-form", "-o", folder / "m"),
    )
    assert (done.code, done.err.strip()) == (130, "Interrupted.")
    assert sorted(folder.iterdir()) == before
    assert pl.read_parquet(table).height == 600


def test_fit_and_explain_tell_which_objectives_fade_whatever_the_order_of_rows(run, tmp_path):
    rng = np.random.default_rng(0)
    time, age = rng.random(20_000), rng.integers(0, 4, 20_000)
    logits = rng.normal(size=(20_000, 2)) - 1
    moves = np.outer(6 * time * np.array([1.0, -1.0, 0.5, -0.5])[age], [0, 1])
    y = rng.random(logits.shape) < 1 / (1 + np.exp(-logits - moves))
    p = 1 / (1 + np.exp(-logits))
    table = {"p_buy": p[:, 0], "p_like": p[:, 1], "buy": y[:, 0], "like": y[:, 1]}
    path = tmp_path / "t.parquet"
    pl.DataFrame({**table, "age": age, "shown_at": time}).write_parquet(path)
    columns = ("--scores", "p_buy,p_like", "--labels", "buy,like", "--context", "age")
    fit = ("fit", "--train", path, *columns)
    done = run(*fit, "--time", "shown_at", "-o", tmp_path / "m", "--json", "-")
    rates = json.loads(done.out)["fading"]
    assert rates["buy"] == 0 < 2 < rates["like"]
    half = f"a row counts half for 'like' after {100 / rates['like']:.0f} % of the log"
    assert half in " ".join(done.err.split())
    told = run("explain", tmp_path / "m", "--json", "-")
    assert json.loads(told.out)["fading"] == pytest.approx(rates)
    assert half in " ".join(told.err.split())
    newest = y[time > 0.9, 1].mean()
    model = hr.load(tmp_path / "m")
    assert abs(model.prevalence[1] - newest) < abs(y[:, 1].mean() - newest)
    assert model.prevalence[0] == pytest.approx(y[:, 0].mean())
    without = run(*fit, "-o", tmp_path / "without", "--json", "-")
    assert json.loads(without.out)["fading"] is None
    assert "fade" not in without.err
