"""Names, files and streams that nobody expects: used, or refused in one sentence."""

import json
import os
import subprocess
import sys

import polars as pl
import pytest

from logs import small_table

NOT_UTF8 = os.fsdecode(b"caf\xe9")


@pytest.fixture
def model(run, folder):
    done = run(
        *("fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml"),
        *("--method", "closed-form", "-o", folder / "model", "--quiet"),
    )
    assert done.code == 0, done
    return folder / "model"


@pytest.fixture
def refused(run):
    def command(*arguments, sentence):
        done = run(*arguments)
        assert done.code == 2, done
        assert sentence in done.err
        assert done.err.startswith(("Error: ", "Usage: "))

    return command


def fit(folder, *more, train="train.parquet"):
    tables = ("--train", folder / train, "--schema", folder / "schema.toml")
    return ("fit", *tables, "--method", "closed-form", "-q", *more)


def test_links_that_lead_in_a_circle(refused, folder, model):
    loop = folder / "loop.parquet"
    loop.symlink_to(loop)
    refused("score", model, folder / "test.parquet", "-o", loop, sentence="lead in a circle")
    refused(*fit(folder, "-o", loop), sentence="lead in a circle")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_names_that_are_not_utf8(refused, folder, model):
    table, sentence = folder / f"{NOT_UTF8}.parquet", "is not UTF-8"
    small_table().write_parquet(folder / "t.parquet")
    (folder / "t.parquet").rename(table)
    refused("score", model, table, "-o", folder / "o.parquet", sentence=sentence)
    refused("evaluate", model, table, sentence=sentence)
    out = folder / NOT_UTF8
    refused("score", model, folder / "test.parquet", "-o", f"{out}.csv", sentence=sentence)
    refused(*fit(folder, "-o", out), sentence=sentence)
    refused("simulate", "elive", "--rows", 10, "-o", out, sentence=sentence)
    refused("lab", "simulate", "kuairand", "--rows", 10, "-o", out, sentence=sentence)


@pytest.mark.parametrize("ending", ["parquet", "csv", "arrow"])
def test_a_name_with_the_signs_of_a_pattern_is_a_name(run, folder, model, ending):
    table = pl.read_parquet(folder / "train.parquet")
    path = folder / f"x[1].{ending}"
    write = {"parquet": table.write_parquet, "csv": table.write_csv, "arrow": table.write_ipc}
    write[ending](path)
    assert run(*fit(folder, "-o", folder / "m", train=path)).code == 0
    assert run("score", model, path, "-q", "-o", folder / f"y[1].{ending}").code == 0
    assert (folder / f"y[1].{ending}").is_file()


def test_numbers_of_a_request_beyond_64_bits(run, folder):
    table = pl.read_parquet(folder / "train.parquet")
    huge = table.with_columns(request_id=pl.format("9999999999999999999{}", "request_id"))
    huge.write_csv(folder / "huge.csv")
    done = run(*fit(folder, "-o", folder / "m", train="huge.csv"))
    assert done.code == 0, done
    small, large = (run("evaluate", folder / "m", t, "--json", "-", "-q").out for t in (
        folder / "train.parquet", folder / "huge.csv"))  # fmt: skip
    small, large = json.loads(small), json.loads(large)
    assert large["requests"]["auc"] == pytest.approx(small["requests"]["auc"], rel=1e-12)
    assert large["ci"] == pytest.approx(small["ci"], rel=1e-12)


@pytest.mark.parametrize("number", [2**32, 2**63, 10**30])
def test_seeds_that_no_generator_takes(refused, folder, number):
    refused(*fit(folder, "-o", folder / "m", "--seed", number), sentence="is not in the range")


@pytest.mark.parametrize("option", ["--rows", "--redraw"])
def test_counts_that_no_machine_holds(refused, folder, option):
    out = ("-o", folder / "w")
    refused("simulate", "elive", option, 10**20, *out, sentence="is not in the range")


def test_a_schema_that_is_nested_too_deeply(refused, folder):
    (folder / "schema.toml").write_text("x = " + "[" * 100_000)
    refused(*fit(folder, "-o", folder / "m"), sentence="cannot be read as a TOML schema")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such device")
def test_settings_that_never_end(refused, folder, model):
    endless = "/dev/zero"
    many = "'/dev/zero' has more than"
    table = folder / "train.parquet"
    refused("compare", table, "--schema", endless, "--split", "request", sentence=many)
    refused("lab", "pipeline", folder, "--declaration", endless, "-o", folder / "p", sentence=many)
    refused("serve", model, "--api-key-file", endless, sentence=many)
    deep = folder / "log.toml"
    deep.write_text("x = " + "[" * 100_000)
    sentence = "cannot be read as a TOML declaration"
    refused("lab", "pipeline", folder, "--declaration", deep, "-o", folder / "p", sentence=sentence)


def test_numbers_and_pages_replace_only_their_like(refused, run, folder, model):
    evaluate = ("evaluate", model, folder / "test.parquet", "-q")
    mine = folder / "mine.txt"
    mine.write_text("ten years of work")
    refused(*evaluate, "--json", mine, sentence="does not begin with {, as what is to be written")
    refused(*evaluate, "--report", mine, sentence="does not begin with <!doctype html>, as what is")
    assert mine.read_text() == "ten years of work"
    refused(
        *evaluate, "--json", model / "model.json", sentence="is in a saved model; choose another"
    )
    score = ("score", model, folder / "test.parquet", "-q", "-o", folder / "o.parquet")
    refused(*score, "--json", folder / "o.parquet", sentence="does not begin with {")
    assert pl.read_parquet(folder / "o.parquet").height == 600
    for _ in range(2):
        assert run(*evaluate, "--json", folder / "e.json", "--report", folder / "e.html").code == 0


@pytest.mark.parametrize("closed", [(1,), (0, 1, 2)])
def test_streams_that_are_closed(folder, model, closed):
    arguments = ["evaluate", str(model), str(folder / "test.parquet")]
    code = f"""
import os, sys
sys.argv = ["harmonrank", *{arguments}]
for stream in {closed}:
    os.close(stream)
os.execv(sys.executable, [sys.executable, "-m", "harmonrank", *{arguments}])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_terminal_that_cannot_spell_greek(folder, model):
    command = [sys.executable, "-m", "harmonrank", "evaluate", model, folder / "test.parquet"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, env=environment, text=True)
    assert done.returncode == 0, done.stderr
    assert "Effective weight: w/(?(1??))" in done.stdout


def test_names_of_columns_command_no_terminal(run, folder):
    red, hidden = "age\x1b[31m", "p\u202e\rx"
    table = pl.read_parquet(folder / "train.parquet").rename({"age": red, "p_like": hidden})
    table.write_parquet(folder / "train.parquet")
    done = run(*fit(folder, "-o", folder / "m"))
    assert done.code == 2
    assert r"age\x1b[31m" in done.err
    told = run("init", folder / "train.parquet", "-o", folder / "guess.toml")
    assert told.code == 0, told
    assert r"age\x1b" in told.out
    assert not {"\x1b", "\u202e", "\r"} & {*done.err, *told.out, *told.err}
