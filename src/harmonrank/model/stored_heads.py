"""Stored heads: the arrays of `Heads`, by name, and what each of them must be."""

__all__ = ["arrays_of_heads", "declared_heads", "heads_of_arrays"]

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from harmonrank.model.coordinate import Coordinate, coordinate_arrays
from harmonrank.model.density.density import Density, density_arrays
from harmonrank.model.linear.heads import Heads, head_arrays
from harmonrank.model.terms.residual import Residual, residual_arrays
from harmonrank.support.storage.arrays import Array

_DENSITY = [field.name for field in fields(Density)]
_COORDINATE = [field.name for field in fields(Coordinate)]
_RESIDUAL = [field.name for field in fields(Residual) if field.name != "slots"]
_OWN = ("theta", "precision", "shared")


def arrays_of_heads(heads: Heads) -> dict[str, np.ndarray]:
    """Return the arrays of heads; `heads_of_arrays` makes them heads again."""
    arrays = {f"density/{name}": getattr(heads.density, name) for name in _DENSITY}
    arrays |= {f"coordinate/{name}": getattr(heads.coordinate, name) for name in _COORDINATE}
    arrays |= {f"residual/{name}": getattr(heads.residual, name) for name in _RESIDUAL}
    return arrays | {name: getattr(heads, name) for name in _OWN}


def declared_heads(M: int, slots: tuple[int, ...]) -> dict[str, Array]:
    """Declare the arrays of `arrays_of_heads`."""
    declared = {f"density/{name}": array for name, array in density_arrays(M, slots).items()}
    declared |= {f"coordinate/{name}": array for name, array in coordinate_arrays(M).items()}
    declared |= {f"residual/{name}": array for name, array in residual_arrays(M, slots).items()}
    return declared | head_arrays(M, slots)


def heads_of_arrays(slots: tuple[int, ...], arrays: Mapping[str, np.ndarray]) -> Heads:
    """Return the heads whose arrays these are."""
    density = Density(**{name: arrays[f"density/{name}"] for name in _DENSITY})
    coordinate = Coordinate(**{name: arrays[f"coordinate/{name}"] for name in _COORDINATE})
    residual = Residual(slots, **{name: arrays[f"residual/{name}"] for name in _RESIDUAL})
    theta, precision, shared = (arrays[name] for name in _OWN)
    return Heads(coordinate, density, slots, theta, precision, shared, residual)
