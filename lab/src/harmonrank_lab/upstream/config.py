"""How the prediction stage is built and trained."""

__all__ = ["NETWORKS", "PredictorConfig"]

from dataclasses import dataclass
from typing import Annotated, Literal

from msgspec import Meta

from harmonrank.support.errors import UsageError
from harmonrank.support.options import Count, Nonnegative, Rate, Seconds, Share, Width, check_fields

NETWORKS = ("mmoe", "ple", "esmm")
"""What can stand on the embeddings."""

_MOST_WEIGHTS = 1 << 26
_MOST_ROWS, _FEWEST_ROWS, _FEWEST_STEPS = 8192, 256, 64


@dataclass(frozen=True)
class PredictorConfig:
    """All options of the prediction stage.

    Attributes:
        network: 'mmoe', 'ple' or 'esmm'.
        embedding: Width of an embedding.
        experts: Shared experts; ESMM has none.
        levels: Extractions of PLE.
        shrinkage: Pull of every embedding row towards 0, in rows' worth of evidence.
        id_rows: Most rows of an ID column of its own; the rarer IDs are hashed to a quarter of it.
        learning_rate: Of AdamW on experts, gates and towers.
        table_rate: Of row-wise Adagrad on embeddings.
        batch_rows: Rows per step; 8,192 if left out, fewer where an epoch would have less than 64
            steps.
        pool_rows: Rows that are shuffled in memory at a time.
        patience: Epochs without a better validation AUC after which training stops.
        refits: Networks that in the end learn from training and validation rows alike, for as many
            epochs as validation chose; new rows are scored by their mean. With 0 they are scored
            by the mean of the networks that validation chose.
        valid_rows: At most this many validation rows decide when to stop.
        checkpoint_seconds: About this much work is lost when the process is killed.
    """

    network: Literal["mmoe", "ple", "esmm"] = "mmoe"
    embedding: Width = 16
    experts: Annotated[int, Meta(ge=1, le=256)] = 4
    expert_width: Width = 64
    tower_width: Width = 32
    levels: Annotated[int, Meta(ge=1, le=16)] = 2
    dropout: Share = 0.1
    shrinkage: Nonnegative = 10.0
    id_rows: Count = 1 << 20
    learning_rate: Rate = 3e-3
    table_rate: Rate = 0.1
    weight_decay: Nonnegative = 1e-4
    batch_rows: Count | None = None
    pool_rows: Count = 1 << 20
    epochs: Count = 10
    patience: Count = 2
    refits: Annotated[int, Meta(ge=0, le=500)] = 3
    valid_rows: Count = 500_000
    checkpoint_seconds: Seconds = 20.0

    def __post_init__(self) -> None:
        check_fields("predict", self)
        weights = (
            self.experts * self.levels * self.expert_width * (self.embedding + self.tower_width)
        )
        if weights > _MOST_WEIGHTS:
            raise UsageError(
                f"A network of about {weights:,} weights is too large, at most {_MOST_WEIGHTS:,}; "
                "lower `experts`, `expert_width` or `embedding`."
            )

    def step_rows(self, rows: int) -> int:
        """Return how many rows a step takes where an epoch has `rows`.

        A short log would be over in a few steps; those of a long one are as large as pays.

        >>> PredictorConfig().step_rows(1_000_000), PredictorConfig().step_rows(64_000)
        (8192, 1000)
        """
        if self.batch_rows is not None:
            return self.batch_rows
        return min(_MOST_ROWS, max(_FEWEST_ROWS, rows // _FEWEST_STEPS))
