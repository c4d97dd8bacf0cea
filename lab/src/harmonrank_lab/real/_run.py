"""Running: real logs to upstream scores, all methods on them, and what came of it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from harmonrank import Schema, compare
from harmonrank.support import DataError, OnEvent
from harmonrank_lab.bench import machine
from harmonrank_lab.made import made_by
from harmonrank_lab.real._judge import judged
from harmonrank_lab.real._log import LOGS, RealLog, real_log
from harmonrank_lab.real._upstream import Prepared, prepare

RESULT = "real.json"
"""The file of the numbers in a folder of prepared tables."""


def choose_logs(names: Sequence[str], data: Path) -> dict[str, RealLog]:
    """Return the logs of these names, or all known ones whose folder is there.

    Raises:
        DataError: None is there.
    """
    logs = {name: real_log(name) for name in names or LOGS}
    there = {name: log for name, log in logs.items() if names or (data / log.folder).is_dir()}
    if not there:
        folders = ", ".join(sorted({log.folder for log in logs.values()}))
        raise DataError(
            f"'{data}' holds no folder of a known log; expected some of {folders}, each with its "
            "official files."
        )
    return there


def run_real(
    logs: Mapping[str, RealLog],
    data: Path,
    methods: Sequence[str],
    *,
    items: Sequence[bool] = (False, True),
    most_rows: int = 2_000_000,
    seed: int = 0,
    out: Path | None = None,
    on_event: OnEvent | None = None,
) -> dict[str, Any]:
    """Return what the methods came to on each log, the first of them judged against the others.

    Args:
        logs: By name.
        data: The folder that has their folders, or the files of one.
        methods: Ways to fuse.
        items: Whether the fusions see columns of items as context.
        most_rows: A larger log keeps the rows of some of its users.
        seed: Of upstream models, fits and intervals.
        out: A folder for the prepared tables.
        on_event: Called with the events of each comparison.
    """
    results = []
    for name, log in logs.items():
        rows = log.read(data, most_rows)
        prepared = prepare(rows, seed)
        if out is not None:
            prepared.write(out / Path(name).stem)
        for with_items in items:
            schema = prepared.with_items if with_items else prepared.schema
            if schema is not None:
                about = {"log": name, "title": log.title, "items": with_items}
                compared = _compared(prepared, schema, methods, seed, on_event)
                results.append({**about, **prepared.facts(), **compared})
    return {"machine": machine(), "code": made_by(), "logs": results}


def _compared(
    prepared: Prepared, schema: Schema, methods: Sequence[str], seed: int, on_event: OnEvent | None
) -> dict[str, Any]:
    """Return each method's AUCs and the differences of the first method and the others."""
    test = prepared.test
    result = compare(prepared.train, schema, methods, test=test, seed=seed, on_event=on_event)
    areas, differences = judged(
        {name: result.models[name].score(test) for name in methods if name in result.models},
        test.select(schema.names).to_numpy().astype(np.int64),
        schema.weight_vector,
        test["request_id"].to_numpy(),
        test[prepared.user].to_numpy(),
        seed,
    )
    seconds = {entry.name: entry.fit_seconds for entry in result.board.entries}
    measured = [
        {"name": name, **_sums("request_auc", within, schema), **_sums("auc", whole, schema)}
        | {"fit_seconds": seconds[name]}
        for name, (within, whole) in areas.items()
    ]
    errors = {e.name: e.error for e in result.board.entries if e.error}
    compared = {"context": list(schema.context), "methods": measured}
    return {**compared, "differences": differences, "errors": errors}


def _sums(what: str, areas: np.ndarray, schema: Schema) -> dict[str, Any]:
    """Return the AUC of each objective and their sum; null where there is none."""
    each, total = areas.tolist(), float(areas @ schema.weight_vector)
    named = {n: a if np.isfinite(a) else None for n, a in zip(schema.names, each, strict=True)}
    return {what: named, f"{what}_sum": total if np.isfinite(total) else None}
