"""QualityForm: the JSON parts of a quality, as the type that reading decodes them to."""

__all__ = ["QualityForm"]

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from harmonrank.fusion.quality.position_quality import PositionForm
from harmonrank.fusion.quality.request_quality import RequestQualityForm
from harmonrank.fusion.quality.value_quality import ValueForm

Rows = Annotated[int, Meta(ge=0, le=2**53)]
Named = Annotated[dict[str, float], Meta(min_length=1)]
Ends = tuple[float | None, float | None]


class QualityForm(msgspec.Struct):
    """What `Quality.to_dict` returns; an end of an interval that is not known is null."""

    rows: Rows
    weights: Named
    auc: Named
    auc_ci: dict[str, Ends]
    auc_sum: float
    ci: Ends
    request_auc: dict[str, float | None] | None
    prevalence: Named
    effective_weights: Named
    exact_auc: Named | None
    exact_auc_sum: float | None
    ceiling: float | None
    value: ValueForm | None = None
    position: PositionForm | None = None
    kinds: dict[str, str] = msgspec.field(default_factory=dict)
    requests: RequestQualityForm | None = None
    optimises: Literal["all", "requests"] = "all"

    def __post_init__(self) -> None:
        """Refuse parts that are not of the same objectives."""
        parts: list[Mapping[str, Any] | None] = [
            self.auc,
            self.auc_ci,
            self.prevalence,
            self.effective_weights,
            self.request_auc,
            self.exact_auc,
            None if self.value is None else self.value.value,
            None if self.position is None else self.position.positives,
            None if self.position is None else self.position.effective_positives,
            None if self.requests is None else self.requests.auc,
        ]
        if any(part is not None and set(part) != set(self.weights) for part in parts):
            raise ValueError("expected numbers of the same objectives in every part")
        if (self.exact_auc is None) != (self.exact_auc_sum is None):
            raise ValueError("expected exact_auc and exact_auc_sum, or neither")
