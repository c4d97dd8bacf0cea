import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harmonrank.support import DataError, OutputError
from harmonrank.support.storage import (
    check_output,
    new_file,
    new_folder,
    read_json,
    resumable_folder,
    write_json,
)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_or_folder_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "deep" / "out.txt"
    with new_file(path) as partial:
        partial.write_text("half")
        assert not path.exists()
    with new_folder(path.parent / "model", holds="a") as partial:
        (partial / "a").write_text("1")
        assert not (path.parent / "model").exists()
    assert path.read_text() == "half"
    assert names(path.parent) == ["model", "out.txt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_left_of_what_failed_and_the_old_stays(tmp_path, overwrite):
    path = tmp_path / "out.txt"
    if overwrite:
        path.write_text("old")

    def write():
        with new_file(path, overwrite=overwrite) as partial:
            partial.write_text("half")
            raise RuntimeError("power cut")

    with pytest.raises(RuntimeError, match="power cut"):
        write()
    assert names(tmp_path) == ["out.txt"] * overwrite
    assert not overwrite or path.read_text() == "old"


def test_overwriting_replaces_all_of_a_folder_that_we_made(tmp_path):
    for content in (["mark", "old"], ["mark", "new"]):
        with new_folder(tmp_path / "m", holds="mark", overwrite=True) as partial:
            for name in content:
                (partial / name).touch()
    assert names(tmp_path / "m") == ["mark", "new"]
    assert names(tmp_path) == ["m"]


@pytest.mark.parametrize("way", ["", "nope/.."])  # what is looked at is what is written
def test_what_we_did_not_make_is_never_overwritten(tmp_path, way):
    for folder in ("holiday", "holiday/photo"):
        (tmp_path / folder).mkdir()
    with pytest.raises(OutputError, match="folder without model.json, so it is not overwritten"):
        check_output(tmp_path / way / "holiday", overwrite=True, holds="model.json")
    with pytest.raises(OutputError, match="holiday' is a folder; choose the name of a file"):
        check_output(tmp_path / way / "holiday", overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file' is a file; choose the name of a folder"):
        check_output(tmp_path / way / "file", overwrite=True, holds="model.json")
    with pytest.raises(OutputError, match="file' exists already; choose another name or pass --ov"):
        check_output(tmp_path / way / "file")


def test_a_path_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="cannot be written: '.*file' is not a folder"):
        check_output(tmp_path / "file" / "deep" / "out")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_a_folder_where_nothing_can_be_made_is_found_out_before_the_work():
    with pytest.raises(OutputError, match="'/proc/self/out' cannot be written"):
        check_output("/proc/self/out")


def test_a_name_that_is_too_long_is_a_clear_error(tmp_path):
    with pytest.raises(OutputError, match="cannot be written: File name too long"):
        check_output(tmp_path / ("x" * 300))
    with new_file(tmp_path / ("x" * 250)) as partial:
        partial.touch()


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with new_file(pipe) as partial:
        partial.write_text("hello")
    assert os.read(reader, 99) == b"hello"
    os.close(reader)
    assert names(tmp_path) == ["pipe"]
    assert pipe.is_fifo()


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path):
    (tmp_path / "v1").write_text("old")
    (tmp_path / "now").symlink_to("v1")
    with new_file(tmp_path / "now", overwrite=True) as partial:
        partial.write_text("new")
    assert (tmp_path / "now").is_symlink()
    assert (tmp_path / "v1").read_text() == "new"


def test_json_has_null_for_what_is_not_finite(tmp_path):
    value = {"a": [float("nan"), (float("inf"), 1.5)], "b": None, "c": "nan"}
    write_json(tmp_path / "x.json", value)
    read = json.loads((tmp_path / "x.json").read_text(), parse_constant=pytest.fail)
    assert read == {"a": [None, [None, 1.5]], "b": None, "c": "nan"}


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b""])
def test_what_is_not_json_is_named(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match="x.json' is not JSON"):
        read_json(path)


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_appears_during_the_work_is_not_replaced(tmp_path, overwrite):
    def write():
        with new_folder(tmp_path / "m", holds="a", overwrite=overwrite) as partial:
            (partial / "a").touch()
            (tmp_path / "m").mkdir()
            (tmp_path / "m" / "thesis").touch()

    with pytest.raises(OutputError, match="exists already|is not overwritten"):
        write()
    assert names(tmp_path / "m") == ["thesis"]
    assert names(tmp_path) == ["m"]


def killed(folder, code):
    """Run code in a process that kills itself, as `kill -9` would."""
    start = "import os, signal; from pathlib import Path;"
    start += "from harmonrank.support.storage.files import *;"
    end = "    os.kill(os.getpid(), signal.SIGKILL)"
    code = f"{start}\n{code}\n{end}"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, check=False)
    assert done.returncode == -signal.SIGKILL


@pytest.mark.parametrize("writer", ["new_file(Path('x'))", "new_folder(Path('x'), holds='a')"])
def test_the_next_writer_removes_what_a_killed_one_left(tmp_path, writer):
    killed(tmp_path, f"with {writer}:")
    assert len(names(tmp_path)) == 1
    with new_file(tmp_path / "other") as partial:
        partial.touch()
    assert len(names(tmp_path)) == 2
    with new_file(tmp_path / "x") as partial:
        partial.touch()
    assert names(tmp_path) == ["other", "x"]


def test_a_running_writers_file_is_left_alone(tmp_path):
    with new_file(tmp_path / "x", overwrite=True) as first:
        first.write_text("first")
        with new_file(tmp_path / "x", overwrite=True) as second:
            second.write_text("second")
        assert (tmp_path / "x").read_text() == "second"
    assert (tmp_path / "x").read_text() == "first"
    assert names(tmp_path) == ["x"]


def test_a_folder_that_was_moved_aside_and_never_replaced_comes_back(tmp_path):
    with new_folder(tmp_path / "m", holds="a") as partial:
        (partial / "a").write_text("old")
    (tmp_path / "m").rename(tmp_path / ".m.0123abcd.replaced")
    with (
        pytest.raises(OutputError, match="m' exists already"),
        new_folder(tmp_path / "m", holds="a") as partial,
    ):
        (partial / "a").write_text("new")
    assert (tmp_path / "m" / "a").read_text() == "old"
    assert names(tmp_path) == ["m"]


def test_work_that_was_cut_short_is_found_again(tmp_path):
    killed(
        tmp_path,
        "with resumable_folder('m', {'n': 1}, holds='a') as partial:\n"
        "    (partial / 'done').touch()",
    )
    with resumable_folder(tmp_path / "m", {"n": 1}, holds="a") as partial:
        assert (partial / "done").exists()
        (partial / "a").touch()
    assert names(tmp_path) == ["m"]
    assert names(tmp_path / "m") == ["a", "done"]


@pytest.mark.parametrize("key", [b"", b"{", b'{"n": 2}', b"\xff"])
def test_work_whose_key_is_another_or_cannot_be_read_begins_anew(tmp_path, key):
    (tmp_path / ".m.resumable").mkdir()
    (tmp_path / ".m.resumable" / "key.json").write_bytes(key)
    (tmp_path / ".m.resumable" / "done").touch()
    with resumable_folder(tmp_path / "m", {"n": 1}, holds="a") as partial:
        assert names(partial) == ["key.json"]
        (partial / "a").touch()
    assert names(tmp_path / "m") == ["a"]


def test_two_at_once_are_told_apart(tmp_path):
    with resumable_folder(tmp_path / "m", {"n": 1}, holds="a") as partial:
        (partial / "a").write_text("first")
        with (
            pytest.raises(OutputError, match="m' is being written by another process; wait"),
            resumable_folder(tmp_path / "m", {"n": 2}, holds="a"),
        ):
            pass
    assert (tmp_path / "m" / "a").read_text() == "first"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence():
    with (
        pytest.raises(OutputError, match="'/dev/full' cannot be written: No space left on device."),
        new_file("/dev/full") as partial,
    ):
        write_json(partial, {"a": 1})
