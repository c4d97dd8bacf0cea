"""Fitting: the networks of a predictor, trained into a folder that may hold some already."""

__all__ = ["fit_predictor"]

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from statistics import median_high
from typing import Literal

import numpy as np
import torch

from harmonrank import __version__
from harmonrank.support import DataError, OnEvent
from harmonrank.support.storage import resumable_folder
from harmonrank_lab.events import MemberStarted
from harmonrank_lab.upstream import predictor as saved
from harmonrank_lab.upstream.calibrator import Calibrator, calibration_facts
from harmonrank_lab.upstream.embedding import Rows
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.logs import ImportedLog
from harmonrank_lab.upstream.loop import auc_of, train_network
from harmonrank_lab.upstream.network import PredictorConfig, PredictorNetwork
from harmonrank_lab.upstream.predictor import FULL, Member, MemberFacts, Predictor
from harmonrank_lab.upstream.stream import Folds, RowStream

Parts = tuple[str, ...]

_FINAL_SEEDS = 500
"""Where the seeds of final members begin, beyond those of any folds."""


def fit_predictor(
    log: ImportedLog,
    path: str | Path,
    config: PredictorConfig | None = None,
    *,
    folds: int = 5,
    by: Literal["user", "time"] | None = None,
    seed: int = 0,
    overwrite: bool = False,
    on_event: OnEvent = lambda _: None,
) -> Predictor:
    """Train on a log and write the predictor to a folder.

    With folds, one more network is trained per fold, which never sees that fold's rows, so that
    training rows can be scored as if they were new. In the end `config.refits` networks learn from
    training and validation rows, for as many epochs as validation chose. The same call goes on
    where an earlier one was cut short, and comes to the same weights.

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
    key = {"format": saved.FORMAT, "harmonrank": __version__, "log": saved.fingerprint(log)}
    key |= {"config": asdict(config), "folds": [folds, by], "seed": seed}
    with resumable_folder(path, key, holds=saved.MODEL, overwrite=overwrite) as folder:
        parts = ("train", "valid") if config.refits else ("train",)
        encoder = Encoder.fit(log, config.id_rows, parts)
        cut = Folds.of_log(log, folds, by) if folds else None
        fitting = _Fitting(log, config, encoder, cut, seed, folder, on_event)
        validated = fitting.validated()
        members = validated | fitting.finals(validated)
        calibrator = fitting.calibrator(validated)
        predictor = Predictor(config, encoder, saved.fingerprint(log), cut, members, calibrator)
        saved.save_predictor(predictor, folder)
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
    on_event: OnEvent

    def validated(self) -> dict[str, Member]:
        """Return the members of training rows, each of its best epoch."""
        without = {FULL: None, **{f"fold-{k}": k for k in range(self._count)}}
        return {
            name: self._member(name, index, partial(self._validated, name, k))
            for index, (name, k) in enumerate(without.items())
        }

    def finals(self, validated: Mapping[str, Member]) -> dict[str, Member]:
        """Return the members of training and validation rows.

        No rows are left to stop by, nor to tell how sure they may be. Both are taken from the
        network that is typical of those that could be stopped, whose number of epochs is the
        median: a single one's says little.
        """
        best = median_high(member.facts.best_epoch for member in validated.values())
        typical = next(m for m in validated.values() if m.facts.best_epoch == best)
        return {
            name: self._member(name, 1 + self._count + k, partial(self._final, name, k, typical))
            for k, name in enumerate(f"{saved.FINAL}{k}" for k in range(self.config.refits))
        }

    def calibrator(self, validated: Mapping[str, Member]) -> Calibrator:
        """Return the map of a mean of members to probabilities, by the validation rows."""
        scores = saved.mean_score(validated, self._valid)
        return Calibrator.fit(scores, self._valid.labels)

    @property
    def _count(self) -> int:
        return self.folds.count if self.folds else 0

    @cached_property
    def _valid(self) -> Rows:
        """The rows that decide when to stop: evenly from all validation rows."""
        every = max(1, -(-self.log.rows["valid"] // self.config.valid_rows))
        columns = [*self.encoder.reads, *self.encoder.objectives]
        batches = self.log.batches("valid", list(dict.fromkeys(columns)), rows=1 << 20)
        return Rows.join([self.encoder.rows(frame.gather_every(every)) for frame in batches])

    def _member(self, name: str, index: int, train: Callable[[], Member]) -> Member:
        """Return a member, trained unless the folder holds it."""
        kept = self._kept(name)
        members = 1 + self._count + self.config.refits
        self.on_event(MemberStarted(name, index, members, kept is not None))
        member = kept or train()
        if kept is None:
            member.network.embedding.release()
            member.save(self.folder, name)
        (self.folder / f"{name}.checkpoint").unlink(missing_ok=True)
        return member

    def _kept(self, name: str) -> Member | None:
        """Return what an earlier run has left of a member, if it is whole."""
        if not (self.folder / f"{name}.json").is_file():
            return None
        layout, M = self.encoder.layout, len(self.encoder.objectives)
        with suppress(DataError):
            return Member.load(self.folder, name, layout, M, self.config)
        return None

    def _validated(self, name: str, without: int | None) -> Member:
        seed = 1009 * self.seed + (0 if without is None else 1 + without)
        network, trained = self._train(name, seed, ("train",), self.config, without)
        raw, valid = network.score(self._valid), self._valid
        areas = tuple(None if np.isnan(a) else float(a) for a in auc_of(network, valid))
        errors = calibration_facts(raw, valid.labels)
        facts = replace(trained, valid_auc=areas, calibration=errors)
        return Member(network, Calibrator.fit(raw, valid.labels), facts)

    def _final(self, name: str, k: int, typical: Member) -> Member:
        config = replace(self.config, epochs=typical.facts.best_epoch + 1)
        seed = 1009 * self.seed + _FINAL_SEEDS + k
        network, facts = self._train(name, seed, ("train", "valid"), config)
        # What has drifted from train to valid is learned already and must not be corrected again.
        calibrator = typical.calibrator.centred(network.score(self._valid), self._valid.labels)
        return Member(network, calibrator, facts)

    def _train(
        self,
        name: str,
        seed: int,
        parts: Parts,
        config: PredictorConfig,
        without: int | None = None,
    ) -> tuple[PredictorNetwork, MemberFacts]:
        """Return a network that learned from some parts of the log, stopped by no part of those."""
        layout, generator = self.encoder.layout_of(*parts), torch.Generator().manual_seed(seed)
        network = PredictorNetwork(layout, _prevalence(self.log, parts), config, generator)
        stream = RowStream(self.log, self.encoder, config.pool_rows, self.folds, without, parts)
        clock, valid = saved.Clock(), None if "valid" in parts else self._valid
        checkpoint = self.folder / f"{name}.checkpoint"
        for event in train_network(
            network, stream, valid, config, seed=seed, checkpoint=checkpoint, fingerprint=name
        ):
            clock.hear(event)
            self.on_event(event)
        return network, clock.facts(stream.rows)


def _prevalence(log: ImportedLog, parts: Parts) -> np.ndarray:
    positives = [list(log.manifest["positives"][part].values()) for part in parts]
    return np.asarray(np.sum(positives, axis=0) / sum(log.rows[part] for part in parts))
