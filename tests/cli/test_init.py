"""`harmonrank init`."""

import json

import polars as pl
import pytest

from harmonrank import Schema
from logs import small_table


@pytest.fixture
def at(tmp_path, monkeypatch):
    """Go to a folder with a log in parts."""
    (tmp_path / "log").mkdir()
    for part in range(2):
        small_table(seed=part).write_parquet(tmp_path / f"log/{part}.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_schema_is_written_and_the_next_command_runs(run, at):
    done = run("init", "log")
    assert done.code == 0, done
    assert "score of buy" in done.out
    assert "Wrote schema.toml; look it over, then:" in done.out
    (command,) = (line.split() for line in done.out.splitlines() if "harmonrank compare" in line)
    assert command[1:3] == ["compare", "log"]
    again = run(*command[1:-2], "--methods", "closed-form", "-q", "--json", "-")
    assert again.code == 0, again
    assert max(map(len, done.out.splitlines())) <= 80


def test_the_guess_is_json_too_and_nothing_is_overwritten_unasked(run, at):
    done = run("init", "log/0.parquet", "-o", "other/s.toml", "--json", "-")
    assert done.code == 0, done
    facts = json.loads(done.out)
    assert Schema.from_dict(facts["schema"]) == Schema.read(at / "other/s.toml")
    assert facts["columns"]["hour"] == {
        "role": "left out",
        "why": "differs within a request, and is the score of no label",
    }
    assert facts["next"].startswith(
        "harmonrank compare log/0.parquet --schema other/s.toml --split"
    )
    before = (at / "other/s.toml").read_bytes()
    again = run("init", "log", "-o", "other/s.toml")
    assert (again.code, again.out) == (2, "")
    assert "exists already; choose another name or pass --overwrite" in again.err
    assert (at / "other/s.toml").read_bytes() == before
    assert run("init", "log", "-o", "other/s.toml", "--overwrite", "-q").code == 0


def test_a_log_that_tells_nothing_leaves_no_file(run, at):
    pl.DataFrame({"a": [1, 2]}).write_parquet(at / "t.parquet")
    done = run("init", "t.parquet")
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "has no label with a score that could be guessed" in done.err
    assert not (at / "schema.toml").exists()
