"""A state that was altered is refused in one sentence, or works."""

import json
import shutil

import pytest
from small_stream import Place, events_of

from harmonrank.streaming import BatchLearned
from harmonrank.support import DataError, ModelFileError
from harmonrank.support.storage import sha256


@pytest.fixture(scope="module")
def events():
    return events_of(5, 800)


@pytest.fixture(scope="module")
def halfway(events, tmp_path_factory):
    """Return the folder of a stream that stopped with steps to do."""
    folder = tmp_path_factory.mktemp("halfway")
    run = Place(folder, events).run()
    for event in run:
        if isinstance(event, BatchLearned):
            next(run)  # the commit after it
            break
    run.close()
    return folder


@pytest.fixture
def place(halfway, events, tmp_path):
    shutil.copytree(halfway, tmp_path / "copy")
    made = Place(tmp_path / "copy", events)
    (made.commit,) = (made.state / "commits").iterdir()
    return made


def change(place, name, **changes):
    """Alter a JSON file of the commit, with a right checksum."""
    path = place.commit / name
    parts = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(parts | changes), encoding="utf-8")
    sums = place.commit / "checksums.json"
    numbers = json.loads(sums.read_text("utf-8"))
    sums.write_text(json.dumps(numbers | {name: sha256(path)}), encoding="utf-8")


def test_it_goes_on_with_the_steps_that_were_left(place, events, tmp_path):
    names = sorted(path.name.partition("-")[0] for path in place.commit.glob("[be]*-*.parquet"))
    assert names == ["batch", "batch", "batch", "exposures", "exposures", "exposures"]
    list(place.run())
    other = Place(tmp_path / "other", events)
    list(other.run())
    assert place.content() == other.content()


@pytest.mark.parametrize(
    "changes",
    [
        {"learner": {"learned_rows": -1}},
        {"quality": [{"rows": 0}]},
        {"digest": None},
        {"offset": "here"},
        {"history": 1.5},
        {"steps": [{"kind": "party", "start": "2026-01-01T00:00:00Z", "end": "soon"}]},
        {"replacements": ["long ago"]},
        {"tried": {"version": 0, "replaced": []}},
        {"surprise": 1},
    ],
)
def test_a_record_of_wrong_content_is_refused(place, changes):
    change(place, "commit.json", **changes)
    with pytest.raises(DataError, match="commit.json"):
        list(place.run())


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"replacements": ["2023-11-15T00:00:00Z"]}, "replacement-.* is missing"),
        ({"history": 10**9}, "history.jsonl' has"),
    ],
)
def test_a_record_of_what_is_not_there_is_refused(place, changes, reason):
    change(place, "commit.json", **changes)
    with pytest.raises(DataError, match=reason):
        list(place.run())


@pytest.mark.parametrize("name", ["guard.parquet", "commit.json", "scores.parquet"])
def test_a_flipped_byte_and_a_missing_file_are_refused(place, name):
    path = place.commit / name
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(DataError, match=f"{name}' does not match its checksum"):
        list(place.run())
    path.unlink()
    with pytest.raises(DataError, match=f"{name}' does not match its checksum"):
        list(place.run())


def test_every_file_of_a_commit_is_checked(place):
    for path in sorted(place.commit.rglob("*")):
        if path.is_file() and path.name != "checksums.json":
            raw = path.read_bytes()
            path.write_bytes(raw[: len(raw) // 2])
            with pytest.raises(DataError, match=f"{path.name}' does not match its checksum"):
                list(place.run())
            path.write_bytes(raw)


def test_another_format_is_refused(place):
    path = place.state / "stream.json"
    parts = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(parts | {"format": 99, "harmonrank": "9.0"}), encoding="utf-8")
    with pytest.raises(ModelFileError, match="has stream format 99, written by harmonrank 9.0"):
        list(place.run())
