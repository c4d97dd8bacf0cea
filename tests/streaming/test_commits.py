import os

import polars as pl
import pytest

from harmonrank.streaming.state.commits import Commits, read_frame
from harmonrank.support import DataError, OutputError

ONE, OTHER = pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})


def there(state):
    return sorted(path.name for path in (state / "commits").iterdir())


def parts(commits):
    commits.check()
    names = (path.name for path in commits.folder.iterdir() if path.name != "checksums.json")
    return {name: commits.read(name, read_frame)["a"][0] for name in sorted(names)}


def test_a_commit_has_the_next_number_and_the_one_before_it_is_gone(tmp_path):
    commits = Commits(tmp_path)
    assert commits.folder is None
    assert commits.commit({"a": ONE, "b": OTHER, "c": None}) == 1
    assert parts(Commits(tmp_path)) == {"a": 1, "b": 2}
    assert commits.commit({"a": OTHER}) == 2
    assert there(tmp_path) == ["2"]
    assert parts(Commits(tmp_path)) == {"a": 2}


@pytest.mark.parametrize("linked", [True, False])
def test_what_has_not_changed_is_not_written_again(tmp_path, monkeypatch, linked):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    if not linked:  # where files have one name only, they are copied
        monkeypatch.setattr(os, "link", refuse)
    commits = Commits(tmp_path)
    commits.commit({"a": ONE, "b": ONE})
    file = (commits.folder / "a").stat().st_ino
    commits.commit({"a": ONE, "b": OTHER})
    assert ((commits.folder / "a").stat().st_ino == file) == linked
    again = Commits(tmp_path)
    assert parts(again) == {"a": 1, "b": 2}
    file, read = (again.folder / "a").stat().st_ino, again.read("a", read_frame)
    again.commit({"a": read, "b": ONE})
    assert ((again.folder / "a").stat().st_ino == file) == linked
    assert parts(again) == {"a": 1, "b": 1}


def test_a_commit_that_fails_leaves_the_one_before_it_and_may_be_tried_again(tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    commits = Commits(tmp_path)
    commits.commit({"a": ONE})
    with monkeypatch.context() as patch:
        patch.setattr(pl.DataFrame, "write_parquet", fail)
        with pytest.raises(OutputError, match="cannot be written: No space left on device"):
            commits.commit({"a": ONE, "b": OTHER})
    assert there(tmp_path) == ["1"]
    assert parts(commits) == {"a": 1}
    assert commits.commit({"a": ONE, "b": OTHER}) == 2


def test_the_next_start_removes_what_a_killed_one_left(tmp_path):
    Commits(tmp_path).commit({"a": ONE})
    (tmp_path / "commits" / ".2.0123abcd.partial" / "2").mkdir(parents=True)
    (tmp_path / "commits" / "0").mkdir()
    assert Commits(tmp_path).sweep() == 2
    assert there(tmp_path) == ["1"]


def test_a_flipped_byte_a_missing_file_and_one_too_many_are_refused(tmp_path):
    commits = Commits(tmp_path)
    commits.commit({"a": ONE})
    raw = (commits.folder / "a").read_bytes()
    for name, text in (("a", raw[:-1] + b"?"), ("b", b"")):
        (commits.folder / name).write_bytes(text)
        with pytest.raises(DataError, match=f"{name}' does not match its checksum: the state is"):
            Commits(tmp_path).check()
        (commits.folder / "a").write_bytes(raw)
    (commits.folder / "b").unlink()
    with pytest.raises(DataError, match="c' is missing: the state is damaged"):
        commits.read("c", read_frame)
    (commits.folder / "a").unlink()
    with pytest.raises(DataError, match="a' does not match its checksum"):
        Commits(tmp_path).check()
