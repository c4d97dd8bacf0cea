"""Golden rows: a few rows with the scores that a version must give them, wherever it is loaded."""

__all__ = ["Golden", "golden_of", "golden_rows"]

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from harmonrank.fusion import Method
from harmonrank.registry.version import GOLDEN
from harmonrank.support.errors import DataError, ModelFileError
from harmonrank.support.storage.files import read_json

_ROWS = 32
_SINGLE = 4  # rows that are also scored one by one, as a service does
# Another processor may round the last digits of a logarithm differently.
_RELATIVE = 1e-6


class Golden(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rows and their fused scores.

    Attributes:
        scores: A list per row, in the order of the schema.
        context: The values of each row.
        fused: What the model gave them when it was published.
    """

    scores: list[list[float]]
    context: list[dict[str, str | int | float | None]]
    fused: list[float]

    def refusal(self, model: Method) -> str | None:
        """Return why a model scores these rows otherwise, in a table or one by one; or None."""
        table = model.score(_frame(model, self.scores, self.context))
        single = [
            float(model.score_request([row], context)[0])
            for row, context in zip(self.scores[:_SINGLE], self.context, strict=False)
        ]
        both = np.concatenate([table, single])
        expected = np.array([*self.fused, *self.fused[:_SINGLE]])
        near = both.shape == expected.shape and np.allclose(both, expected, _RELATIVE, 1e-12)
        if near:
            return None
        return (
            "The model does not give its golden rows the scores that it gave them when it was "
            "published; it is damaged, or this release scores it otherwise: publish it again."
        )


def golden_rows(model: Method) -> Golden:
    """Return rows like those of the fit, with extreme scores and unknown contexts among them."""
    rng, names = np.random.default_rng(0), model.schema.names
    logits = rng.normal(-2.0, 2.0, (_ROWS, len(names)))
    p = 1 / (1 + np.exp(-logits))
    p[0], p[1], p[2] = 0.0, 1.0, 1e-9
    context: list[dict[str, Any]] = [{} for _ in range(_ROWS)]
    for feature in model.fitted.encoder.features:
        values = [None, *feature.values]
        for row, chosen in enumerate(rng.integers(0, len(values), _ROWS)):
            context[row][feature.name] = values[chosen]
    scores: list[list[float]] = p.tolist()
    return Golden(scores, context, model.score(_frame(model, scores, context)).tolist())


def golden_of(folder: Path) -> Golden:
    """Read the golden rows of a version."""
    try:
        return read_json(folder / GOLDEN, Golden)
    except DataError as error:
        raise ModelFileError(f"Version {folder.name} is damaged: {error}") from None


def _frame(model: Method, scores: list[list[float]], context: list[dict[str, Any]]) -> pl.DataFrame:
    columns = np.array(scores, np.float64).reshape(len(scores), -1).T
    if len(columns) != len(model.schema.score_columns):
        raise ModelFileError("The golden rows are of another model; publish it again.")
    frame = pl.DataFrame(dict(zip(model.schema.score_columns, columns, strict=True)))
    contexts = [
        pl.Series(name, [row.get(name) for row in context]) for name in model.schema.context
    ]
    return frame.with_columns(contexts)
