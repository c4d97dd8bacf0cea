"""Quality of a model on a table in blocks: blocks are scored, here or by workers, then measured.

Of a row its fused score, labels, request, user and weight are kept, in files without a name that
this process maps. They are measured as rows in memory are, so every figure is that of memory.
"""

__all__ = ["partitioned_quality"]

from collections.abc import Callable, Mapping
from dataclasses import replace
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Log
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.engine import Engine, LocalEngine, in_order
from harmonrank.fusion import Method, Quality
from harmonrank.fusion.quality.block_quality import require_measurable
from harmonrank.fusion.quality.quality import quality_of
from harmonrank.fusion.saved import PackedModel, pack
from harmonrank.support.errors import DataError

_Columns = dict[str, np.ndarray]
_MEASURED = ("labels", "truth", "sample_weight", "request", "user")


def partitioned_quality(
    model: Method,
    blocks: LogBlocks,
    engine: Engine | None = None,
    *,
    weights: Mapping[str, float] | None = None,
    value: Mapping[str, float] | None = None,
    on_rows: Callable[[int, int], None] = lambda *_: None,
) -> Quality:
    """Measure how well a model ranks rows that are in files, as `model.evaluate` does in memory.

    AUCs over all rows and within requests, their intervals and, in a world, the ceilings are exact.

    Args:
        model: A fitted method.
        blocks: Rows with labels.
        engine: Where blocks are scored; this process if left out.
        weights: Other objective weights, for methods that can change them.
        value: What an event of each objective is worth, in place of weights.
        on_rows: Called with the rows scored and the rows in all.
    """
    schema, fuser = model.schema, model.fuser
    require_measurable(schema)
    columns: _Columns = {}
    done = 0
    shared = blocks, pack(model), weights, value
    numbers = range(len(blocks))
    for number, part in enumerate(in_order(engine or LocalEngine(), _scored, numbers, *shared)):
        columns = columns or {name: _mapped(blocks.rows, array) for name, array in part.items()}
        end = done + len(part["fused"])
        for name, array in part.items():
            columns[name][done:end] = array
        done = end
        on_rows(min((number + 1) * blocks.starts.step, blocks.rows), blocks.rows)
    if not done:
        raise DataError(f"{blocks.name} has no rows that count; expected at least one.")
    measured: dict[str, Any] = {name: array[:done] for name, array in columns.items()}
    fused = measured.pop("fused")
    log = Log(schema, np.empty((done, 0)), pl.DataFrame(), **measured)
    log.require_both_classes("evaluated")
    quality = quality_of(fused, log, schema.weights_with(weights), model.prevalence)
    effective = fuser.effective(fuser.weights(weights, value))
    return replace(quality, effective_weights=effective, optimises=fuser.optimises)


def _scored(
    number: int,
    blocks: LogBlocks,
    packed: PackedModel,
    weights: Mapping[str, float] | None,
    value: Mapping[str, float] | None,
) -> _Columns:
    """Read a block and score the rows that count; return what of them is measured."""
    log = blocks[number].counted(empty=True)
    model = packed.model()
    fused = model.score(log, weights=weights, value=value) if log.rows else np.empty(0)
    known = {name: getattr(log, name) for name in _MEASURED}
    return {"fused": fused, **{name: a for name, a in known.items() if a is not None}}


def _mapped(rows: int, like: np.ndarray) -> np.ndarray:
    """Return room for rows in a file without a name, so that the system may take memory back."""
    with TemporaryFile(prefix="harmonrank-") as file:
        return np.memmap(file, like.dtype, "w+", shape=(rows, *like.shape[1:]))
