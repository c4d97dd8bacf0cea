"""Check: an exported file must give the model's scores in ONNX Runtime before it is kept."""

__all__ = ["TOLERANCE", "Agreement", "check_export", "unknown_of"]

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import ContextEncoder
from harmonrank.data.scales import raw_scores
from harmonrank.export.inputs import WEIGHTS, kinds_of
from harmonrank.fusion import Method
from harmonrank.serving.runtime import FUSED
from harmonrank.support.errors import ExportError
from harmonrank.support.logistic import sigmoid

TOLERANCE = 1e-5
"""How far an output may be off: so much of its own size, or so much where that is below 1."""

_RANDOM_ROWS = 2048
_EDGES = np.array([0.0, 1.0, 1e-300, 1e-12, 1e-9, 1e-7, 1e-4, 0.5, 1 - 1e-4, 1 - 1e-7, 1 - 1e-9])


@dataclass(frozen=True)
class Agreement:
    """The result of a check.

    Attributes:
        rows: How many rows were compared.
        largest: The largest difference of each output, in units of max(1, |ours|).
    """

    rows: int
    largest: dict[str, float]


def check_export(made: bytes, model: Method, score_type: str) -> Agreement:
    """Compare an exported model with its source on random rows and on edges.

    All rows at once, one row, none; default weights and others, where they can be changed.

    Raises:
        ExportError: An output is farther off than `TOLERANCE`.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(made, options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(0)
    frame = _rows(model, score_type, rng)
    drawn = rng.uniform(0.0, 3.0, len(model.schema.names))
    largest: dict[str, float] = {}
    cases: list[tuple[pl.DataFrame, np.ndarray | None]] = [(frame, None), (frame[:1], None)]
    if model.traits.probabilities:
        cases.append((frame, drawn))
    for rows, weights in cases:
        exported = _run(session, model, rows, weights)
        for name, ours in _ours(model, rows, weights).items():
            far = _difference(exported[name], ours)
            largest[name] = max(largest.get(name, 0.0), far)
            if not far <= TOLERANCE:
                raise ExportError(
                    f"The exported '{name}' differs from that of {model.name} by {far:.2g} of its "
                    f"size, more than {TOLERANCE:g}, so nothing was written; serve this model with "
                    "`harmonrank serve` instead."
                )
    _check_missing(_run(session, model, _with_gaps(model, frame), None), len(model.schema.names))
    empty = _run(session, model, frame[:0], None)
    if any(len(values) for values in empty.values()):
        raise ExportError("The exported model gives scores to no rows, so nothing was written.")
    return Agreement(frame.height, largest)


def _with_gaps(model: Method, frame: pl.DataFrame) -> pl.DataFrame:
    """Return a row for each score, which misses it."""
    columns = model.schema.score_columns
    return (
        frame[: len(columns)]
        .with_columns(
            pl.when(pl.int_range(pl.len()) == m).then(float("nan")).otherwise(name).alias(name)
            for m, name in enumerate(columns)
        )
        .cast({name: frame.schema[name] for name in columns})
    )


def _check_missing(outputs: dict[str, np.ndarray], rows: int) -> None:
    if not all(len(values) == rows and np.isnan(values).all() for values in outputs.values()):
        raise ExportError(
            "The exported model gives scores to rows that miss one, so nothing was written."
        )


def unknown_of(encoder: ContextEncoder, name: str, kind: str) -> Any:
    """Return a value of a context column that was not in the fit; it stands for a null."""
    if kind == "float64":
        return float("nan")
    values = set(_values_of(encoder, name))
    if kind == "int64":
        return next(n for n in range(-(2**63), 2**63) if n not in values)
    return next(text for n in range(len(values) + 1) if (text := "?" * n) not in values)


def _values_of(encoder: ContextEncoder, name: str) -> tuple[Any, ...]:
    return next(feature.values for feature in encoder.features if feature.name == name)


def _rows(model: Method, score_type: str, rng: np.random.Generator) -> pl.DataFrame:
    """Return random rows and edges: extreme scores, one or several in a row, unknown values."""
    columns = model.schema.score_columns
    M = len(columns)
    usual = sigmoid(rng.normal(-2.0, 2.5, (_RANDOM_ROWS, M)))
    numbers = np.arange(len(_EDGES) * M)
    single = usual[numbers % _RANDOM_ROWS]
    single[numbers, numbers % M] = _EDGES[numbers // M]
    mixed = rng.choice(_EDGES, (8 * len(_EDGES), M))
    same = np.repeat(_EDGES[:, None], M, axis=1)
    scores = np.concatenate([usual, rng.random((len(_EDGES), M)), single, mixed, same])
    scores = raw_scores(scores, model.schema.scales)
    frame = pl.DataFrame(dict(zip(columns, scores.astype(score_type).T, strict=True)))
    context = []
    for name, kind in kinds_of(model).items():
        unknown = unknown_of(model.fitted.encoder, name, kind)
        values = list(_values_of(model.fitted.encoder, name))
        if kind == "float64":
            values = [*values, *(v + 0.5 for v in values), -1e300, 1e300, 0.0]
        drawn = rng.integers(0, len(values) + 1, len(scores))
        chosen = [unknown if code == len(values) else values[code] for code in drawn]
        context.append(pl.Series(name, chosen, _POLARS[kind]))
    return frame.with_columns(context)


_POLARS = {"str": pl.String, "int64": pl.Int64, "float64": pl.Float64}


def _run(
    session: Any, model: Method, rows: pl.DataFrame, weights: np.ndarray | None
) -> dict[str, np.ndarray]:
    feeds = {
        name: rows[name].to_numpy() for name in (*model.schema.score_columns, *model.schema.context)
    }
    if weights is None and WEIGHTS in {given.name for given in session.get_inputs()}:
        weights = model.fuser.weights().counted
    if weights is not None:
        feeds[WEIGHTS] = weights
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def _ours(model: Method, rows: pl.DataFrame, weights: np.ndarray | None) -> dict[str, np.ndarray]:
    names = model.schema.names
    changed = None if weights is None else dict(zip(names, weights.tolist(), strict=True))
    ours = {FUSED: model.score(rows, weights=changed)}
    if model.traits.probabilities:
        ours |= dict(zip(names, model.probabilities(rows).T, strict=True))
    return ours


def _difference(exported: np.ndarray, ours: np.ndarray) -> float:
    if exported.shape != ours.shape:
        return float("inf")
    far = np.abs(exported - ours) / np.maximum(1.0, np.abs(ours))
    return float(far.max()) if np.isfinite(exported).all() else float("inf")
