"""How the prediction stage is built and trained."""

__all__ = ["NETWORKS", "NetworkConfig", "PredictorConfig"]

from dataclasses import dataclass
from typing import Literal

from harmonrank.errors import UsageError, did_you_mean

NETWORKS = ("mmoe", "ple", "esmm")
"""What can stand on the embeddings."""

_MOST_ROWS, _FEWEST_ROWS, _FEWEST_STEPS = 8192, 256, 64


@dataclass(frozen=True)
class NetworkConfig:
    """Sizes of a network on pooled embeddings.

    Attributes:
        experts: Shared experts; ESMM has none.
        levels: Extractions of PLE.
    """

    objectives: int
    experts: int = 4
    expert_width: int = 64
    tower_width: int = 32
    levels: int = 2
    dropout: float = 0.1


@dataclass(frozen=True)
class PredictorConfig:
    """All options of the prediction stage.

    Attributes:
        network: 'mmoe', 'ple' or 'esmm'.
        embedding: Width of an embedding.
        products: Also give the network the products of user, item and context vectors.
        first_order: Also give every field value a logit of its own per objective.
        shrinkage: Pull of every embedding row towards 0, in rows' worth of evidence.
        id_rows: Most rows of an ID column of its own; the rarer IDs are hashed to a quarter of it.
        learning_rate: Of AdamW on experts, gates and towers.
        table_rate: Of row-wise Adagrad on embeddings.
        averaging: Predict with the average of the weights over about the last epoch.
        batch_rows: Rows per step; 8,192 if left out, fewer where an epoch would have less than 64
            steps.
        pool_rows: Rows that are shuffled in memory at a time.
        patience: Epochs without a better validation AUC after which training stops.
        refits: Networks that in the end learn from training and validation rows alike, for as many
            epochs as validation chose; new rows are scored by their mean. With 0 they are scored
            by the mean of the networks that validation chose.
        valid_rows: At most this many validation rows decide when to stop.
        calibration: 'platt', 'isotonic' or 'none'.
        checkpoint_seconds: About this much work is lost when the process is killed.
    """

    network: Literal["mmoe", "ple", "esmm"] = "mmoe"
    embedding: int = 16
    products: bool = True
    first_order: bool = False
    experts: int = 4
    expert_width: int = 64
    tower_width: int = 32
    levels: int = 2
    dropout: float = 0.1
    shrinkage: float = 10.0
    id_rows: int = 1 << 20
    learning_rate: float = 3e-3
    table_rate: float = 0.1
    weight_decay: float = 1e-4
    averaging: bool = True
    batch_rows: int | None = None
    pool_rows: int = 1 << 20
    epochs: int = 10
    patience: int = 2
    refits: int = 3
    valid_rows: int = 500_000
    calibration: Literal["platt", "isotonic", "none"] = "platt"
    checkpoint_seconds: float = 20.0

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            hint = did_you_mean(str(self.network), NETWORKS)
            raise UsageError(f"There is no network '{self.network}'. {hint}")
        if self.calibration not in ("platt", "isotonic", "none"):
            raise UsageError(
                f"`calibration` must be 'platt', 'isotonic' or 'none'. Got '{self.calibration}'."
            )
        for name in (
            "embedding",
            "experts",
            "expert_width",
            "tower_width",
            "levels",
            "id_rows",
            "learning_rate",
            "table_rate",
            "batch_rows",
            "pool_rows",
            "epochs",
            "patience",
            "valid_rows",
        ):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UsageError(f"`{name}` must be above 0. Got {value}.")
        if not 0 <= self.dropout < 1:
            raise UsageError(f"`dropout` must lie in [0, 1). Got {self.dropout}.")
        for name in ("shrinkage", "refits"):
            value = getattr(self, name)
            if not value >= 0:
                raise UsageError(f"`{name}` must be 0 or more. Got {value}.")

    def step_rows(self, rows: int) -> int:
        """Return how many rows a step takes where an epoch has `rows`.

        A short log would be over in a few steps; those of a long one are as large as pays.

        >>> PredictorConfig().step_rows(1_000_000), PredictorConfig().step_rows(64_000)
        (8192, 1000)
        """
        if self.batch_rows is not None:
            return self.batch_rows
        return min(_MOST_ROWS, max(_FEWEST_ROWS, rows // _FEWEST_STEPS))

    def sizes(self, objectives: int) -> NetworkConfig:
        """Return the sizes of the network for a number of objectives."""
        return NetworkConfig(
            objectives,
            self.experts,
            self.expert_width,
            self.tower_width,
            self.levels,
            self.dropout,
        )
