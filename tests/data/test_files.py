import json
import os
from pathlib import Path

import pytest

from harmonrank.data.files import check_output, new_file, new_folder, read_json, write_json
from harmonrank.errors import DataError, OutputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "deep" / "out.txt"
    with new_file(path) as partial:
        partial.write_text("half")
        assert not path.exists()
    assert path.read_text() == "half"
    assert names(path.parent) == ["out.txt"]


def test_a_folder_appears_only_when_it_is_complete(tmp_path):
    path = tmp_path / "model"
    with new_folder(path, holds="a") as partial:
        (partial / "a").write_text("1")
        assert not path.exists()
    assert names(tmp_path) == ["model"]


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


def test_a_folder_that_failed_leaves_nothing(tmp_path):
    def write():
        with new_folder(tmp_path / "m", holds="a") as partial:
            (partial / "a").write_text("1")
            raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="'.*m' cannot be written: No space left on device."):
        write()
    assert names(tmp_path) == []


def test_overwriting_replaces_all_of_a_folder_that_we_made(tmp_path):
    for content in (["mark", "old"], ["mark", "new"]):
        with new_folder(tmp_path / "m", holds="mark", overwrite=True) as partial:
            for name in content:
                (partial / name).touch()
    assert names(tmp_path / "m") == ["mark", "new"]
    assert names(tmp_path) == ["m"]


def test_a_folder_that_we_did_not_make_is_never_overwritten(tmp_path):
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "photo").touch()
    with pytest.raises(OutputError, match="folder without model.json, so it is not overwritten"):
        check_output(tmp_path / "holiday", overwrite=True, holds="model.json")
    with pytest.raises(OutputError, match="holiday' is a folder; choose the name of a file"):
        check_output(tmp_path / "holiday", overwrite=True)
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="file' is a file; choose the name of a folder"):
        check_output(tmp_path / "file", overwrite=True, holds="model.json")


def test_what_exists_is_refused_with_the_remedy(tmp_path):
    (tmp_path / "out").touch()
    with pytest.raises(OutputError, match="out' exists already; choose another name or pass --ov"):
        check_output(tmp_path / "out")


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
