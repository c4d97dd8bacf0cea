"""`harmonrank stream` and `report`, from a folder of events to versions."""

import json
import os
import signal
import subprocess
import sys
import time
from http.client import HTTPConnection

import pytest
from small_stream import SCHEMA, Place, events_of

from harmonrank.registry import Registry
from harmonrank.streaming.sources.folder import FolderSink

FAST = ("--method", "closed-form", "--set", "first_rows=200")
PATIENCE = 60.0


@pytest.fixture(scope="module")
def events():
    return events_of(5, 800)


@pytest.fixture
def place(tmp_path, events):
    """Return the place of a stream whose events lie in a folder with their schema."""
    sink = FolderSink(tmp_path / "events", "parquet")
    for first in range(0, len(events), 1000):
        sink.write(events[first : first + 1000])
    (tmp_path / "events" / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    made = Place(tmp_path, None)
    made.folder = tmp_path
    made.folders = ("--source", tmp_path / "events", "--state", made.state)
    made.arguments = ("stream", *made.folders, "--registry", made.registry, *FAST)
    return made


@pytest.fixture
def started(place):
    """Return a function that starts the stream as a process of its own."""
    running = []

    def start(*options, **rest):
        command = [sys.executable, "-m", "harmonrank", *map(str, place.arguments), *options]
        rest = {"stderr": subprocess.PIPE, "text": True, **rest}
        running.append(subprocess.Popen(command, **rest))
        return running[-1]

    yield start
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()


def settings(place, **keys):
    """Write a settings file, and return what names it."""
    file = place.folder / "settings.toml"
    file.write_text("[stream]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()))
    return "--settings", file


def lines(file):
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def wait_for(condition):
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.02)


def has_line(file, kind):
    return file.exists() and f'{{"event":"{kind}"' in file.read_text("utf-8")


def test_once_takes_what_is_there_publishes_and_stops(run, place):
    file = place.folder / "lines.json"
    done = run(*place.arguments, "--once", "--json", file)
    assert done.code == 0, done.err
    assert Registry(place.registry).numbers() == [1, 2, 3, 4]
    told = lines(file)
    assert [told[0]["event"], told[-1]["event"]] == ["started", "stopped"]
    batches = [line for line in told if line["event"] == "batch"]
    assert [batch["version"]["version"] for batch in batches] == [1, 2, 3, 4]
    assert f"Stream {told[0]['stream']} (closed-form) begins: 0 events read" in done.err
    assert "800 rows, " in done.err
    assert "version 4 published" in done.err
    assert "Stopped: nothing is left to read." in done.err


def test_a_simulated_platform_is_learned_by_the_default_and_reported(run, tmp_path):
    events = tmp_path / "events"
    shape = ("--hours", "5", "--rows", "12000", "--seed", "3")
    world = ("simulate", "conflict", "--objectives", "like,long_view")
    done = run(*world, "--stream", events, *shape, settings="[simulate]\ndisorder = 0.05")
    assert done.code == 0, done.err
    place = Place(tmp_path, None)
    folders = ("--source", events, "--state", place.state, "--registry", place.registry)
    done = run("stream", *folders, "--once", "--window", "1h", "--window", "like=30m")
    assert done.code == 0, done.err
    assert "Set aside so far: " in done.err
    content = place.content()
    reasons = {row["reason"] for row in content["aside"]}
    assert "duplicate" in reasons
    assert reasons <= {"duplicate", "late", "unmatched"}
    counted = content["record"]["learner"]["learned_rows"] + content["history"][-1]["guard_rows"]
    assert counted == sum(line["rows"] for line in content["history"] if line["event"] == "batch")
    done = run("report", place.state, "--json", "-", "-q")
    assert len(json.loads(done.out)["batches"]) == 5


def test_the_next_run_goes_on_and_appends_to_its_lines(run, place):
    file = place.folder / "lines.json"
    first = run(*place.arguments, "--once", "--json", file)
    before = place.content()
    again = run(*place.arguments, "--once", "--json", file)
    assert (first.code, again.code) == (0, 0)
    assert "goes on from commit 4" in again.err
    assert [line["event"] for line in lines(file)].count("started") == 2
    assert place.content() == before


def test_a_registry_is_made_with_default_guardrails_if_none_is_there(run, place):
    new = place.folder / "new"
    done = run("stream", *place.folders, "--registry", new, *FAST, "--once", "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert Registry(new).current() is not None


def test_json_lines_on_standard_output_are_json_alone(run, place):
    done = run(*place.arguments, "--once", "--json", "-")
    assert [json.loads(line)["event"] for line in done.out.splitlines()][-1] == "stopped"
    assert "Stopped" in done.err


def test_settings_go_to_the_method_the_learner_and_the_stream(run, place):
    more = ("--set", "window_rows=1500", "--set", "guard_share=0.4", "--set", "seed=3")
    done = run(*place.arguments, *more, "--once")
    assert done.code == 2
    assert "closed-form has no option 'seed'" in done.err
    assert not place.state.exists()
    done = run(*place.arguments, *more[:-2], "--once", "-q")
    assert done.code == 0, done.err
    settings = json.loads((place.state / "stream.json").read_text("utf-8"))["settings"]
    assert (settings["learner"]["window_rows"], settings["guard_share"]) == (1500, 0.4)
    assert settings["options"] == {}


def test_windows_are_of_all_objectives_or_of_one(run, place):
    waits = ("--window", "30m", "--window", "like=2h", "--every", "2h", "--lateness", "90s")
    done = run(*place.arguments, *waits, "--once", "-q")
    assert done.code == 0, done.err
    settings = json.loads((place.state / "stream.json").read_text("utf-8"))["settings"]
    result = [settings[name] for name in ("window", "windows", "every", "lateness")]
    assert result == [1800.0, {"like": 7200.0}, 7200.0, 90.0]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--window", "1h", "--window", "2h"), "--window says twice how long feedback counts"),
        (("--window", "like=1h", "--window", "like=2h"), "twice how long like counts"),
        (("--window", "bye=1h"), "There is a window for 'bye', which is no objective"),
        (("--every", "soon"), "--every must be a number with s, m, h or d"),
        (("--set", "guard_share=2"), "Option 'guard_share' of a stream must be a number"),
        (("--set", "passes=0"), "Option 'passes' of a learner must be a whole number from 1"),
        (("--method", "magic"), "There is no method 'magic'"),
        (("--source", "nowhere"), "There is no folder 'nowhere'"),
        (("--source", "carrier-pigeon://home"), "no source of events of the kind"),
        (("--sample-weight", "w"), "Rows of a stream have no weights"),
    ],
)
def test_wrong_options_end_in_one_sentence(run, place, options, reason):
    schema = ("--once", "--schema", place.folder / "events/schema.toml")
    words = list(place.arguments)
    if options[0] in words and options[0] != "--set":
        place_of = words.index(options[0])
        words[place_of : place_of + 2] = []
    done = run(*words, *options, *schema)
    assert done.code == 2
    assert reason in done.err
    assert len(done.err.strip().splitlines()) <= 2


def test_other_settings_are_refused_with_their_name(run, place):
    assert run(*place.arguments, "--once", "-q").code == 0
    done = run(*place.arguments, "--every", "2h", "--once")
    assert done.code == 2
    assert "was begun with every 3600.0. Got 7200.0" in done.err


def test_a_state_knows_its_columns(run, place):
    assert run(*place.arguments, "--once", "-q").code == 0
    (place.folder / "events/schema.toml").rename(place.folder / "kept.toml")
    done = run(*place.arguments, "--once")
    assert done.code == 0, done.err
    fresh = run("stream", *place.folders[:2], "--state", place.folder / "b", *place.arguments[5:])
    assert fresh.code == 2
    assert "Name the columns" in fresh.err


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_learned(run, place, events, tmp_path):
    (place.folder / "events/events-000000000001-b.parquet").write_bytes(b"PAR1 no more PAR1")
    done = run(*place.arguments, "--once")
    assert done.code == 0, done.err
    assert "trying again in" in done.err
    assert "events-000000000001-b.parquet' " in done.err
    assert "It is passed over" in done.err
    other = Place(tmp_path / "other", events)
    list(other.run())
    assert place.content()["record"]["digest"] == other.content()["record"]["digest"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_finishes_the_batch_commits_and_stops(run, place, started, number):
    file = place.folder / "lines.json"
    process = started("--json", str(file), *map(str, settings(place, chunk=700)))
    wait_for(lambda: has_line(file, "batch"))
    process.send_signal(number)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert "Stopped: stopped as asked." in errors
    told = lines(file)
    assert [line["event"] for line in told[-2:]] == ["commit", "stopped"]
    assert run(*place.arguments, "--once", "-q").code == 0
    alone = ("stream", *place.folders[:2], "--state", place.folder / "b/state", *FAST, "--once")
    assert run(*alone, "-q", "--registry", Place(place.folder / "b", None).registry).code == 0
    assert place.content() == Place(place.folder / "b", None).content()


def test_a_stream_that_waits_reads_what_comes_and_answers_for_prometheus(place, events, started):
    late = place.folder / "events/events-000000000003.parquet"
    late.rename(place.folder / "held")
    file = place.folder / "lines.json"
    for left in sorted((place.folder / "events").glob("events-*4.parquet")):
        left.unlink()
    process = started("--json", str(file), "--metrics", "0")
    address = process.stderr.readline().split()[-1]
    wait_for(lambda: has_line(file, "read"))
    (place.folder / "held").rename(late)
    wait_for(lambda: sum(line["event"] == "read" for line in lines(file)) >= 2)
    connection = HTTPConnection(address.split("/")[2], timeout=PATIENCE)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    assert "harmonrank_stream_events_total" in text
    process.terminate()
    assert process.wait(PATIENCE) == 0


def test_a_terminal_shows_a_live_view(place, started):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    process = started("--once", stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux: the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(PATIENCE) == 0
    for word in ("watermark", "versions", "4 published, 0 refused", "rows/s", "AUC"):
        assert word in shown.decode()


def test_backfill_gives_the_state_that_the_stream_had_and_publishes_nothing(run, place, events):
    period, small = ("--backfill", "-", "2023-11-15T01:00"), settings(place, chunk=700)
    done = run("stream", *place.folders, *FAST, *period, *small)
    assert done.code == 0, done.err
    assert "not published" in done.err
    assert Registry(place.registry).numbers() == []
    cut = int((events["time"].dt.strftime("%Y-%m-%dT%H:%M") < "2023-11-15T01:00").arg_min())
    other = Place(place.folder / "other", None)
    FolderSink(place.folder / "cut", "parquet").write(events[:cut])
    folders = ("--source", place.folder / "cut", "--state", other.state, "--once", "-q")
    schema = ("--schema", place.folder / "events/schema.toml")
    live = run("stream", *folders, "--registry", other.registry, *schema, *FAST)
    assert live.code == 0, live.err
    assert place.content()["files"] == other.content()["files"]
    assert place.content()["record"]["digest"] == other.content()["record"]["digest"]
    # The stream goes on from it.
    assert run(*place.arguments, "--once", "-q").code == 0
    assert place.content()["record"]["events"] == len(events)


def test_backfill_publishes_the_last_model_where_asked(run, place):
    command = (*place.arguments, "--backfill", "-", "-")
    for _ in range(2):
        done = run(*command, "--json", "-")
        assert done.code == 0, done.err
        assert json.loads(done.out.splitlines()[-1])["version"]["version"] == 1
    assert Registry(place.registry).numbers() == [1]


def test_what_cannot_be_replayed_or_published_is_refused(run, place):
    done = run("stream", *place.folders, *FAST, "--backfill", "yesterday", "-")
    assert done.code == 2
    assert "--backfill takes times such as 2026-01-31T18:00" in done.err
    assert "Missing option '--registry'" in run("stream", *place.folders, *FAST).err


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
    numbers = json.loads((tmp_path / "r.json").read_text("utf-8"))
    assert len(numbers["batches"]) == kinds.count("batch") > 3
    assert len(numbers["intervals"]) == kinds.count("interval")
    assert numbers["method"] == "closed-form"
    last = numbers["batches"][-1]
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
    assert "| until (UTC) | rows | AUC-sum in requests |" in done.out


def test_what_is_no_stream_is_said(run, tmp_path):
    done = run("report", tmp_path)
    assert done.code == 2
    assert "history.jsonl' cannot be read" in done.err
