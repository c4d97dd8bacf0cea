"""Stored: the JSON parts of a saved predictor, as types that loading decodes them to."""

__all__ = [
    "CalibratorForm",
    "EncoderForm",
    "PredictorForm",
    "SideForm",
    "Whole",
]

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harmonrank.data.context import ContextForm
from harmonrank_lab.upstream.folds import Folds

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


class PredictorForm(msgspec.Struct, forbid_unknown_fields=True):
    """All that a predictor holds besides its members and arrays."""

    format: int
    harmonrank: str
    config: dict[str, Any]
    encoder: EncoderForm
    log: str
    folds: Folds | None
    members: list[str]
    calibrator: CalibratorForm
