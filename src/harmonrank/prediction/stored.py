"""Stored: the JSON parts of a saved predictor, as types that loading decodes them to."""

__all__ = [
    "CalibratorForm",
    "EncoderForm",
    "FactsForm",
    "FoldsForm",
    "MemberForm",
    "PredictorForm",
    "SideForm",
]

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harmonrank.data.context import ContextForm

Whole = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Knots = float | list[float]


class SideForm(msgspec.Struct, forbid_unknown_fields=True):
    """Fields of users or items; '' is the ID itself."""

    key: str
    small: ContextForm
    numeric: list[str]
    shared: dict[str, Whole]


class EncoderForm(msgspec.Struct, forbid_unknown_fields=True):
    """All that an encoder knows besides arrays."""

    objectives: Annotated[list[str], Meta(min_length=1, max_length=1000)]
    context: ContextForm
    numeric: list[str]
    users: SideForm
    items: SideForm
    parts: list[Literal["train", "valid"]]


class CalibratorForm(msgspec.Struct, forbid_unknown_fields=True):
    """Per objective x and y of the knots, or slope and intercept, or nothing."""

    kind: Literal["platt", "isotonic", "none"]
    maps: list[tuple[Knots, Knots] | None]


class CalibrationForm(msgspec.Struct, forbid_unknown_fields=True):
    """Calibration error of an objective; null where there was nothing to measure."""

    before: float | None
    after: float | None
    positives: Whole


class FactsForm(msgspec.Struct, forbid_unknown_fields=True):
    """How a training went."""

    epochs: Whole
    best_epoch: Whole
    valid_auc: list[float | None]
    calibration: list[CalibrationForm]


class MemberForm(msgspec.Struct, forbid_unknown_fields=True):
    """A network's calibration and facts, and the checksum of its weights."""

    calibrator: CalibratorForm
    facts: FactsForm
    sha256: str


class FoldsForm(msgspec.Struct, forbid_unknown_fields=True):
    """How training rows were left out."""

    count: Annotated[int, Meta(ge=2, le=400)]
    by: Literal["user", "time"]
    column: str
    edges: list[Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]]


class PredictorForm(msgspec.Struct, forbid_unknown_fields=True):
    """All that a predictor holds besides its members and arrays."""

    format: int
    harmonrank: str
    config: dict[str, Any]
    encoder: EncoderForm
    log: str
    folds: FoldsForm | None
    members: list[str]
    calibrator: CalibratorForm
