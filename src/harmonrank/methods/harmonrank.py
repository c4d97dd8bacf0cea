"""HarmonRank: denoise the scores by their own law, calibrate heads by evidence, add them up."""

__all__ = ["MOST_VALUES", "HarmonRank", "HarmonRankConfig"]

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.arrays import Array
from harmonrank.data.engine_blocks import EngineBlocks
from harmonrank.engine import current_engine
from harmonrank.events import FitStep
from harmonrank.methods.fit import Fit
from harmonrank.methods.probability import ProbabilityMethod, weighted_sum
from harmonrank.methods.reference import Reference
from harmonrank.methods.state import ContextState
from harmonrank.model.coordinate import logit_of
from harmonrank.model.head_columns import OWN
from harmonrank.model.heads import Heads
from harmonrank.model.heads_marginal import MarginalScorer
from harmonrank.model.heads_recalibration import recalibrated_heads
from harmonrank.model.heads_score import HeadScorer
from harmonrank.model.stored_heads import arrays_of_heads, declared_heads, heads_of_arrays

MOST_VALUES = 100
"""Rarer context values share the slot of the unknown: they would cost more than they tell."""


@dataclass(frozen=True)
class HarmonRankConfig:
    """The default has nothing to tune: the evidence chooses how far each part is shrunk."""


class HarmonRank(ProbabilityMethod):
    """The default method: s = Σ_m w_m p_m / (π_m(1−π_m)) with p_m from evidence-shrunk heads.

    Each head starts from a plain calibration of its own score and moves away from it, by what
    the other scores and the context say, only as far as the training labels prove. See
    `harmonrank.model.law` and `harmonrank.model.heads` for the maths.
    """

    name = "harmonrank"
    uses_valid = False
    takes_missing = True
    Config = HarmonRankConfig
    State = ContextState

    encoder: ContextEncoder
    _heads: Heads
    _scorer: HeadScorer
    _marginal: MarginalScorer

    def _fit(self, fit: Fit) -> None:
        from harmonrank.model.fit_rows import cut_rows
        from harmonrank.model.heads_fit import fit_blocks

        log = fit.train
        self.encoder = ContextEncoder.fit(log.context, MOST_VALUES)
        codes = log.codes(self.encoder)
        rows = cut_rows(log.scores, codes, log.known_labels(), log.sample_weight)
        engine = current_engine()
        if engine.name != "local":
            rows = EngineBlocks(engine, rows)
        self._use(fit_blocks(rows, self.encoder.slots, lambda *n: fit.on_event(FitStep(*n))))

    @classmethod
    def assembled(
        cls,
        schema: Schema,
        encoder: ContextEncoder,
        heads: Heads,
        prevalence: np.ndarray,
        reference: Reference,
    ) -> Self:
        """Return a fitted model of parts that were learned elsewhere, from a stream say."""
        model = cls()
        model.take(schema, encoder, heads, prevalence, reference)
        return model

    def take(
        self,
        schema: Schema,
        encoder: ContextEncoder,
        heads: Heads,
        prevalence: np.ndarray,
        reference: Reference,
    ) -> None:
        """Take over such parts, as a fit does."""
        self._schema, self.encoder = schema, encoder
        self._keep_prevalence(prevalence)
        self._use(heads)
        self._keep_reference(reference)

    @property
    def heads(self) -> Heads:
        """What was learned."""
        return self._heads

    def _use(self, heads: Heads) -> None:
        self._heads, self._scorer = heads, HeadScorer(heads)
        self._marginal = MarginalScorer(heads)

    def _probabilities(self, log: Log) -> np.ndarray:
        codes = log.codes(self.encoder)
        p = self._scorer.probabilities(log.scores, codes)
        for rows, found in self._marginals(log.scores, codes):
            p[rows] = found
        return p

    def _marginals(
        self, scores: np.ndarray, codes: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the rows that miss a score, if there are any, and their probabilities."""
        missing = np.isnan(scores)
        if missing.any():
            rows = np.flatnonzero(missing.any(axis=1))
            yield rows, self._marginal.probabilities(scores[rows], codes[rows])

    def _score_weighted(self, log: Log, weights: np.ndarray) -> np.ndarray:
        return self._fuse(log.scores, log.codes(self.encoder), weights)

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        codes = np.tile(self.encoder.encode_values(context), (len(scores), 1))
        return self._fuse(scores, codes, self.objective_weights() if weights is None else weights)

    def _fuse(self, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        effective = weights / (self.prevalence * (1 - self.prevalence))
        fused = self._scorer.fuse(scores, codes, effective)
        for rows, p in self._marginals(scores, codes):
            fused[rows] = weighted_sum(p, effective)
        return fused

    def _recalibrate(self, log: Log, before: Reference) -> None:  # noqa: ARG002
        codes = log.codes(self.encoder)
        self._use(recalibrated_heads(self._heads, logit_of(log.scores), codes, log.sample_weight))

    def explain(
        self,
        weights: Mapping[str, float] | None = None,
        value: Mapping[str, float] | None = None,
    ) -> dict[str, dict[str, float]]:
        """Return facts of each objective, with the share of a score's variance taken for noise.

        `slope` is what a standard deviation of the score's logit adds to the head's logit;
        `effects`, how many curves, interactions and context effects the evidence admitted.
        """
        names, heads = self.schema.names, self._heads
        return {
            **super().explain(weights, value),
            "noise_share": dict(zip(names, heads.noise_shares().tolist(), strict=True)),
            "slope": dict(zip(names, heads.theta[:, OWN].tolist(), strict=True)),
            "effects": dict(zip(names, heads.residual.counts().tolist(), strict=True)),
        }

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"context": self.encoder.to_list()}, arrays_of_heads(self._heads)

    def _declare(self, state: ContextState) -> dict[str, Array]:
        return declared_heads(len(self.schema.names), state.encoder(self.schema).slots)

    def _restore(self, state: ContextState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        self._use(heads_of_arrays(self.encoder.slots, arrays))
