import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from harmonrank.engine.starting import session_folder

OWNER = """
import os, sys
from harmonrank.engine.starting import session_folder
with session_folder() as folder:
    (folder / "log").write_text("kept")
    print(folder, flush=True)
    sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)


def test_a_folder_is_gone_at_the_end(tmp_path):
    with session_folder() as folder:
        (folder / "socket").touch()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_what_a_killed_process_has_left_is_removed_and_what_is_in_use_stays(tmp_path):
    (tmp_path / "hr-ray-other").mkdir()  # whoever made it: it is no folder of ours
    given = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ}
    with subprocess.Popen([sys.executable, "-c", OWNER], **given) as owner:
        left = Path(owner.stdout.readline().strip())
        with session_folder():
            assert (left / "log").exists()
        owner.kill()
    assert (left / "log").exists()
    with session_folder():
        assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["hr-ray-other"]
