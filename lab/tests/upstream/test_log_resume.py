"""An import that is killed, and the memory of one that is not."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harmonrank.support.errors import DataError
from harmonrank_lab.upstream.logs import ImportedLog, find_kuairand, import_log
from raw_logs import log_line, write_kuairand

_KILLED = """
import os, sys
from harmonrank_lab.upstream.logs import find_kuairand, import_log

def stop(step):
    if (step.stage, step.done) == (sys.argv[3], int(sys.argv[4])):
        os.kill(os.getpid(), 9)

import_log(find_kuairand(sys.argv[1]), sys.argv[2], chunk_bytes=500, on_step=stop)
"""

_MEASURED = """
import sys
from pathlib import Path
from harmonrank_lab.upstream.logs import find_kuairand, import_log

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM")))

import_log(find_kuairand(sys.argv[1]), sys.argv[2], chunk_bytes=2 << 20)
print(peak())
"""


def python(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True
    )


@pytest.mark.parametrize(("stage", "step"), [("survey", 3), ("import", 4), ("features", 1)])
def test_a_killed_import_goes_on_and_ends_the_same(tmp_path, stage, step):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    whole = import_log(find_kuairand(raw), tmp_path / "whole", chunk_bytes=500)
    assert python(_KILLED, raw, out, stage, step).returncode == -9
    assert not out.exists(), "the folder appears only when complete"
    staged = tmp_path / ".out.resumable"
    before = {p: p.stat().st_mtime_ns for p in staged.glob("*/part-*.parquet")}
    assert len(before) >= {"survey": 0, "import": 4, "features": 5}[stage]
    kept = []
    resumed = import_log(
        find_kuairand(raw), out, chunk_bytes=500, on_step=lambda s: kept.append(s.kept)
    )
    assert resumed == whole
    assert sum(kept) >= {"survey": 0, "import": 4, "features": 5}[stage]
    for part, time in before.items():
        assert (out / part.relative_to(staged)).stat().st_mtime_ns == time, "written again"
    ImportedLog.open(out).verify()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "raw", "whole"]


def test_a_part_that_was_cut_short_is_written_again(tmp_path):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    python(_KILLED, raw, out, "import", 4)
    part = next((tmp_path / ".out.resumable").glob("train/part-*.parquet"))
    part.write_bytes(part.read_bytes()[:-9])
    import_log(find_kuairand(raw), out, chunk_bytes=500)
    ImportedLog.open(out).verify()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("survey", text) for text in ("5", "[]", "{}", "{", '{"cuts":[1,2,3],"sizes":[1]}')),
        *(("00000", text) for text in ("5", "[]", '{"files":5}', '{"files":{}}')),
        *(("tables", text) for text in ("5", "[]", "{}", '{"files":{},"odd":{}}')),
    ],
)
def test_a_damaged_record_is_as_good_as_absent(tmp_path, name, content):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    whole = import_log(find_kuairand(raw), tmp_path / "whole", chunk_bytes=500)
    interrupted(raw, out)
    (tmp_path / ".out.resumable" / "progress" / f"{name}.json").write_text(content)
    assert import_log(find_kuairand(raw), out, chunk_bytes=500) == whole
    ImportedLog.open(out).verify()


@pytest.mark.parametrize(
    "change",
    [
        {"rows": 1},
        {"source": "another.csv"},
        {"files": {"train/part-00001.parquet": {"rows": 1, "bytes": 1, "sha256": ""}}},
    ],
)
def test_a_record_of_another_chunk_is_not_taken_over(tmp_path, change):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    whole = import_log(find_kuairand(raw), tmp_path / "whole", chunk_bytes=500)
    interrupted(raw, out)
    path = tmp_path / ".out.resumable" / "progress" / "00000.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert import_log(find_kuairand(raw), out, chunk_bytes=500) == whole


def test_a_survey_that_counts_other_rows_is_refused_and_forgotten(tmp_path):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    interrupted(raw, out)
    path = tmp_path / ".out.resumable" / "progress" / "survey.json"
    survey = json.loads(path.read_text())
    path.write_text(json.dumps(survey | {"sizes": [n + 1 for n in survey["sizes"]]}))
    with pytest.raises(DataError, match="were counted before.*so import it again"):
        import_log(find_kuairand(raw), out, chunk_bytes=500)
    import_log(find_kuairand(raw), out, chunk_bytes=500)


def interrupted(raw, out):
    """Leave an import that was cut short after its last table, before their record."""

    def stop(step):
        if step.stage == "features" and step.done == step.total:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_log(find_kuairand(raw), out, chunk_bytes=500, on_step=stop)


def test_other_files_or_options_begin_anew(tmp_path):
    raw, out = write_kuairand(tmp_path / "raw"), tmp_path / "out"
    python(_KILLED, raw, out, "import", 4)
    write_kuairand(raw, lines=[log_line(row, is_like=1) for row in range(40)])
    kept = []
    manifest = import_log(
        find_kuairand(raw), out, chunk_bytes=500, on_step=lambda s: kept.append(s.kept)
    )
    assert not any(kept)
    assert sum(p["is_like"] for p in manifest["positives"].values()) == 40


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_memory_does_not_grow_with_the_log(tmp_path):
    lines = [log_line(row) for row in range(50_000)]
    peaks = {}
    for name, times in (("small", 1), ("large", 10)):
        raw = write_kuairand(tmp_path / name)
        log = next(raw.glob("log_standard*"))
        header = log.read_text().splitlines()[0]
        log.write_text("\n".join([header, *lines * times]) + "\n")
        done = python(_MEASURED, raw, tmp_path / f"{name}_out")
        assert done.returncode == 0, done.stderr
        peaks[name] = int(done.stdout)
    # Ten times the rows, 35 MB of text more; each chunk has 2 MB.
    assert peaks["large"] - peaks["small"] < 80_000, peaks


def test_the_manifest_names_every_file(tmp_path):
    raw = write_kuairand(tmp_path / "raw")
    import_log(find_kuairand(raw), tmp_path / "out", chunk_bytes=500)
    out = tmp_path / "out"
    files = {str(p.relative_to(out)) for p in out.rglob("*.parquet")}
    assert files == set(json.loads((out / "manifest.json").read_text())["files"])
    others = {p.name for p in out.iterdir()} - {"train", "valid", "test"}
    assert others == {"log.toml", "manifest.json", "users.parquet", "items.parquet"}
