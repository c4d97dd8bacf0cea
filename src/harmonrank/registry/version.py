"""Version: what is known about one immutable model of a registry, and how it is tested."""

__all__ = [
    "GOLDEN",
    "MODEL_FOLDER",
    "RECORD",
    "Check",
    "Summary",
    "Version",
    "check_contents",
    "contents",
    "golden_of",
    "golden_rows",
    "read_version",
    "write_version",
]

from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank.fusion import Method
from harmonrank.model.density.spread import Spread
from harmonrank.support.errors import DataError, ModelFileError
from harmonrank.support.logistic import SMALLEST_SCORE, sigmoid
from harmonrank.support.storage.files import read_json, write_json
from harmonrank.support.storage.store import digest, file_sums

RECORD = "version.json"
"""The file that holds a version's record; it is written last."""
MODEL_FOLDER, GOLDEN = "model", "golden.json"
"""The saved model of a version, and the rows by which it is tested."""
_ROWS = 32
_SINGLE = 4  # rows that are also scored one by one, as a service does
# Another processor may round the last digits of a logarithm differently.
_RELATIVE = 1e-6


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What came of one guardrail.

    Attributes:
        passed: None if it could not be checked.
        sentence: What was measured, and what is allowed.
    """

    name: str
    passed: bool | None
    sentence: str


class Summary(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where fused scores lie: their median, and their width in standard deviations."""

    middle: float
    width: Annotated[float, Meta(ge=0)]

    @classmethod
    def of(cls, fused: np.ndarray) -> Self:
        """Measure some fused scores."""
        spread = Spread.of(fused[:, None])
        return cls(float(spread.middle[0]), float(spread.width[0]))


class Version(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The record of one version; nothing in it ever changes.

    Attributes:
        number: Counts up; never used twice.
        parent: The version that was current when it was published.
        created: When, in UTC.
        method: The name of its method.
        harmonrank: Which release wrote it.
        window: The data it was fitted on, in the publisher's words.
        note: What the publisher says about it.
        recalibrated: Whether it is its parent, recalibrated on recent rows without labels.
        refused: Why it may not become the current version; None if it may.
        checks: What the guardrails found.
        metrics: Its quality at publication, on the labelled table that was given.
        fused: Where its fused scores lay on that table.
        checksums: Of every file of the version but its record.
    """

    number: Annotated[int, Meta(ge=1)] = 1
    parent: int | None
    created: str
    method: str
    harmonrank: str
    window: str = ""
    note: str = ""
    recalibrated: bool = False
    refused: str | None = None
    checks: tuple[Check, ...]
    metrics: dict[str, Any] | None
    fused: Summary | None
    checksums: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        parts: dict[str, Any] = msgspec.to_builtins(self)
        return parts


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    checksum: str
    content: dict[str, Any]


def contents(folder: Path) -> dict[str, str]:
    """Return the checksum of every file of a version but its record."""
    return file_sums(folder, [MODEL_FOLDER, GOLDEN])


def write_version(folder: Path, version: Version) -> None:
    """Write the record of a version into its folder."""
    content = version.to_dict()
    write_json(folder / RECORD, {"checksum": digest(content), "content": content})


def read_version(folder: Path) -> Version:
    """Read the record of a version, or say what is wrong with it."""
    try:
        stored = read_json(folder / RECORD, _Stored)
        if stored.checksum != digest(stored.content):
            raise DataError(f"'{folder / RECORD}' does not match its checksum.")
        return msgspec.convert(stored.content, Version)
    except (DataError, msgspec.ValidationError) as error:
        raise ModelFileError(
            f"Version {folder.name} is damaged: {str(error).rstrip('.')}; roll back to another."
        ) from None


def check_contents(folder: Path, version: Version) -> None:
    """Refuse a version whose files are not those that were published."""
    try:
        sums = contents(folder)
    except OSError as error:
        raise ModelFileError(f"Version {folder.name} cannot be read: {error.strerror}.") from None
    if sums != version.checksums:
        changed = sorted({*sums, *version.checksums})
        name = next(n for n in changed if sums.get(n) != version.checksums.get(n))
        raise ModelFileError(
            f"'{folder / name}' does not match its checksum: version {version.number} is damaged; "
            "roll back to another version."
        )


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
    p = sigmoid(rng.normal(-2.0, 2.0, (_ROWS, len(names))))
    p[0], p[1], p[2] = 0.0, 1.0, SMALLEST_SCORE
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
