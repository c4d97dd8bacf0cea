"""Predictor: the networks of one log with their calibration, and the folder that keeps them."""

__all__ = [
    "FINAL",
    "FULL",
    "MODEL",
    "Clock",
    "Member",
    "MemberFacts",
    "Predictor",
    "fingerprint",
    "load_predictor",
    "mean_score",
    "save_predictor",
]

import dataclasses
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import msgspec
import numpy as np
import torch

from harmonrank import __version__
from harmonrank.metrics import logit, sigmoid
from harmonrank.paper.training import Event, Finished
from harmonrank.support import (
    BatchEnded,
    DataError,
    EpochEnded,
    ModelFileError,
    Resumed,
    UsageError,
    storage,
)
from harmonrank.support.storage import Array, sha256
from harmonrank.support.storage.stored import declared, restored, stored
from harmonrank_lab.upstream.calibrator import CalibrationFacts, Calibrator, Whole
from harmonrank_lab.upstream.embedding import Layout, Rows
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.logs import ImportedLog
from harmonrank_lab.upstream.network import PredictorConfig, PredictorNetwork
from harmonrank_lab.upstream.stream import Folds

_ONLY_TRAINING = "embedding.squares"

FORMAT = 4
MODEL = "predictor.json"
"""The file that tells a saved predictor from any other folder."""

FULL = "full"
"""The member that was trained on all training rows."""

FINAL = "final-"
"""How the names of members begin that were trained on training and validation rows."""

_ENCODER, _CHECKSUMS = "encoder.safetensors", "checksums.json"


@dataclass(frozen=True)
class MemberFacts:
    """How a training went.

    Attributes:
        valid_auc: AUC of each objective on the validation rows; None where it has one class. Empty
            if the network has learned from them.
        calibration: Error of each objective before and after; empty likewise.
        seconds: Of the process that trained it. Times are not stored, so that a fit that was
            interrupted leaves the same bytes as one that was not.
        rows_per_second: Training rows, reading included, validation not; nor is this stored.
    """

    epochs: Whole
    best_epoch: Whole
    valid_auc: tuple[float | None, ...]
    calibration: tuple[CalibrationFacts, ...]
    seconds: float | None = None
    rows_per_second: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what is stored, as plain values."""
        return {k: v for k, v in asdict(self).items() if k not in ("seconds", "rows_per_second")}


class Clock:
    """Counts epochs, and the seconds that this process trained rather than validated."""

    def __init__(self) -> None:
        self.epochs = self.best = self._before = 0
        self.training = 0.0
        self.started = self._mark = perf_counter()

    def hear(self, event: Event) -> None:
        """Take note of an event of the training loop."""
        now = perf_counter()
        if isinstance(event, BatchEnded):
            self.training += now - self._mark
        elif isinstance(event, Resumed):
            self.epochs = self._before = event.epoch
        elif isinstance(event, EpochEnded):
            self.epochs = event.epoch + 1
        elif isinstance(event, Finished):
            self.best = event.best_epoch
        self._mark = now

    def facts(self, rows: int) -> MemberFacts:
        """Return the facts of a training whose epochs have so many rows."""
        speed = rows * (self.epochs - self._before) / max(self.training, 1e-9)
        return MemberFacts(self.epochs, self.best, (), (), perf_counter() - self.started, speed)


class _Stored(msgspec.Struct, forbid_unknown_fields=True):
    """A network's calibration and facts, and the checksum of its weights."""

    calibrator: Calibrator
    facts: MemberFacts
    sha256: str


@dataclass(frozen=True)
class Member:
    """A network and the map from its scores to probabilities."""

    network: PredictorNetwork
    calibrator: Calibrator
    facts: MemberFacts

    def score(self, rows: Rows) -> np.ndarray:
        """Return calibrated probabilities, (rows, objectives) float32."""
        return self.calibrator(self.network.score(rows))

    def save(self, folder: Path, name: str) -> None:
        """Write the weights, then the facts, which say that the member is complete."""
        tensors = self.network.state_dict()
        tensors.pop(_ONLY_TRAINING)
        weights = folder / f"{name}.safetensors"
        storage.write_arrays(weights, {k: v.numpy() for k, v in tensors.items()})
        parts: dict[str, Any] = {"calibrator": asdict(self.calibrator)}
        parts |= {"facts": self.facts.to_dict(), "sha256": sha256(weights)}
        with storage.new_file(folder / f"{name}.json", overwrite=True) as partial:
            storage.write_json(partial, parts)

    @classmethod
    def load(
        cls, folder: Path, name: str, layout: Layout, objectives: int, config: PredictorConfig
    ) -> Self:
        """Read what `save` wrote.

        Raises:
            DataError: Weights or facts are missing, damaged, or of another network.
        """
        form = storage.read_json(folder / f"{name}.json", _Stored)
        weights = folder / f"{name}.safetensors"
        if not weights.is_file() or sha256(weights) != form.sha256:
            raise DataError(f"'{weights.name}' does not match its checksum")
        network = PredictorNetwork(layout, np.full(objectives, 0.5), config, torch.Generator())
        state = network.state_dict()
        squares = state.pop(_ONLY_TRAINING)
        declared = {n: Array(tuple(value.shape), "float32") for n, value in state.items()}
        arrays = storage.read_arrays(weights, declared).items()
        state = {name: torch.from_numpy(array) for name, array in arrays}
        network.load_state_dict(state | {_ONLY_TRAINING: squares})
        form.calibrator.check(objectives)
        return cls(network, form.calibrator, form.facts)


@dataclass(frozen=True)
class Predictor:
    """Networks of one log, by what they saw of it.

    'full' saw all training rows, 'fold-0', 'fold-1', … all but those of a fold: these were chosen
    by the validation rows, which also calibrated them, and were not trained on those. 'final-0', …
    were trained on training and validation rows. So every row of the log has networks that were
    not trained on its label.

    Attributes:
        log: Fingerprint of the log.
        folds: How its training rows are left out, or None.
        members: By name.
        calibrator: Of the mean of their logits.
    """

    config: PredictorConfig
    encoder: Encoder
    log: str
    folds: Folds | None
    members: dict[str, Member]
    calibrator: Calibrator

    def score(self, rows: Rows) -> np.ndarray:
        """Return calibrated probabilities of rows that no member saw, (rows, objectives) float32.

        p = calibrated σ(mean of the logits of all final members, who saw the most); of all there
        are if none is final. What one network has learned by chance the others have not.
        """
        return self.calibrator(mean_score(self.finals or self.validated, rows))

    def score_valid(self, rows: Rows) -> np.ndarray:
        """Return calibrated probabilities of the log's own validation rows, as `score` does.

        By the mean of the members that were not trained on them: a fusion is selected by these
        rows, and in-sample scores would mislead it. Their labels did choose the members' epochs and
        the calibration.
        """
        return self.calibrator(mean_score(self.validated, rows))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Whose probabilities are predicted."""
        return self.encoder.objectives

    @property
    def validated(self) -> dict[str, Member]:
        """The members that learned from training rows alone."""
        return {n: member for n, member in self.members.items() if not n.startswith(FINAL)}

    @property
    def finals(self) -> dict[str, Member]:
        """The members that learned from training and validation rows."""
        return {n: member for n, member in self.members.items() if n.startswith(FINAL)}

    def of_fold(self, fold: int) -> Member:
        """Return the member that did not see the rows of a fold."""
        return self.members[f"fold-{fold}"]

    def with_log(self, log: ImportedLog) -> "Predictor":
        """Return the same networks with the users and items of another log."""
        if fingerprint(log) == self.log:
            return self
        encoder = self.encoder.of_log(log)
        for member in self.members.values():
            member.network.embedding.use(encoder.layout)
        return dataclasses.replace(self, encoder=encoder)


def fingerprint(log: ImportedLog) -> str:
    """Return a digest of a log's content, by the checksums of its files."""
    return storage.digest({name: about["sha256"] for name, about in log.manifest["files"].items()})


def mean_score(members: Mapping[str, Member], rows: Rows) -> np.ndarray:
    """Return σ(mean of the members' calibrated logits), (rows, objectives) float32."""
    total = sum(logit(member.score(rows)) for member in members.values())
    return sigmoid(np.asarray(total) / len(members)).astype(np.float32)


@dataclass(frozen=True)
class _Kept:
    """What a predictor's document and arrays hold; its members have files of their own."""

    config: PredictorConfig
    encoder: Encoder
    log: str
    folds: Folds | None
    calibrator: Calibrator
    members: tuple[str, ...]


def save_predictor(predictor: Predictor, folder: Path) -> None:
    """Write all but the members, which are there already, and the checksums of every file."""
    p = predictor
    kept = _Kept(p.config, p.encoder, p.log, p.folds, p.calibrator, tuple(p.members))
    parts, arrays = stored(kept)
    storage.write_arrays(folder / _ENCODER, arrays)
    storage.write_json(
        folder / MODEL, {"format": FORMAT, "harmonrank": __version__, "predictor": parts}
    )
    files = [MODEL, _ENCODER]
    files += [f"{name}.{end}" for name in p.members for end in ("json", "safetensors")]
    storage.write_json(folder / _CHECKSUMS, {name: sha256(folder / name) for name in files})


def load_predictor(path: str | Path) -> Predictor:
    """Read a saved predictor; nothing in it is ever executed.

    Raises:
        ModelFileError: The folder is not a saved predictor, is damaged, or of another format.
    """
    path = Path(path)
    if not (path / MODEL).is_file() or not (path / _CHECKSUMS).is_file():
        raise ModelFileError(
            f"'{path}' is not a saved predictor; make one with `harmonrank lab predict fit`."
        )
    try:
        sums = storage.read_json(path / _CHECKSUMS, dict[str, str])
        _check_sum(path, MODEL, sums)
        document = storage.read_json(path / MODEL, _Document)
        storage.check_format(
            f"'{path}' has predictor", document.format, document.harmonrank, FORMAT
        )
        return _read(path, document.predictor, sums)
    except (DataError, UsageError) as error:
        if isinstance(error, ModelFileError):
            raise
        reason = str(error).rstrip(".")
        raise ModelFileError(
            f"The saved predictor '{path}' is damaged: {reason}; fit it again."
        ) from error


class _Document(msgspec.Struct):
    """What every format has, and the parts of this one."""

    format: int
    harmonrank: str
    predictor: Any = None


def _check_sum(path: Path, name: str, sums: Mapping[str, str]) -> None:
    if not (path / name).is_file() or sha256(path / name) != sums.get(name):
        raise ModelFileError(
            f"'{path / name}' does not match its checksum: the saved predictor is damaged; "
            "copy it again or fit it again."
        )


def _read(path: Path, parts: Any, sums: Mapping[str, str]) -> Predictor:
    _check_sum(path, _ENCODER, sums)
    kept = restored(_Kept, parts, storage.read_arrays(path / _ENCODER, declared(_Kept, parts)))
    folds, finals = range(kept.folds.count if kept.folds else 0), range(kept.config.refits)
    names = (FULL, *(f"fold-{k}" for k in folds), *(f"{FINAL}{k}" for k in finals))
    if kept.members != names:
        raise DataError(f"`members` must be {names}, got {kept.members}")
    for name in (f"{n}.{end}" for n in names for end in ("json", "safetensors")):
        _check_sum(path, name, sums)
    kept.encoder.check()
    layout, M = kept.encoder.layout, len(kept.encoder.objectives)
    kept.calibrator.check(M)
    members = {n: Member.load(path, n, layout, M, kept.config) for n in names}
    return Predictor(kept.config, kept.encoder, kept.log, kept.folds, members, kept.calibrator)
