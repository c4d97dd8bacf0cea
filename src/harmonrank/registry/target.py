"""Target: the folder of a saved model, or of a registry, which stands for its current version."""

__all__ = ["load_target", "registry_of"]

from pathlib import Path

from harmonrank.fusion import Method, load
from harmonrank.fusion.saved import checksums
from harmonrank.registry.registry import SETTINGS, Registry

_SHORT = 12


def registry_of(target: str | Path) -> Registry | None:
    """Return the registry that a target is; None if it is a saved model."""
    return Registry(target) if (Path(target) / SETTINGS).is_file() else None


def load_target(target: str | Path) -> tuple[Method, str]:
    """Return the model that a target stands for now, and the name of its version."""
    registry = registry_of(target)
    if registry is not None:
        number = registry.version().number
        return registry.load(number), str(number)
    return load(target), checksums(target)["weights.safetensors"][:_SHORT]
