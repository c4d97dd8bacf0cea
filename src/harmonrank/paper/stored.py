"""What is stored of a network: the parameters that its config asks for, and its knots."""

__all__ = ["grown_context", "network_arrays", "require_arrays", "rescaled_output"]

from collections.abc import Mapping, Sequence

import numpy as np

from harmonrank.paper.config import NetworkConfig
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array


def network_arrays(config: NetworkConfig) -> dict[str, Array]:
    """Declare the parameters of `Network` and the knots of its buckets, without PyTorch.

    >>> network_arrays(NetworkConfig(objectives=5))["scores.table"].shape
    (1500, 2)
    """
    M, d, k, C = config.objectives, config.width, config.key_width, config.context_features
    slots = config.context_slots if config.personalised else ()
    shapes: dict[str, tuple[int, ...]] = {
        "scores.table": (M * (config.buckets or 1), d),
        "context.table": (sum(slots), 1),
        "relation_aware.value.weight": (k, d),
    }
    if config.self_attention:
        shapes |= {f"relation_aware.{name}.weight": (k, d) for name in ("query", "key")}
    if config.cross_attention:
        shapes["relation_aware.context_query.weight"] = (k, max(C, 1))
        shapes |= {f"relation_aware.context_{n}.weight": (k, k) for n in ("key", "value")}
    shapes |= _linear("relation_aware.output", k if config.cross_attention else M * k + C)
    if config.gate:
        shapes |= _linear("gated.gate", d) | _linear("gated.output", M * d)
    if config.linear:
        shapes |= _linear("linear", M * d)
    declared = {name: Array(shape, "float32") for name, shape in shapes.items()}
    knots = Array((M, config.knots), "float32", low=0.0, high=2.0, strictly=True)
    return {**declared, "scores.knots": knots}


def require_arrays(
    declared: Mapping[str, Array], arrays: Mapping[str, np.ndarray], fused: int, M: int
) -> None:
    """Refuse stored arrays that are not those of a network.

    Args:
        declared: What its config asks for.
        arrays: By name.
        fused: How many scores the network fuses.
        M: How many the model has.
    """
    if fused != M:
        raise DataError(f"the network fuses {fused} scores, and the model has {M}")
    for name in sorted(declared.keys() ^ arrays.keys()):
        raise DataError(f"array '{name}' is {'missing' if name in declared else 'not expected'}")
    for name, array in declared.items():
        if arrays[name].shape != array.shape:
            raise DataError(
                f"array '{name}' must be of shape {array.shape}, got {arrays[name].shape}"
            )
        array.check(name, arrays[name])


def grown_context(
    weights: Mapping[str, np.ndarray], slots: Sequence[int], codes: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the parameters with a place for more context values, which change no score.

    Args:
        weights: By the names of `network_arrays`.
        slots: How many codes each feature has now.
        codes: By feature, the code that each code of before has now; a new one begins as the
            unknown one.
    """
    table = weights["context.table"]
    if not len(table):  # a network that is not personalised
        return dict(weights)
    first, parts = 0, []
    for size, places in zip(slots, codes, strict=True):
        before = table[first : first + len(places)]
        part = np.repeat(before[:1], size, axis=0)
        part[places] = before
        parts.append(part)
        first += len(places)
    return {**weights, "context.table": np.concatenate(parts)}


def rescaled_output(
    weights: Mapping[str, np.ndarray], factor: float, shift: float
) -> dict[str, np.ndarray]:
    """Return the parameters whose fused score is `factor` times the one of these, plus `shift`."""
    changed = {
        name: (weights[name] * factor).astype(np.float32)
        for path in ("relation_aware.output", "gated.output", "linear")
        for name in (f"{path}.weight", f"{path}.bias")
        if name in weights
    }
    # The paths add up, so that one of them takes the shift of all.
    bias = "relation_aware.output.bias"
    changed[bias] = (changed[bias] + shift).astype(np.float32)
    return {**weights, **changed}


def _linear(name: str, inputs: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}.weight": (1, inputs), f"{name}.bias": (1,)}
