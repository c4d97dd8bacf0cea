"""A disk that is full: one sentence, exit code 2, and nothing under its name that is not whole."""

import os
import subprocess

import pytest

from verbs import arguments, content, prepare

PAGES = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 100)
VERBS = ("score", "rank", "split", "init", "fit", "evaluate", "compare", "import", "predict")


@pytest.fixture
def disk(tmp_path):
    """Return a disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("a disk can only be mounted by root, and not everywhere")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("verb", ["score", "fit", "evaluate"])
def test_a_disk_without_a_page_left_is_told_in_one_sentence(run, disk, tmp_path, verb):
    prepare(tmp_path)
    (disk / "filler").write_bytes(b"x" * (1 << 20))
    done = run(*arguments(tmp_path, verb, disk))
    assert (done.code, len(done.err.strip().splitlines())) == (2, 1), done
    assert "No space left on device" in done.err
    assert [file.name for file in disk.iterdir()] == ["filler"]


def test_a_service_without_room_for_what_its_processes_share_is_told_so(disk, tmp_path):
    from harmonrank.serving.counters import new_array

    (disk / "filler").write_bytes(b"x" * ((1 << 20) - 4096 * 2))
    new_array(disk / "small", "f8", (100,))[:] = 1.0
    with pytest.raises(OSError, match="No space left on device"):
        new_array(disk / "large", "f8", (10_000,))


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_full_disk_is_told_in_one_sentence(
    nursery, place_with_log, disk, tmp_path, verb, record_property
):
    code, errors = nursery.run(*arguments(place_with_log, verb, tmp_path / "whole"))
    assert code == 0, errors
    expected, refused = content(tmp_path / "whole"), 0
    for left in PAGES:
        (disk / "filler").write_bytes(b"x" * ((1 << 20) - 4096 * left))
        folder = disk / str(left)
        code, errors = nursery.run(*arguments(place_with_log, verb, folder))
        if code == 0:
            assert content(folder) == expected
        else:
            assert code == 2, errors
            assert errors.startswith("Error: "), errors
            assert len(errors.strip().splitlines()) == 1, errors
            visible = list(folder.glob("[!.]*"))
            assert verb == "compare" or not visible
            refused += 1
        subprocess.run(["rm", "-rf", str(folder), str(disk / "filler")], check=True)
    assert refused
    record_property("disks", len(PAGES))
