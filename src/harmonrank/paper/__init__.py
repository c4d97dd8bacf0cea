"""The published system, to be read beside the paper in its own order and letters.

`buckets` (scores to table rows) · `network` (eq. 1 to 4 of docs/network.md) · `soft_rank`, and the
`projection` beneath it · `losses`: the paper's and those of its rivals · `training` (a loop that
yields events, by PyTorch or by kernels) · `methods` (what a user fits) · `health` (what each path
of a network adds). `config` holds the sizes of all. Beside the paper stand `fused`, the network's
kernels on the CPU, and `objective_network`, the network with one head per objective.
"""

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
