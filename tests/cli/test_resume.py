"""A fit that is killed goes on, when repeated, to the same weights, bit for bit."""

import subprocess
import sys

import polars as pl
import pytest

from logs import SCHEMA_TOML, small_table

SETTINGS = ("--set", "epochs=6", "--set", "patience=99", "--set", "batch_rows=100")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("resume")
    small_table(1500).write_parquet(folder / "train.parquet")
    small_table(500, seed=1).write_parquet(folder / "valid.parquet")
    (folder / "schema.toml").write_text(SCHEMA_TOML)
    return folder


def arguments(place, name, *more):
    return [
        *("fit", "--train", place / "train.parquet", "--valid", place / "valid.parquet"),
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
    done = run(*arguments(place, "restarted", "--set", "epochs=1", "--restart"))
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

    monkeypatch.setattr("harmonrank.fusion.baselines.closed_form.ClosedForm._fit", interrupt)
    table = folder / "train.parquet"
    before = sorted(folder.iterdir())
    done = run(
        *("fit", "--train", table, "--schema", folder / "schema.toml"),
        *("--method", "closed-form", "-o", folder / "m"),
    )
    assert (done.code, done.err.strip()) == (130, "Interrupted.")
    assert sorted(folder.iterdir()) == before
    assert pl.read_parquet(table).height == 600
