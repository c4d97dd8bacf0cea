"""HarmonRank: denoise the scores by their density, calibrate heads by evidence, add them up."""

__all__ = ["DefaultFit", "HarmonRank", "HarmonRankConfig"]

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np

from harmonrank.fusion.label_shares import score_bins, with_label_shares
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.fusion.weights import weighted_sum
from harmonrank.model.linear.head_columns import OWN
from harmonrank.model.linear.heads import Heads, head_sizes
from harmonrank.model.linear.heads_recalibration import recalibrated_heads
from harmonrank.model.missing.heads_marginal import MarginalScorer
from harmonrank.model.requests.request_weights import RequestWeights, term_count
from harmonrank.model.scorer.heads_score import HeadScorer
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.events import FitStep
from harmonrank.support.logistic import score_logit

if TYPE_CHECKING:
    from harmonrank.model.linear.averaging import OutOfFold

MOST_VALUES = 100
"""Rarer context values share the slot of the unknown: they would cost more than they tell."""


@dataclass(frozen=True, eq=False)
class DefaultFit:
    """The heads of the default, ready to score.

    Attributes:
        heads: What was learned of each objective.
        request_weights: What a unit of probability counts in a row, where the fit is for requests.
        fading: How often the count of an old row halved over the length of the log, by objective;
            none where the log told no times.
    """

    heads: Heads
    request_weights: RequestWeights | None = None
    fading: tuple[float, ...] = ()

    @staticmethod
    def sizes(M: int, slots: tuple[int, ...]) -> dict[str, int]:
        """Return the named sizes of the stored arrays."""
        return {**head_sizes(M, slots), "terms": term_count(M)}

    def check(self, M: int, slots: tuple[int, ...]) -> None:  # noqa: ARG002
        """Refuse stored heads of other context values than the model has."""
        if not self.heads.slots == self.heads.residual.slots == slots:
            raise DataError("the heads learned other context values than the model has")

    @cached_property
    def _scorer(self) -> HeadScorer:
        return HeadScorer(self.heads)

    @cached_property
    def _marginal(self) -> MarginalScorer:
        return MarginalScorer(self.heads)

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M), averaged over what is missing."""
        p = self._scorer.probabilities(scores, codes)
        rows = _incomplete(scores)
        if len(rows):
            p[rows] = self._averaged(scores, codes, rows)
        return p

    def fused(self, scores: np.ndarray, codes: np.ndarray, per_unit: np.ndarray) -> np.ndarray:
        """Return Σ_m per_unit_m p_m of each row."""
        fused = self._scorer.fuse(scores, codes, per_unit)
        rows = _incomplete(scores)
        if len(rows):
            fused[rows] = weighted_sum(self._averaged(scores, codes, rows), per_unit)
        return fused

    def _averaged(self, scores: np.ndarray, codes: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return the probabilities of rows that miss a score."""
        own = codes if len(codes) == 1 else codes[rows]
        return self._marginal.probabilities(scores[rows], own)

    def recalibrated(
        self,
        scores: np.ndarray,
        codes: np.ndarray,
        weight: np.ndarray | None,
        share: np.ndarray | None = None,
    ) -> Self:
        """Return the fit for upstream scores that look like these; coefficients stay."""
        heads = recalibrated_heads(self.heads, score_logit(scores), codes, weight, share)
        return replace(self, heads=heads)

    def facts(self) -> dict[str, np.ndarray]:
        """Return what the heads make of each score.

        The share of its variance taken for noise; `slope`, what a standard deviation of its logit
        adds to the head's; `effects`, how many curves, interactions and context effects the
        evidence admitted; `fading`, where the log told times.
        """
        fading = {"fading": np.array(self.fading)} if self.fading else {}
        return {
            "noise_share": self.heads.noise_shares(),
            "slope": self.heads.theta[:, OWN],
            "effects": self.heads.residual.counts(),
            **fading,
        }


@dataclass(frozen=True)
class HarmonRankConfig:
    """The default has nothing to tune: the evidence chooses how far each part is shrunk.

    Attributes:
        optimise: The AUC to fit for: within 'requests', over 'all' rows, or 'auto': within requests
            where the schema names them and all objectives are plain events (docs/per-request.md).
    """

    name: ClassVar[str] = "harmonrank"
    traits: ClassVar[Traits] = Traits(
        missing=True, validates=False, requests=True, workers=True, values=MOST_VALUES
    )
    state: ClassVar[type] = DefaultFit

    optimise: Literal["auto", "all", "requests"] = "auto"

    def fit(self, rows: TrainingRows) -> DefaultFit:
        """Fit coordinates, their density, linear heads and what these leave unexplained."""
        from harmonrank.model.linear.averaging import fit_averaged
        from harmonrank.model.linear.fading import faded

        if self.optimise == "requests":
            rows.schema.require_plain("A fit with optimise='requests'")
            if rows.schema.value:
                raise UsageError(
                    "A fit with optimise='requests' ranks by weights on AUC within requests; "
                    "values per event have a best score of their own: leave one of them out."
                )
        shared = with_label_shares(rows.train, rows.schema, score_bins(rows))
        shared, fading = faded(shared, rows.rows, rows.slots)
        steps = lambda *numbers: rows.on_event(FitStep(*numbers))  # noqa: E731
        heads, unseen = fit_averaged(shared, rows.slots, steps)
        within = self.optimise != "all" and rows.schema.plain and not rows.schema.value
        weights = _for_requests(unseen, rows) if within and unseen else None
        return DefaultFit(heads, weights, tuple(fading.tolist()))


class HarmonRank(Method):
    """The default method: s = Σ_m w_m p_m / (π_m(1−π_m)) with p_m from evidence-shrunk heads.

    Each head starts from a plain calibration of its own score and moves away from it, by what
    the other scores and the context say, only as far as the training labels prove. See
    docs/default-method.md for the maths.
    """

    Config = HarmonRankConfig


def _for_requests(unseen: "OutOfFold", rows: TrainingRows) -> RequestWeights | None:
    """Return what a unit of probability counts in a row; None if the same in every row."""
    from harmonrank.model.linear.averaging import FEWEST_REQUESTS
    from harmonrank.model.requests.request_fit import fit_request_weights

    some = unseen.rows
    if some.request is None or len(np.unique(some.request)) < FEWEST_REQUESTS:
        return None
    sign = np.where(rows.weights < 0, -1.0, 1.0)
    given = unseen.p, some.request, some.labels, sign, some.weight, unseen.fold
    return fit_request_weights(*given, some.user)


def _incomplete(scores: np.ndarray) -> np.ndarray:
    """Return the rows that miss a score."""
    missing = np.isnan(scores)
    return np.flatnonzero(missing.any(axis=1)) if missing.any() else np.empty(0, np.int64)
