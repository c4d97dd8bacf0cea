"""Predictor: from a log to the scores that a fusion needs."""

__all__ = [
    "FULL",
    "MODEL",
    "MemberStarted",
    "Predictor",
    "fingerprint",
    "fit_predictor",
    "load_predictor",
]

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from harmonrank import __version__
from harmonrank.data.files import read_json, resumable_folder, sha256, write_json
from harmonrank.data.logs import ImportedLog
from harmonrank.errors import DataError, ModelFileError
from harmonrank.metrics import logit, sigmoid
from harmonrank.prediction.calibrator import Calibrator, calibration_facts
from harmonrank.prediction.config import PredictorConfig
from harmonrank.prediction.embedding import Rows
from harmonrank.prediction.encoder import Encoder
from harmonrank.prediction.folds import Folds
from harmonrank.prediction.loop import auc_of, train_network
from harmonrank.prediction.member import Member, MemberFacts
from harmonrank.prediction.network import Network
from harmonrank.prediction.stream import RowStream
from harmonrank.training import BatchEnded, EpochEnded, Event, Finished

FORMAT = 1
MODEL = "predictor.json"
"""The file that tells a saved predictor from any other folder."""

FULL = "full"
"""The member that was trained on all training rows."""

_ENCODER, _CHECKSUMS = "encoder.safetensors", "checksums.json"


@dataclass(frozen=True)
class MemberStarted:
    """The training of a member begins; `index` counts from 0."""

    name: str
    index: int
    members: int
    kept: bool = False


@dataclass(frozen=True)
class Predictor:
    """Networks of one log: one of all training rows, and one for each fold that it never saw.

    Attributes:
        log: Fingerprint of the log whose training rows they saw.
        folds: How its training rows are left out, or None.
        members: By name: 'full', 'fold-0', …
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

        p = calibrated σ(mean of the members' logits). They are there for the folds' sake, and what
        one of them has learned by chance the others have not.
        """
        return self.calibrator(_mean(self.members, rows))

    @property
    def objectives(self) -> tuple[str, ...]:
        """Whose probabilities are predicted."""
        return self.encoder.objectives

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
    sums = {name: about["sha256"] for name, about in sorted(log.manifest["files"].items())}
    return hashlib.sha256(json.dumps(sums).encode()).hexdigest()


def fit_predictor(
    log: ImportedLog,
    path: str | Path,
    config: PredictorConfig | None = None,
    *,
    folds: int = 5,
    by: Literal["user", "time"] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    on_event: Callable[[Any], None] = lambda _: None,
) -> Predictor:
    """Train on a log and write the predictor to a folder.

    With folds, one more network is trained per fold, which never sees that fold's rows, so that
    training rows can be scored as if they were new. The same call goes on where an earlier one
    was cut short, and comes to the same weights.

    Args:
        log: An imported log.
        path: The folder to write.
        config: Network and training.
        folds: 0 for none, else 2 or more.
        by: How folds are cut: 'user' or 'time'; as the log was split if left out.
        seed: Decides everything that is drawn.
        overwrite: Replace an earlier predictor.
        on_event: Called with the start of each member and its training events.
    """
    config = config or PredictorConfig()
    key = {
        "format": FORMAT,
        "harmonrank": __version__,
        "log": fingerprint(log),
        "config": dataclasses.asdict(config),
        "folds": [folds, by],
        "seed": seed,
    }
    with resumable_folder(path, key, holds=MODEL, overwrite=overwrite) as folder:
        encoder = Encoder.fit(log, config.id_rows)
        cut = Folds.of_log(log, folds, by) if folds else None
        fitting = _Fitting(log, config, encoder, cut, seed, folder, on_event)
        members = dict(fitting.members())
        calibrator = fitting.calibrator(members)
        predictor = Predictor(config, encoder, fingerprint(log), cut, members, calibrator)
        _write(predictor, folder)
    return predictor


@dataclass(frozen=True)
class _Fitting:
    """Trains the members of a predictor into a folder that may hold some of them already."""

    log: ImportedLog
    config: PredictorConfig
    encoder: Encoder
    folds: Folds | None
    seed: int
    folder: Path
    on_event: Callable[[Any], None]

    def members(self) -> Iterator[tuple[str, Member]]:
        """Yield every member by its name."""
        names = [FULL, *(f"fold-{k}" for k in range(self.folds.count if self.folds else 0))]
        valid = self._valid()
        for index, name in enumerate(names):
            kept = (self.folder / f"{name}.json").is_file()
            self.on_event(MemberStarted(name, index, len(names), kept))
            if kept:
                layout, M = self.encoder.layout, len(self.encoder.objectives)
                yield name, Member.load(self.folder, name, layout, M, self.config)
                continue
            member = self._train(name, None if name == FULL else index - 1, valid)
            member.save(self.folder, name)
            (self.folder / f"{name}.checkpoint").unlink(missing_ok=True)
            member.network.embedding.release()
            yield name, member

    def calibrator(self, members: Mapping[str, Member]) -> Calibrator:
        """Return the map of the members' mean to probabilities."""
        valid = self._valid()
        return Calibrator.fit(_mean(members, valid), valid.labels, self.config.calibration)

    def _valid(self) -> Rows:
        """Return the rows that decide when to stop: evenly from all validation rows."""
        every = max(1, -(-self.log.rows["valid"] // self.config.valid_rows))
        columns = [*self.encoder.reads, *self.encoder.objectives]
        batches = self.log.batches("valid", list(dict.fromkeys(columns)), rows=1 << 20)
        return Rows.join([self.encoder.rows(frame.gather_every(every)) for frame in batches])

    def _train(self, name: str, without: int | None, valid: Rows) -> Member:
        seed = 1009 * self.seed + (0 if without is None else 1 + without)
        generator = torch.Generator().manual_seed(seed)
        positives = np.array(list(self.log.manifest["positives"]["train"].values()))
        prevalence = positives / self.log.rows["train"]
        network = Network(self.encoder.layout, prevalence, self.config, generator)
        stream = RowStream(self.log, self.encoder, self.config.pool_rows, self.folds, without)
        clock = _Clock()
        for event in train_network(
            network,
            stream,
            valid,
            self.config,
            seed=seed,
            checkpoint=self.folder / f"{name}.checkpoint",
            fingerprint=name,
        ):
            clock.hear(event)
            self.on_event(event)
        raw, kind = network.score(valid), self.config.calibration
        facts = MemberFacts(
            clock.epochs,
            clock.best,
            perf_counter() - clock.started,
            stream.rows * clock.epochs / max(clock.training, 1e-9),
            tuple(None if np.isnan(a) else float(a) for a in auc_of(network, valid)),
            calibration_facts(raw, valid.labels, kind),
        )
        return Member(network, Calibrator.fit(raw, valid.labels, kind), facts)


def _mean(members: Mapping[str, Member], rows: Rows) -> np.ndarray:
    """Return σ(mean of the members' calibrated logits), (rows, objectives) float32."""
    total = sum(logit(member.score(rows)) for member in members.values())
    return sigmoid(np.asarray(total) / len(members)).astype(np.float32)


class _Clock:
    """Counts epochs, and the seconds that went into training rather than validation."""

    def __init__(self) -> None:
        self.epochs = self.best = 0
        self.training = 0.0
        self.started = self._mark = perf_counter()

    def hear(self, event: Event) -> None:
        """Take note of an event of the training loop."""
        now = perf_counter()
        if isinstance(event, BatchEnded):
            self.training += now - self._mark
        elif isinstance(event, EpochEnded):
            self.epochs += 1
        elif isinstance(event, Finished):
            self.best = event.best_epoch
        self._mark = now


def _write(predictor: Predictor, folder: Path) -> None:
    parts, arrays = predictor.encoder.state()
    save_file({k: np.ascontiguousarray(v) for k, v in arrays.items()}, folder / _ENCODER)
    folds = predictor.folds
    document = {
        "format": FORMAT,
        "harmonrank": __version__,
        "config": dataclasses.asdict(predictor.config),
        "encoder": parts,
        "log": predictor.log,
        "folds": None if folds is None else dataclasses.asdict(folds),
        "members": list(predictor.members),
        "calibrator": predictor.calibrator.to_dict(),
    }
    write_json(folder / MODEL, document)
    files = [MODEL, _ENCODER]
    files += [f"{name}.{end}" for name in predictor.members for end in ("json", "safetensors")]
    write_json(folder / _CHECKSUMS, {name: sha256(folder / name) for name in files})


def load_predictor(path: str | Path) -> Predictor:
    """Read a saved predictor; nothing in it is ever executed.

    Raises:
        ModelFileError: The folder is not a saved predictor, is damaged, or of a newer format.
    """
    path = Path(path)
    if not (path / MODEL).is_file() or not (path / _CHECKSUMS).is_file():
        raise ModelFileError(
            f"'{path}' is not a saved predictor; make one with `harmonrank predict fit`."
        )
    try:
        for name, expected in read_json(path / _CHECKSUMS).items():
            if not (path / name).is_file() or sha256(path / name) != expected:
                raise ModelFileError(
                    f"'{path / name}' does not match its checksum: the saved predictor is damaged; "
                    "copy it again or fit it again."
                )
        document = read_json(path / MODEL)
        if document["format"] > FORMAT:
            raise ModelFileError(
                f"'{path}' was written by harmonrank {document['harmonrank']}; update this one."
            )
        return _read(path, document)
    except (KeyError, TypeError, ValueError, SafetensorError, DataError) as error:
        if isinstance(error, ModelFileError):
            raise
        raise ModelFileError(f"The saved predictor '{path}' is damaged: {error}.") from error


def _read(path: Path, document: dict[str, Any]) -> Predictor:
    config = PredictorConfig(**document["config"])
    encoder = Encoder.restore(document["encoder"], load_file(path / _ENCODER))
    layout, M = encoder.layout, len(encoder.objectives)
    members = {n: Member.load(path, n, layout, M, config) for n in document["members"]}
    folds = document["folds"]
    if folds is not None:
        folds = Folds(**{**folds, "edges": tuple(folds["edges"])})
    calibrator = Calibrator.from_dict(document["calibrator"])
    return Predictor(config, encoder, document["log"], folds, members, calibrator)
