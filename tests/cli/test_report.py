import json

import pytest
from small_stream import Place, events_of


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """Return the state of a stream of some hours, with a swap in the middle."""
    place = Place(tmp_path_factory.mktemp("stream"), events_of(hours=7, swap=4))
    assert list(place.run())
    return place.state


def test_the_table_and_json_have_every_batch(run, state, tmp_path):
    done = run("report", state, "--json", tmp_path / "r.json")
    assert done.code == 0, done.err
    lines = (state / "history.jsonl").read_text("utf-8").splitlines()
    kinds = [json.loads(line)["event"] for line in lines]
    found = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert len(found["batches"]) == kinds.count("batch") > 3
    assert len(found["intervals"]) == kinds.count("interval")
    assert found["method"] == "closed-form"
    last = found["batches"][-1]
    assert f"{last['learned_rows']:,} rows learned" in done.out
    assert f"{last['window']['auc_sum']:.4f}" in done.out


def test_the_page_is_written_and_replaces_only_a_page(run, state, tmp_path):
    page = tmp_path / "page.html"
    for _ in range(2):
        done = run("report", state, "-o", page, "-q")
        assert (done.code, done.out) == (0, "")
    text = page.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "closed-form on the stream state" in text
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    done = run("report", state, "-o", tmp_path / "notes.txt")
    assert done.code == 2
    assert "does not begin with <!doctype html>" in done.err


def test_markdown_for_a_pull_request(run, state):
    done = run("report", state, "--format", "md")
    assert "| until (UTC) | rows | AUC-sum |" in done.out


def test_what_is_no_stream_is_said(run, tmp_path):
    done = run("report", tmp_path)
    assert done.code == 2
    assert "history.jsonl' cannot be read" in done.err
