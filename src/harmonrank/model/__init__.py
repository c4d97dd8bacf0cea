"""The ensemble network, and the heads of the default."""

__all__ = ["Network", "NetworkConfig", "NetworkOptions", "TrainingConfig"]

from typing import TYPE_CHECKING

from harmonrank.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.model.config import NetworkConfig, NetworkOptions
    from harmonrank.model.network import Network
    from harmonrank.model.training import TrainingConfig

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "Network": "network",
        "NetworkConfig": "config",
        "NetworkOptions": "config",
        "TrainingConfig": "training",
    },
)
