"""Manifest: where an imported log came from, and what every file of it holds."""

__all__ = [
    "FORMAT",
    "MANIFEST",
    "FileAbout",
    "Manifest",
    "Name",
    "Rows",
    "about",
    "manifest_of",
    "positives_of",
]

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypedDict

import polars as pl
from msgspec import Meta

from harmonrank.support.storage import sha256
from harmonrank_lab.upstream.logs._columns import LogColumns
from harmonrank_lab.upstream.logs._source import LogSource
from harmonrank_lab.upstream.logs._split import PARTS

FORMAT = 1
MANIFEST = "manifest.json"

Rows = Annotated[int, Meta(ge=0, le=2**53)]
Name = Annotated[str, Meta(pattern=r"^((train|valid|test)/)?[\w-]+\.parquet$")]


class FileAbout(TypedDict):
    """A file of an imported log."""

    bytes: Rows
    sha256: str
    rows: Rows


class _Counts(TypedDict):
    """A number for each part."""

    train: Rows
    valid: Rows
    test: Rows


class _Positives(TypedDict):
    """The positives of each objective in each part."""

    train: dict[str, Rows]
    valid: dict[str, Rows]
    test: dict[str, Rows]


class Manifest(TypedDict):
    """What `manifest_of` returns, as far as it is read again; the rest is for people."""

    format: int
    kind: str
    rows: _Counts
    positives: _Positives
    notes: list[str]
    oddities: dict[str, Rows]
    files: dict[Name, FileAbout]


def about(path: Path) -> dict[str, Any]:
    """Return the size and checksum of a file."""
    return {"bytes": path.stat().st_size, "sha256": sha256(path)}


def positives_of(frame: pl.DataFrame, columns: LogColumns) -> dict[str, Any]:
    """Return the rows of a part file and the positives of each objective in it."""
    sums = frame.select(pl.col(columns.objectives).cast(pl.Int64).sum()).row(0, named=True)
    return {"rows": len(frame), "positives": sums}


def manifest_of(
    source: LogSource,
    columns: LogColumns,
    survey: Mapping[str, Any],
    records: Sequence[Mapping[str, Any]],
    tables: Mapping[str, Any],
) -> dict[str, Any]:
    """Add up what the chunks and tables say of themselves."""
    rows, files = Counter[str](), {}
    positives = {part: Counter[str]() for part in PARTS}
    odd, read = Counter[str](tables["odd"]), Counter[str]()
    for record in records:
        odd.update(record["odd"])
        read[record["source"]] += record["rows"]
        for name, told in record["files"].items():
            part = name.partition("/")[0]
            rows[part] += told["rows"]
            positives[part].update(told["positives"])
            files[name] = {key: told[key] for key in ("rows", "bytes", "sha256")}
    return {
        "format": FORMAT,
        "kind": columns.kind,
        "source": [{"file": f.name, "rows": read[f.name]} for f in source.files],
        "split": {"by": source.split_by, "cuts": survey["cuts"]},
        "settings": dict(source.settings),
        "rows": {part: rows[part] for part in PARTS},
        "positives": {p: {o: positives[p][o] for o in columns.objectives} for p in PARTS},
        "notes": list(source.notes),
        "oddities": {what: count for what, count in odd.items() if count},
        "files": {**files, **tables["files"]},
    }
