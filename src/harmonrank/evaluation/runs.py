"""Runs: the finished methods of a comparison, kept in a folder."""

__all__ = ["Runs"]

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank import __version__
from harmonrank.data import Log
from harmonrank.evaluation.entry import REPLICATES, Entry
from harmonrank.fusion import Method, Quality, load
from harmonrank.fusion.saved import MODEL
from harmonrank.support.errors import DataError, HarmonRankError
from harmonrank.support.storage.decoding import decode
from harmonrank.support.storage.files import check_output
from harmonrank.support.storage.store import Store, digest

_DRAWS = Meta(min_length=1 + REPLICATES, max_length=1 + REPLICATES)


class _Result(msgspec.Struct):
    """A finished method, as JSON parts."""

    fit_seconds: Annotated[float, Meta(ge=0)]
    quality: dict[str, Any]
    as_fitted: dict[str, Any] | None
    drawn: dict[str, Annotated[list[list[float | None]], _DRAWS]]


class Runs:
    """Finished methods in a folder: NAME/ is the model, NAME.json its result.

    Args:
        folder: Made when the first method is put.
        logs: Training and test rows, and validation rows or None.
        seed: Given to every fit.
        recalibrate: Whether methods are measured after a recalibration.
        k: Events among how many of a request are counted.
    """

    def __init__(
        self, folder: Path, logs: Sequence[Log | None], seed: int, recalibrate: bool, k: int = 10
    ) -> None:
        self._store, self._recalibrate, self._k = Store(folder), recalibrate, k
        self._objectives = {name for log in logs if log is not None for name in log.schema.names}
        self._shared = [
            seed,
            recalibrate,
            __version__,
            [log and log.fingerprint() for log in logs],
            REPLICATES,
            k,
        ]

    def _key(self, method: Method) -> str:
        return digest([method.name, repr(method.config), *self._shared])

    def find(self, method: Method) -> Entry | None:
        """Return a method's result if it is of the same data, options and seed.

        Raises:
            OutputError: There is a file or a folder of its name that is none of ours.
        """

        def entry(parts: Any) -> Entry:
            result = decode(parts, _Result, f"The result of {method.name}")
            before = result.as_fitted
            if (before is not None) != self._recalibrate:
                raise DataError("A recalibrated method has its quality as fitted, and no other.")
            if any(len(r) != len(self._objectives) for rows in result.drawn.values() for r in rows):
                raise DataError("Every resampled log has a figure of each objective.")
            return Entry(
                method.name,
                result.fit_seconds,
                self._quality(result.quality),
                as_fitted=None if before is None else self._quality(before),
                drawn={by: np.array(rows, np.float64) for by, rows in result.drawn.items()},
                k=self._k,
            )

        known = self._store.find(method.name, self._key(method), entry)
        if known is None:
            # Before the fit, not after it.
            self._store.refuse_foreign(method.name)
            check_output(self._store.path(method.name, ""), overwrite=True, holds=MODEL)
        return known

    def _quality(self, parts: dict[str, Any]) -> Quality:
        quality = Quality.from_dict(parts)
        if set(quality.weights) != self._objectives:
            raise DataError("The quality is of other objectives.")
        return quality

    def model(self, name: str, test: Log) -> Method | None:
        """Return a kept model as it was measured; None if it cannot be read any more."""
        try:
            model = load(self._store.path(name, ""))
        except HarmonRankError:
            return None  # Its figures are known; only what the model itself would tell is not.
        return model.recalibrated(replace(test, labels=None)) if self._recalibrate else model

    def put(self, method: Method, entry: Entry) -> None:
        """Keep a finished method; its result appears last."""
        assert entry.quality is not None
        method.save(self._store.path(method.name, ""), overwrite=True)
        parts = {
            "fit_seconds": entry.fit_seconds,
            "quality": entry.quality.to_dict(),
            "as_fitted": entry.as_fitted and entry.as_fitted.to_dict(),
            "drawn": {by: rows.tolist() for by, rows in entry.drawn.items()},
        }
        self._store.put(method.name, self._key(method), parts)
