"""Growth: time and memory against rows and objectives, each fit in a process of its own."""

from collections.abc import Iterator, Mapping
from functools import partial
from math import log2
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from harmonrank import soft_rank
from harmonrank.fusion import method_class
from harmonrank_lab.bench import _result
from harmonrank_lab.bench._child import in_child
from harmonrank_lab.bench._rank import both_ways
from harmonrank_lab.bench._result import Case, Size, Timing

_EPOCHS = 5
_OBJECTIVES = 5
_FEW = {"epochs": _EPOCHS, "patience": _EPOCHS}
_METHODS: Mapping[str, dict[str, Any]] = {"harmonrank": {}, "harmonrank-paper": _FEW}


def cases(size: Size) -> Iterator[Case]:
    """Fits by rows and by objectives, soft ranks by rows, and a long file that is scored."""
    sizes = [(rows, _OBJECTIVES) for rows in size.growth_rows]
    sizes += [(size.objective_rows, objectives) for objectives in size.growth_objectives]
    for method in _METHODS:
        for rows, objectives in sizes:
            fit = partial(_fit, method, rows, objectives)
            yield Case(f"fit {method}, {objectives} objectives", fit)
    for rows in size.growth_rows:
        yield Case("soft_rank float32", partial(_soft_rank, rows))
    for method in _METHODS:
        yield Case(f"score a file, {method}", partial(_file, method, size.file_rows))


def _fit(method: str, rows: int, objectives: int) -> Timing:
    with TemporaryDirectory() as place:
        path = Path(place) / "train.parquet"
        given = _result.write_repeated(path, rows, objectives) / 1e6
        options = _METHODS[method]
        run = in_child("fit", method=method, data=path, objectives=objectives, options=options)
    used = run["peak_mb"] - run["before_mb"]
    note = f"table {given:.0f} MB, fit +{used:.0f} MB"
    if options:
        note += f", {_EPOCHS} epochs"
    return Timing(rows, run["seconds"], memory_mb=run["peak_mb"], note=note)


def _soft_rank(rows: int) -> Timing:
    scores = torch.randn(rows, generator=torch.Generator().manual_seed(0))
    work = {"ours": both_ways(soft_rank, scores, torch.ones(rows))}
    seconds = _result.interleaved(work, seconds=0.5)["ours"]
    note = f"{1e9 * seconds / (rows * log2(rows)):.2f} ns per n log₂ n"
    return Timing(rows, seconds, note=note)


def _file(method: str, rows: int) -> Timing:
    """Score from parquet to parquet, all columns kept."""
    with TemporaryDirectory() as place:
        folder = Path(place)
        train = _result.table_of(20_000, _OBJECTIVES)
        fitted = method_class(method)(**_METHODS[method]).fit(train, _result.schema_of(_OBJECTIVES))
        fitted.save(folder / "model")
        _result.write_repeated(folder / "in.parquet", rows, labels=False)
        model, data, output = folder / "model", folder / "in.parquet", folder / "out.parquet"
        run = in_child("score_file", model=model, data=data, output=output)
    note = f"{run['before_mb']:.0f} MB once loaded"
    return Timing(rows, run["seconds"], memory_mb=run["peak_mb"], note=note)
