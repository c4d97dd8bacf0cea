"""Packed models: a saved model as bytes, as it travels to the workers of an engine.

A model is never pickled. What travels is the folder that `save` writes, which a worker checks and
decodes as `load` does.
"""

__all__ = ["PackedModel", "pack"]

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from harmonrank.fusion.method import Method
from harmonrank.fusion.saved import load, save


@dataclass(frozen=True)
class PackedModel:
    """The files of a saved model, by name and bytes."""

    files: tuple[tuple[str, bytes], ...]

    def model(self) -> Method:
        """Return the model; a process that unpacks the same one again gets the same object."""
        return _unpacked(self)


def pack(method: Method) -> PackedModel:
    """Return a fitted method as bytes."""
    with TemporaryDirectory(prefix="harmonrank-") as folder:
        path = Path(folder) / "model"
        save(method, path)
        names = sorted(file.name for file in path.iterdir())
        return PackedModel(tuple((name, (path / name).read_bytes()) for name in names))


@lru_cache(maxsize=4)
def _unpacked(packed: PackedModel) -> Method:
    with TemporaryDirectory(prefix="harmonrank-") as folder:
        for name, content in packed.files:
            (Path(folder) / name).write_bytes(content)
        return load(folder)
