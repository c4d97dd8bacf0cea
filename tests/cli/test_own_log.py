"""From a ranking engineer's own log to a decision, without a script in between."""

import json
import shlex
from html import unescape

import polars as pl
import pytest

import harmonrank as hr
from logs import own_log, small_table

INIT = "init log"
COMPARE = "compare log --split time --baseline prod_score --report r.html"


@pytest.fixture
def table(tmp_path, monkeypatch):
    """Go to a folder with nothing but a log: percent scores, nulls, parts, times, a formula."""
    monkeypatch.chdir(tmp_path)
    return own_log(tmp_path / "log")


def decided(run, tmp_path, *more):
    """Run both commands and return what the second one gave."""
    first = run(*shlex.split(INIT))
    assert first.code == 0, first
    assert f"    harmonrank {COMPARE.replace('r.html', 'compare.html')}\n" in first.out
    done = run(*shlex.split(COMPARE), *more)
    assert done.code == 0, done
    assert "Columns are as 'schema.toml' says." in done.err
    assert "Split by time, test rows from " in done.err
    verdict = " ".join(done.out.split("\nmethod")[0].split())
    assert verdict.startswith("Within requests harmonrank is ")
    assert "today's score by ." in verdict
    assert "today's score by ." in unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    return done


def test_two_commands_lead_from_a_log_to_a_verdict(run, tmp_path, table):
    done = decided(run, tmp_path, "--json", "numbers.json")
    assert max(map(len, done.out.splitlines())) <= 80
    assert "Missing scores: like_score " in done.err
    schema = hr.Schema.read(tmp_path / "schema.toml")
    assert schema == hr.Schema(
        {"click": "pctr", "liked": "like_score", "follow": "pFollow"},
        ["region", "age_group"],
        "request_id",
        user="user_id",
        time="shown_at",
        scale={"like_score": "percent"},
    )
    numbers = json.loads((tmp_path / "numbers.json").read_text(encoding="utf-8"))
    assert numbers["rows"] == {"train": 4800, "test": 1200}
    boundary = table["shown_at"].sort()[4800]
    assert f"test rows from {boundary}: 4,800 train, 1,200 test rows." in done.err


def test_the_model_of_such_a_log_is_fitted_scored_and_served_as_it_is(run, tmp_path, table):
    assert run("init", "log", "-q").code == 0
    hr.split("log", "parts", hr.Schema.read("schema.toml"))
    assert run("fit", "--train", "parts/train.parquet", "-o", "model", "-q").code == 0
    assert run("score", "model", "log", "-o", "scored.parquet", "-q").code == 0
    scored = pl.read_parquet("scored.parquet")
    assert scored.drop("fused").equals(table)
    model = hr.load("model")
    for row in (0, int(table["like_score"].is_null().arg_true()[0])):
        line = table.row(row, named=True)
        scores = [[line["pctr"], line["like_score"], line["pFollow"]]]
        assert model.score_request(scores, line)[0] == pytest.approx(scored["fused"][row], rel=1e-6)


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
    assert hr.Schema.from_dict(facts["schema"]) == hr.Schema.read(at / "other/s.toml")
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
