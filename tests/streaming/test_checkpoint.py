import os

import pytest

from harmonrank.streaming.state.checkpoint import Commits, StatePart
from harmonrank.support.errors import DataError, OutputError


def text(value, key=None):
    return StatePart(key, lambda path: path.write_text(value))


def folder(value, key=None):
    def write(path):
        path.mkdir()
        (path / "inner").write_text(value)

    return StatePart(key, write)


def content(path):
    files = (file for file in path.rglob("*") if file.is_file() and file.name != "checksums.json")
    return {file.relative_to(path).as_posix(): file.read_text() for file in files}


def test_a_commit_has_the_next_number_and_the_one_before_it_is_gone(tmp_path):
    commits = Commits(tmp_path)
    assert commits.folder is None
    assert commits.commit({"a": text("1"), "b": folder("2")}) == 1
    assert commits.commit({"a": text("3")}) == 2
    assert [path.name for path in (tmp_path / "commits").iterdir()] == ["2"]
    assert content(Commits(tmp_path).folder) == {"a": "3"}


def test_what_has_not_changed_is_not_written_again(tmp_path):
    commits, value = Commits(tmp_path), object()
    commits.commit({"a": text("1", value), "b": folder("2", value)})
    inode = (commits.folder / "a").stat().st_ino
    commits.commit({"a": text("no", value), "b": folder("no", value), "c": text("3")})
    assert content(commits.folder) == {"a": "1", "b/inner": "2", "c": "3"}
    assert (commits.folder / "a").stat().st_ino == inode
    again = Commits(tmp_path)
    again.check()
    again.loaded({"a": value})
    again.commit({"a": text("no", value), "b": folder("4", value)})
    assert content(again.folder) == {"a": "1", "b/inner": "4"}
    again.check()


def test_where_files_have_one_name_only_they_are_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    test_what_has_not_changed_is_still_there(tmp_path)


def test_what_has_not_changed_is_still_there(tmp_path):
    commits, value = Commits(tmp_path), object()
    for _ in range(3):
        commits.commit({"a": text("1", value), "b": folder("2", value)})
    assert content(commits.folder) == {"a": "1", "b/inner": "2"}


def test_a_commit_that_fails_leaves_the_one_before_it_and_may_be_tried_again(tmp_path):
    commits = Commits(tmp_path)
    commits.commit({"a": text("1")})

    def fail(path):
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="commits' cannot be written: No space left on device"):
        commits.commit({"a": text("2"), "b": StatePart(None, fail)})
    assert [path.name for path in (tmp_path / "commits").iterdir()] == ["1"]
    assert content(commits.folder) == {"a": "1"}
    assert commits.commit({"a": text("2")}) == 2


def test_the_next_start_removes_what_a_killed_one_left(tmp_path):
    Commits(tmp_path).commit({"a": text("1")})
    left = tmp_path / "commits"
    (left / ".2.0123abcd.partial" / "2").mkdir(parents=True)
    (left / "0").mkdir()
    commits = Commits(tmp_path)
    assert commits.sweep() == 2
    assert [path.name for path in left.iterdir()] == ["1"]


def test_a_flipped_byte_is_refused(tmp_path):
    commits = Commits(tmp_path)
    commits.commit({"a": text("right")})
    (commits.folder / "a").write_text("wrong")
    with pytest.raises(DataError, match="a' does not match its checksum: the state is damaged"):
        Commits(tmp_path).check()
