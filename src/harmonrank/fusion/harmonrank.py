"""HarmonRank: denoise the scores by their own density, calibrate heads by evidence, add them up."""

__all__ = ["MOST_VALUES", "HarmonRank", "HarmonRankConfig"]

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Schema
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.engine import current_engine
from harmonrank.fusion.drift.reference import Reference
from harmonrank.fusion.fitting.fit import Fit, require_requests
from harmonrank.fusion.fitting.label_shares import score_bins, with_label_shares
from harmonrank.fusion.probability import ProbabilityMethod, weighted_sum
from harmonrank.fusion.state import ContextState
from harmonrank.model.coordinate import logit_of
from harmonrank.model.linear.head_columns import OWN
from harmonrank.model.linear.heads import Heads
from harmonrank.model.linear.heads_recalibration import recalibrated_heads
from harmonrank.model.missing.heads_marginal import MarginalScorer
from harmonrank.model.requests.request_weights import RequestWeights, request_weight_arrays
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.model.stored_heads import arrays_of_heads, declared_heads, heads_of_arrays
from harmonrank.support.errors import UsageError
from harmonrank.support.events import FitStep
from harmonrank.support.storage.arrays import Array

MOST_VALUES = 100
"""Rarer context values share the slot of the unknown: they would cost more than they tell."""


@dataclass(frozen=True)
class HarmonRankConfig:
    """The default has nothing to tune: the evidence chooses how far each part is shrunk.

    Attributes:
        optimise: The AUC to fit for, over 'all' rows or within 'requests' (docs/per-request.md).
    """

    optimise: Literal["all", "requests"] = "all"


_REQUESTS = "requests"


class HarmonRank(ProbabilityMethod):
    """The default method: s = Σ_m w_m p_m / (π_m(1−π_m)) with p_m from evidence-shrunk heads.

    Each head starts from a plain calibration of its own score and moves away from it, by what
    the other scores and the context say, only as far as the training labels prove. See
    `harmonrank.model.density.density` and `harmonrank.model.linear.heads` for the maths.
    """

    name = "harmonrank"
    uses_valid = False
    takes_missing = True
    takes = ("graded", "given")
    fits_on_workers = True
    fits_blocks = True
    Config = HarmonRankConfig
    State = ContextState

    encoder: ContextEncoder
    _heads: Heads
    _scorer: HeadScorer
    _marginal: MarginalScorer
    _request_weights: RequestWeights | None = None

    def _fit(self, fit: Fit) -> None:
        from harmonrank.model.fit_rows import cut_rows
        from harmonrank.model.linear.heads_fit import fit_blocks

        log = fit.train
        require_requests(self.optimises, log)
        if self.optimises == _REQUESTS:
            log.schema.require_plain("A fit with optimise='requests'")
        self.encoder = ContextEncoder.fit(log.context, MOST_VALUES)
        codes = log.codes(self.encoder)
        shown = None if log.shown is None else log.shown.astype(np.float64)
        rows = cut_rows(log.scores, codes, log.known_labels(), log.sample_weight, shown)
        engine = current_engine()
        if engine.name != "local":
            rows = EngineBlocks(engine, rows)
        rows = with_label_shares(rows, log.schema, score_bins(log))
        self._use(fit_blocks(rows, self.encoder.slots, lambda *n: fit.on_event(FitStep(*n))))
        self._request_weights = None
        if self.optimises == _REQUESTS:
            self._request_weights = self._for_requests(log, fit.weights)

    def _for_requests(self, log: Log, weights: np.ndarray) -> RequestWeights:
        from harmonrank.model.requests.request_fit import fit_request_weights

        assert log.request is not None
        p, labels = self._probabilities(log), log.known_labels()
        return fit_request_weights(p, log.request, labels, weights, log.sample_weight)

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
        return self._chances(log.scores, log.codes(self.encoder))

    def _chances(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        p = self._scorer.probabilities(scores, codes)
        for rows, found in self._marginals(scores, codes):
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
        if self._request_weights is not None:
            parts = self._request_weights.parts(self._chances(scores, codes))
            return weighted_sum(parts, weights)
        effective = self._per_unit(weights)
        if self._kinds is not None:
            return weighted_sum(self._terms(self._chances(scores, codes), weights), effective)
        fused = self._scorer.fuse(scores, codes, effective)
        for rows, p in self._marginals(scores, codes):
            fused[rows] = weighted_sum(p, effective)
        return fused

    @property
    def request_weights(self) -> RequestWeights | None:
        """What a unit of probability counts in a row, where the fit is for requests."""
        return self._request_weights

    def parts_of(self, p: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return what each objective adds to the score of rows with these probabilities, (rows, M).

        Where the fit is for requests, that is w_m κ_m(z) p_m of `RequestWeights`.
        """
        if self._request_weights is None:
            return super().parts_of(p, weights)
        parts: np.ndarray = self._request_weights.parts(p) * weights
        return parts

    def _per_unit(self, weights: np.ndarray) -> np.ndarray:
        if self._request_weights is None:
            return super()._per_unit(weights)
        counted: np.ndarray = weights * self._request_weights.mean
        return counted

    def _require_probabilities(self) -> None:
        if self.optimises == _REQUESTS:
            raise UsageError(
                "A fit with optimise='requests' ranks by weights on AUC within requests; values "
                "per event have a best score of their own: fit with optimise='all' for them."
            )
        super()._require_probabilities()

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
        arrays = arrays_of_heads(self._heads)
        if self._request_weights is not None:
            parts = vars(self._request_weights).items()
            arrays |= {f"{_REQUESTS}/{name}": array for name, array in parts}
        return {"context": self.encoder.to_list()}, arrays

    def _declare(self, state: ContextState) -> dict[str, Array]:
        M = len(self.schema.names)
        declared = declared_heads(M, state.encoder(self.schema).slots)
        if self.optimises == _REQUESTS:
            parts = request_weight_arrays(M).items()
            declared |= {f"{_REQUESTS}/{name}": array for name, array in parts}
        return declared

    def _restore(self, state: ContextState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        self._use(heads_of_arrays(self.encoder.slots, arrays))
        self._request_weights = None
        if self.optimises == _REQUESTS:
            names = request_weight_arrays(len(self.schema.names))
            own = {name: arrays[f"{_REQUESTS}/{name}"] for name in names}
            self._request_weights = RequestWeights(**own)
