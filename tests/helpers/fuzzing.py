"""Altered files with valid checksums, odd settings, schemas and tables: one process per batch.

    python tests/helpers/fuzzing.py KIND FIRST COUNT FOLDER

prints a JSON line for each case that ends in anything but success or an error of ours.
"""

import copy
import json
import random
import resource
import shutil
import signal
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import polars as pl
from safetensors.numpy import load_file, save_file

import harmonrank as hr
from harmonrank.cli.parts import parse_settings
from harmonrank.data import read_log
from harmonrank.fusion import METHODS, method_class
from harmonrank.support import HarmonRankError
from harmonrank.support.storage import Store
from harmonrank.support.storage.arrays import array_header, digest
from logs import SCHEMA_TOML, small_table
from saving import signed

SECONDS = 60
MEMORY = 8 << 30
KINDS = ("model", "record", "settings", "schema", "table")
LOG_KINDS = ("predictor", "log", "raw")
"""Those of `fuzzing_logs.py`."""

NETWORK = {"epochs": 1, "batch_rows": 300, "buckets": 8, "key_width": 4}
FITTED = {
    "closed-form": {"calibration": "isotonic"},
    "prevalence-weights": {},
    "logistic": {},
    "harmonrank": {},
    "harmonrank-paper": NETWORK,
    "lightgbm": {"trees": 10, "leaves": (7,), "leaf_rows": 5, "leaf_positives": 1.0},
    "formula-cem": {"trials": 12},
}
CURVED = "harmonrank with curves"
ODD = [
    None, True, False, 0, 1, -1, 2, 7, 255, 10**6, -(10**9), 2**31, 2**63, 2**64, 10**30, 0.0, 0.5,
    -0.5, 1e-300, 1e300, -1e300, "", "x", "NaN", "buy", "../x", "\x00", "é" * 300, [], [[]], {},
    [0], [1, 1], [None], ["a", "a"], {"": 0}, {"a": {"b": []}}, [1e300, -1e300], [[1, 2], [3]],
]  # fmt: skip


def prepare(folder):
    """Fit and save what is altered later."""
    table, schema = (
        small_table(),
        hr.Schema(
            {"buy": "p_buy", "like": "p_like"}, context=["hour", "age"], request="request_id"
        ),
    )
    for name, options in FITTED.items():
        method_class(name)(**options).fit(table, schema, valid=table).save(folder / name)
    curved = hr.HarmonRank().fit(curved_table(), schema)
    assert any(curved.explain()["effects"].values()), "no curve was found"
    curved.save(folder / CURVED)
    from harmonrank.paper.training import Progress

    checkpoint().save(folder / "checkpoint", Progress(epoch=1, history=[(0.5, 1.2, None)]), "x")


def curved_table():
    """Return a log from which the default also learns curves and surfaces."""
    table, rng = small_table(20_000, seed=9), np.random.default_rng(9)
    x, y = (np.log(s) - np.log1p(-s) for s in table.select("p_buy", "p_like").to_numpy().T)
    both = {"buy": np.sin(2 * x) + 0.5 * x * y, "like": np.abs(y) - 1.5}
    drawn = {n: rng.random(len(x)) < 1 / (1 + np.exp(-2 * z)) for n, z in both.items()}
    return table.with_columns(**{n: pl.Series(v.astype(np.uint8)) for n, v in drawn.items()})


def mangled(rng, value):
    """Return JSON with one or a few places changed."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        place = value
        while isinstance(place, dict | list) and place:
            key = rng.choice(list(place) if isinstance(place, dict) else range(len(place)))
            inner = place[key]
            if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
                place = inner
                continue
            action = rng.random()
            if action < 0.15:
                del place[key]
            elif action < 0.25 and isinstance(place, list):
                place.append(copy.deepcopy(inner))
            elif action < 0.3 and isinstance(place, dict):
                place[rng.choice(["x", "", "kind", "values"])] = copy.deepcopy(rng.choice(ODD))
            else:
                place[key] = copy.deepcopy(rng.choice(ODD))
            break
    return value


def bent(rng, arrays):
    """Return arrays, some with another shape, type or content."""
    arrays = {name: array.copy() for name, array in arrays.items()}
    for _ in range(rng.choice([1, 1, 2])):
        if not arrays:
            break
        name = rng.choice(sorted(arrays))
        array, kind = arrays[name], rng.choice(["float32", "float64", "int64", "int32", "int8"])
        altered = (
            lambda array: array[:-1] if array.ndim else array.reshape(1),
            lambda array: np.concatenate([array, array]) if array.ndim else array,
            lambda array: array.T.copy() if array.ndim > 1 else array[None],
            lambda array, kind=kind: array.astype(kind),
            lambda array: array.reshape(-1)[:0],
        )
        action = rng.randrange(11)
        if action < len(altered):
            arrays[name] = altered[action](array)
        elif action == 5:
            del arrays[name]
        elif action == 6:
            arrays["more"] = array
        elif array.size:
            odd = [0, 1, -1, 2, 10**6, 2**31 - 1, -(2**31)]
            if array.dtype.kind == "f":
                odd += [np.nan, np.inf, -np.inf, 1e30, -1e30, 1e-30, 1e38]
            flat = array.reshape(-1)
            which = slice(None) if rng.random() < 0.3 else rng.randrange(flat.size)
            with np.errstate(all="ignore"):
                flat[which] = np.array(rng.choice(odd)).astype(array.dtype)
    return arrays


def flipped(rng, path):
    """Change a bit of a file, and cut it short now and then."""
    whole = bytearray(path.read_bytes())
    whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    path.write_bytes(whole[: rng.randrange(len(whole))] if rng.random() < 0.2 else whole)


def model(rng, folder, scratch):
    """Load an altered model, and use it if that succeeds."""
    place = scratch / "model"
    shutil.copytree(folder / rng.choice([CURVED, *sorted(FITTED)]), place)
    if rng.random() < 0.5:
        path = place / "model.json"
        path.write_text(json.dumps(mangled(rng, json.loads(path.read_text()))))
    else:
        path = place / "weights.safetensors"
        save_file(bent(rng, load_file(path)), path)
    if rng.random() < 0.95:
        signed(place)
    else:
        (place / "checksums.json").write_text(json.dumps(rng.choice(ODD)))
    loaded = hr.load(place)
    table = small_table(seed=3)
    some = pl.when(pl.col("hour") > 3).then("p_like").alias("p_like")
    for rows in (table, table.with_columns(some)):  # with all scores, and with some missing
        assert np.isfinite(loaded.score(rows)).all()
    request = loaded.score_request([[0.2, 0.3], [0.0, None]], {"hour": 3, "age": "old"})
    assert np.isfinite(request).all()
    loaded.explain()


def record(rng, folder, scratch):
    """Find an altered record, or take over an altered checkpoint."""
    if rng.random() < 0.5:
        kept(scratch, lambda content: mangled(rng, content))
        return
    path = scratch / "checkpoint"
    if rng.random() < 0.4:
        shutil.copy(folder / "checkpoint", path)
        flipped(rng, path)
    else:
        arrays, header = (
            bent(rng, load_file(folder / "checkpoint")),
            array_header(folder / "checkpoint"),
        )
        progress = mangled(rng, json.loads(header["progress"]))
        texts = {"progress": json.dumps(progress), "fingerprint": "x"}
        save_file(arrays, path, metadata=texts | {"sha256": digest(arrays, texts)})
    checkpoint().load(path, "x")


def kept(scratch, change=lambda content: content):
    """Compare a method twice, the second time with its altered record."""
    rows = small_table()
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, request="request_id")
    events = []
    for _ in range(2):
        board = hr.compare(
            rows, schema, ["closed-form"], runs=scratch, on_event=events.append, test=rows
        ).board
        alter(scratch, "closed-form", change)
        str(board)
        board.to_dict()
    return events[-1].kept


def alter(folder, name, change):
    """Replace the content of a record; its checksum is right again."""
    record = json.loads((folder / f"{name}.json").read_text())
    Store(folder).put(name, record["key"], change(record["content"]))


def changed(content, place, value):
    """Return JSON parts with another value at a place, or without it."""
    content = json.loads(json.dumps(content))
    *inner, last = place.split(".")
    part = content
    for name in inner:
        part = part[name]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return content


def checkpoint():
    """Return the state of a small network and its optimiser after a step."""
    import torch

    from harmonrank.paper import Network, NetworkConfig
    from harmonrank.paper.training import Checkpoint

    network = Network(NetworkConfig(objectives=2, context_slots=(3,), buckets=4, key_width=4))
    optimizer = torch.optim.Adam(network.parameters())
    network(torch.rand(8, 2), torch.zeros(8, 1, dtype=torch.int32)).sum().backward()
    optimizer.step()
    return Checkpoint(network, optimizer)


def settings(rng, folder, scratch):
    """Give a method options that nobody means."""
    kind = method_class(rng.choice(METHODS))
    names = [*kind.Config.__dataclass_fields__, "widht", ""]
    odd = [json.dumps(value) for value in ODD] + [
        "NaN",
        "Infinity",
        "1e999",
        "[" * 10**5,
        "9" * 5000,
    ]
    given = [f"{rng.choice(names)}={rng.choice(odd)}" for _ in range(rng.choice([0, 1, 2]))]
    kind(**parse_settings(tuple(given)))


def schema(rng, folder, scratch):
    """Read a schema with parts of wrong kinds, or text that is no schema, and a table by it."""
    text = SCHEMA_TOML
    for _ in range(rng.choice([1, 2, 4])):
        lines = text.splitlines() or [""]
        line = rng.randrange(len(lines))
        name = lines[line].partition("=")[0]
        value = json.dumps(rng.choice(ODD), ensure_ascii=False).replace("null", "nan")
        lines[line] = rng.choice(
            [f"{name} = {value}", "", "[weights]", f"[{name}]", "buy = -1", "]"]
        )
        text = "\n".join(lines)
    (scratch / "schema.toml").write_text(text)
    read_log(small_table(), hr.Schema.read(scratch / "schema.toml"))


def table(rng, folder, scratch):
    """Read a table with a column of another kind, a strange name, or bytes changed."""
    frame, rows = small_table(), 600
    odd = [
        ["x"] * rows, [None] * rows, [2**63] * rows, [[1]] * rows, [{"a": 1}] * rows, [-1.0] * rows,
        [float("nan")] * rows, [float("inf")] * rows, [1e308] * rows, [b"x"] * rows, [True] * rows,
    ]  # fmt: skip
    column = rng.choice(frame.columns)
    if rng.random() < 0.6:
        frame = frame.with_columns(pl.Series(column, rng.choice(odd)))
    if rng.random() < 0.3:
        frame = frame.rename({column: rng.choice(["*", "^.*$", "", "é", "fused"])})
    names = [rng.choice(["*", "^.*$", column, "p_buy"]), *frame.columns]
    columns = hr.Schema(
        {"buy": rng.choice(names), "like": "p_like"},
        context=[rng.choice(names)],
        sample_weight=rng.choice([None, rng.choice(names)]),
        request=rng.choice([None, rng.choice(names)]),
    )
    source = frame
    ending = rng.choice(["", "parquet", "csv", "arrow"])
    if ending:
        source = scratch / f"t.{ending}"
        write = {"parquet": frame.write_parquet, "csv": frame.write_csv, "arrow": frame.write_ipc}
        try:
            write[ending](source)
        except pl.exceptions.PolarsError:
            return  # no such file can be
        if rng.random() < 0.4:
            flipped(rng, source)
    fitted = hr.ClosedForm().fit(source, columns)
    fitted.score(source)


def run(kind, case, folder):
    """Return what went wrong with a case, or None."""
    scratch = folder / f"scratch-{kind}-{case}"
    scratch.mkdir()
    signal.alarm(SECONDS)
    try:
        _act(kind)(random.Random(f"{kind} {case}"), folder, scratch)
    except HarmonRankError as error:
        # One sentence, or one for each fault of a table.
        sentences = str(error).strip().splitlines()[1:]
        listed = all(sentence.startswith("- ") for sentence in sentences)
        return None if listed else f"several lines: {error}"
    except BaseException:
        return traceback.format_exc(limit=-6)
    finally:
        signal.alarm(0)
        shutil.rmtree(scratch)
    return None


def _act(kind):
    if kind in KINDS:
        return globals()[kind]
    import fuzzing_logs

    return getattr(fuzzing_logs, kind)


def say(parts):
    sys.stdout.write(json.dumps(parts) + "\n")
    sys.stdout.flush()


def main():
    kind, first, count, folder = sys.argv[1], *map(int, sys.argv[2:4]), Path(sys.argv[4])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    warnings.simplefilter("ignore")
    if kind == "record":
        checkpoint()  # imports PyTorch before the clock starts
    _act(kind)
    for case in range(first, first + count):
        say({"begun": case})
        wrong = run(kind, case, folder)
        if wrong is not None:
            say({"case": case, "wrong": wrong})


if __name__ == "__main__":
    main()
