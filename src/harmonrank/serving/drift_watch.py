"""DriftWatch: measures drift on what a service scored, and acts on a replaced upstream model."""

__all__ = ["DriftWatch"]

import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from harmonrank.data.reading.parquet import writing
from harmonrank.fusion.drift.drift import Drift
from harmonrank.serving.live import load_target, registry_of
from harmonrank.serving.sample import RecentRows
from harmonrank.serving.settings import DRIFT, ServeConfig
from harmonrank.support.errors import HarmonRankError
from harmonrank.support.storage.files import new_file, write_json

SAMPLE = "sample.parquet"
_FEWEST = 1000


class DriftWatch:
    """Looks at the sample from time to time; never changes a model by itself, unless told.

    Args:
        config: Of the service.
        folder: What its processes share; here the report appears, and with an alarm the sample.
        sample: What was scored.
        on_event: Called with the name of an event and its facts.
    """

    def __init__(
        self,
        config: ServeConfig,
        folder: Path,
        sample: RecentRows,
        on_event: Callable[[str, Mapping[str, Any]], None],
    ) -> None:
        self._config, self._folder, self._sample = config, folder, sample
        self._on_event = on_event
        self._seen = 0
        self._alarmed: tuple[str, tuple[str, ...]] | None = None

    @property
    def alarmed(self) -> bool:
        """Whether a sample was kept for the one who is asked to recalibrate."""
        return self._alarmed is not None

    def look(self) -> Drift | None:
        """Measure, report, and raise an alarm or recalibrate if a model was replaced."""
        if self._sample.seen - self._seen < _FEWEST:
            return None
        self._seen = self._sample.seen
        model, version = load_target(self._config.target)
        frame = self._sample.frame()
        drift = model.drift(frame)
        command = None
        if drift.replaced:
            command = self._act(version, drift, frame)
        with new_file(self._folder / DRIFT, overwrite=True) as made:
            write_json(made, {**drift.to_dict(), "version": version, "command": command})
        return drift

    def _act(self, version: str, drift: Drift, frame: pl.DataFrame) -> str | None:
        """Do once, for each version and each set of scores, what the settings say."""
        command = self.command()
        if self._alarmed == (version, drift.replaced):
            return command
        with new_file(self._folder / SAMPLE, overwrite=True) as made, writing():
            frame.write_parquet(made)
        # Only now: what could not be written is tried again at the next look.
        self._alarmed = version, drift.replaced
        facts = {"version": version, "scores": list(drift.replaced), "command": command}
        self._on_event("upstream replaced", facts)
        if self._config.recalibrate == "auto":
            self._recalibrate(version, frame)
        return command

    def command(self) -> str:
        """Return the one command that recalibrates what is served."""
        target, sample = self._config.target, str(self._folder / SAMPLE)
        if registry_of(target) is not None:
            parts = ["harmonrank", "registry", "publish", target, "--recalibrated-on", sample]
        else:
            parts = ["harmonrank", "recalibrate", target, sample, "-o", f"{target}-recalibrated"]
        return shlex.join(parts)

    def _recalibrate(self, version: str, frame: pl.DataFrame) -> None:
        registry = registry_of(self._config.target)
        assert registry is not None, "auto is refused without a registry"
        try:
            note = "Recalibrated by the service, as an upstream model was replaced."
            model = registry.load(int(version)).recalibrated(frame)
            made = registry.publish(model, frame, note=note, recalibrated=True)
        except HarmonRankError as error:
            self._on_event("recalibration refused", {"reason": str(error)})
            return
        if made.refused is None:
            self._on_event("recalibrated", {"version": made.number, "before": version})
        else:
            reason = {"version": made.number, "reason": made.refused}
            self._on_event("recalibration refused", reason)
