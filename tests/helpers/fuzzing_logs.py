"""Altered predictors, imported logs and raw files, for `fuzzing.py`."""

import json
import shutil

import polars as pl
from safetensors.numpy import load_file, save_file

from fuzzing import ODD, bent, flipped, mangled
from harmonrank_lab.upstream import PredictorConfig, fit_predictor, load_predictor, score_log
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.logs import PARTS, ImportedLog, find_kuairand, import_log
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log
from raw_logs import (
    LOG_COLUMNS,
    USER_COLUMNS,
    VIDEO_COLUMNS,
    log_line,
    user_line,
    video_line,
    write_kuairand,
)
from saving import signed

SMALL = PredictorConfig(epochs=1, refits=1, embedding=4)
CHUNK_BYTES = 30_000
FIELDS = [
    "", "x", "9" * 30, "9" * 400, "1e400", "-1e30", str(2**63), str(2**64), str(-(2**63)), "1e18",
    "nan", "inf", "-inf", "1.5", "0x10", '"1,2"', '"', "1,2", "\x00", "é", "-1", "true", "\n", "\r",
]  # fmt: skip


def prepare(folder):
    """Simulate and import a log, and fit a predictor on it."""
    simulate_log(KuaiRandWorld(users=40, items=20), 2_000, folder / "raw-log", seed=3)
    source = find_kuairand(folder / "raw-log")
    import_log(source, folder / "log")
    _cut_short(source, folder / "cut")
    fit_predictor(ImportedLog.open(folder / "log"), folder / "predictor", SMALL, folds=2)


def _cut_short(source, out):
    """Leave an import whose last record is still to be written."""

    def stop(step):
        if step.stage == "features" and step.done == step.total:
            raise KeyboardInterrupt

    try:
        import_log(source, out, chunk_bytes=CHUNK_BYTES, on_step=stop)
    except KeyboardInterrupt:
        return
    raise AssertionError("the import was not cut short")


def resumed(rng, folder, scratch):
    """Continue an import whose records were altered; what comes of it can be opened."""
    place = scratch / ".out.resumable"
    shutil.copytree(folder / ".cut.resumable", place)
    for path in rng.sample(sorted(place.glob("progress/*.json")), rng.choice([1, 1, 2])):
        parts = json.loads(path.read_text())
        parts = rng.choice(ODD) if rng.random() < 0.2 else mangled(rng, parts)
        path.write_text(json.dumps(parts))
    import_log(find_kuairand(folder / "raw-log"), scratch / "out", chunk_bytes=CHUNK_BYTES)
    ImportedLog.open(scratch / "out")


def predictor(rng, folder, scratch):
    """Load an altered predictor, and use it if that succeeds."""
    place = scratch / "predictor"
    shutil.copytree(folder / "predictor", place)
    for _ in range(rng.choice([1, 1, 2])):
        path = place / rng.choice(sorted(f.name for f in place.iterdir()))
        if path.suffix == ".json":
            path.write_text(json.dumps(mangled(rng, json.loads(path.read_text()))))
        else:
            save_file(bent(rng, load_file(path)), path)
    for facts in place.glob("f*.json"):
        _agreed(facts, place)
    if rng.random() < 0.95:
        signed(place)
    score_log(load_predictor(place), ImportedLog.open(folder / "log"), scratch / "scored")


def _agreed(facts, place):
    """Let what is known of a member name the checksum of its altered weights."""
    import hashlib

    parts = json.loads(facts.read_text())
    weights = place / f"{facts.stem}.safetensors"
    if isinstance(parts, dict) and "sha256" in parts and weights.is_file():
        parts["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
        facts.write_text(json.dumps(parts))


def log(rng, folder, scratch):
    """Open an imported log whose manifest, columns or tables were altered, and read all of it."""
    place = scratch / "log"
    shutil.copytree(folder / "log", place)
    action = rng.random()
    if action < 0.4:
        path = place / "manifest.json"
        path.write_text(json.dumps(mangled(rng, json.loads(path.read_text()))))
    elif action < 0.7:
        _alter_columns(rng, place / "log.toml")
    else:
        _alter_table(rng, place)
    opened = ImportedLog.open(place)
    for part in PARTS:
        for _ in opened.batches(part):
            pass
    encoder = Encoder.fit(opened, 100)
    for part in PARTS:
        for frame in opened.batches(part):
            encoder.rows(frame)


def _alter_columns(rng, path):
    lines = path.read_text().splitlines()
    line = rng.randrange(len(lines))
    name = lines[line].partition("=")[0]
    value = json.dumps(rng.choice([*ODD, "row", "user_id", "tab"]), ensure_ascii=False)
    lines[line] = rng.choice([f"{name} = {value.replace('null', 'nan')}", "", f"[{name}]", "]"])
    path.write_text("\n".join(lines))


def _alter_table(rng, place):
    """Change a column of a table, or its bytes, and let the manifest agree."""
    path = place / rng.choice(sorted(f.relative_to(place).as_posix() for f in place.rglob("*.p*")))
    if rng.random() < 0.3:
        flipped(rng, path)
    else:
        frame = pl.read_parquet(path)
        column, rows = rng.choice(frame.columns), frame.height
        odd = ["x", None, 2**63, [1], -1, 1.5, float("nan"), b"x", True, 10**9]
        frame = frame.with_columns(pl.Series(column, [rng.choice(odd)] * rows))
        frame = frame.drop(column) if rng.random() < 0.2 else frame
        frame.head(rng.choice([rows, rows, rows // 2, 0])).write_parquet(path)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["files"][path.relative_to(place).as_posix()]["bytes"] = path.stat().st_size
    (place / "manifest.json").write_text(json.dumps(manifest))


def raw(rng, folder, scratch):
    """Import raw files with fields of wrong kinds, or bytes changed."""
    lines = [log_line(row) for row in range(40)]
    users, videos = [user_line(k) for k in range(7)], [video_line(k) for k in range(5)]
    kinds = (lines, log_line, LOG_COLUMNS), (users, user_line, USER_COLUMNS)
    for _ in range(rng.choice([1, 1, 3])):
        table, line, columns = rng.choice([*kinds, (videos, video_line, VIDEO_COLUMNS)])
        row = rng.randrange(len(table))
        table[row] = line(row, **{rng.choice(columns.split(",")): rng.choice(FIELDS)})
    place = write_kuairand(scratch / "raw", lines, users, videos)
    if rng.random() < 0.3:
        flipped(rng, rng.choice(sorted(place.iterdir())))
    import_log(find_kuairand(place), scratch / "out")
