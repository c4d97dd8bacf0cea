"""The published system: buckets, network, losses, training, and its methods."""

__all__ = [
    "PUBLISHED",
    "Network",
    "NetworkConfig",
    "NetworkOptions",
    "NeuralConfig",
    "NeuralMethod",
    "TrainingConfig",
]

from typing import TYPE_CHECKING

from harmonrank.support.lazy import lazy_names

if TYPE_CHECKING:
    from harmonrank.paper.config import NetworkConfig, NetworkOptions, TrainingConfig
    from harmonrank.paper.methods.neural import NeuralConfig, NeuralMethod
    from harmonrank.paper.methods.neural_methods import PUBLISHED
    from harmonrank.paper.network import Network

# Scoring needs no PyTorch, which takes longer to import than a model to load.
__getattr__ = lazy_names(
    __name__,
    {
        "Network": "network",
        "NetworkConfig": "config",
        "NetworkOptions": "config",
        "TrainingConfig": "config",
        "NeuralConfig": "methods.neural",
        "NeuralMethod": "methods.neural",
        "PUBLISHED": "methods.neural_methods",
    },
)
