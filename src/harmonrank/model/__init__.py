"""The ensemble network, and the heads of the default."""

__all__ = ["Network", "NetworkConfig", "NetworkOptions", "TrainingConfig"]

from typing import TYPE_CHECKING, Any

from harmonrank.lazy import attribute

if TYPE_CHECKING:
    from harmonrank.model.config import NetworkConfig, NetworkOptions
    from harmonrank.model.network import Network
    from harmonrank.model.training import TrainingConfig

_PLACES = {
    "Network": "network",
    "NetworkConfig": "config",
    "NetworkOptions": "config",
    "TrainingConfig": "training",
}


def __getattr__(name: str) -> Any:
    # Scoring needs no PyTorch, which takes longer to import than a model to load.
    return attribute(__name__, name, _PLACES)
