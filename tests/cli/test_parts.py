"""Every verb that takes a table takes a folder, a glob and several files."""

import json

import polars as pl
import pytest

from logs import SCHEMA_TOML, small_table


@pytest.fixture
def at(tmp_path, monkeypatch, run):
    """Go to a folder with a log as one file and in parts, and a model of it."""
    monkeypatch.chdir(tmp_path)
    table = small_table(3000).with_columns(user=pl.int_range(3000), arm=pl.int_range(3000) % 2)
    (tmp_path / "log").mkdir()
    table.write_parquet("one.parquet")
    for part in range(3):
        table[part * 1000 : (part + 1) * 1000].write_parquet(f"log/part-{part}.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA_TOML, encoding="utf-8")
    done = run("fit", "--train", "log", "--method", "closed-form", "-o", "m", "-q")
    assert done.code == 0, done
    return tmp_path


PARTS = ["log", "log/*.parquet", "log/part-0.parquet,log/part-1.parquet,log/part-2.parquet"]
QUIET = ("-q", "--json", "-")
VERBS = {
    "evaluate": lambda table: ("evaluate", "m", table, *QUIET),
    "compare": lambda table: (
        *("compare", "--train", table, "--valid", table, "--test", table),
        *("--methods", "closed-form", *QUIET),
    ),
    "ab": lambda table: (
        *("lab", "ab", "analyse", table, "--user", "user", "--arm", "arm"),
        *("--outcomes", "buy", *QUIET),
    ),
    "init": lambda table: ("init", table, "--overwrite", *QUIET),
    "recalibrate": lambda table: ("recalibrate", "m", table, "-o", "r", "--overwrite", *QUIET),
}


def numbers(done):
    """Return what a verb printed, without times and names."""
    assert done.code == 0, done
    result = json.loads(done.out)
    for name in ("fit_seconds", "seconds", "next", "source", "table"):
        result.pop(name, None)
    for method in result.get("methods", []):
        method.pop("fit_seconds")
    return result


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("verb", VERBS)
def test_a_table_in_parts_gives_the_numbers_of_one_file(run, verb):
    whole = numbers(run(*VERBS[verb]("one.parquet")))
    for parts in PARTS:
        assert numbers(run(*VERBS[verb](parts))) == whole


@pytest.mark.parametrize("verb", ["score", "rank"])
def test_what_is_written_of_a_table_in_parts_is_one_file(run, at, verb):
    for table, out in (("one.parquet", "a.parquet"), *((parts, "b.parquet") for parts in PARTS)):
        done = run(verb, "m", table, "-o", out, "--overwrite", "-q")
        assert done.code == 0, done
        assert pl.read_parquet(out).equals(pl.read_parquet("a.parquet"))


def test_a_model_is_published_against_a_table_in_parts(run, at):
    assert run("registry", "init", "registry", "-q").code == 0
    for _ in range(2):
        done = run("registry", "publish", "registry", "m", "--data", "log", *QUIET)
        assert done.code == 0, done
    done = run("registry", "diff", "registry", "1", "2", "--data", "log/*.parquet", *QUIET)
    assert done.code == 0, done
    assert json.loads(done.out)["correlation"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ("empty", "'empty' is a folder without a table; expected parquet, csv or arrow files"),
        ("logs", "There is no file or folder 'logs'; check its name."),
        ("log/*.csv", "There is no file like 'log/*.csv'; check the pattern."),
        ("mixed", "must be of one kind. Got csv ('mixed/a.csv') and parquet ('mixed/b.parquet')"),
        ("odd", "Part 'odd/b.parquet' has no column 'p_buy', which 'odd/a.parquet' has"),
    ],
)
def test_what_is_no_table_is_refused_in_a_sentence(run, at, table, sentence):
    for name in ("empty", "mixed", "odd"):
        (at / name).mkdir()
    frame = small_table(50)
    frame.write_csv("mixed/a.csv")
    for path in ("mixed/b.parquet", "odd/a.parquet"):
        frame.write_parquet(path)
    frame.drop("p_buy").write_parquet("odd/b.parquet")
    done = run("evaluate", "m", table)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)
    assert sentence in done.err


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize("verb", VERBS)
def test_a_glob_that_the_shell_has_expanded_is_one_table(run, verb):
    files = [f"log/part-{part}.parquet" for part in range(3)]
    whole, words = numbers(run(*VERBS[verb]("one.parquet"))), []
    for word in VERBS[verb]("log"):
        # An option is repeated, an argument may be several.
        option = words and words[-1] in ("--train", "--valid", "--test")
        named = [part for file in files for part in (words[-1], file)][1:] if option else files
        words += named if word == "log" else [word]
    assert numbers(run(*words)) == whole
