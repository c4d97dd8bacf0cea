"""Reference: what the scores looked like at the fit, given the context."""

__all__ = ["RECENT_ROWS", "Reference", "reference_arrays"]

from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.model.coordinate import logit_of
from harmonrank.model.density.density import MOST_EFFECT
from harmonrank.model.density.spread import Spread
from harmonrank.model.missing.density_fit import fit_incomplete_density
from harmonrank.support.storage.arrays import Array

RECENT_ROWS = 200_000
"""Scores are measured on at most so many rows, drawn at random."""

_MOST_VALUES = 100  # of a context feature; rarer ones share the slot of the unknown


@dataclass(frozen=True)
class Reference:
    """Mean and spread of each score's logit in each context; effects of features add up.

    Effects are shrunk to 0, so a context with few rows is taken for an average one.

    Attributes:
        encoder: Of the context.
        base: (M,) mean logit.
        mean: (slots, M) what each context value adds to it.
        log_variance: (M,) of the deviation from the mean.
        spread: (slots, M) what each context value adds to the log variance.
        correlation: (M, M) of the deviations.
        middle: (M,) median of the standardised deviations.
        width: (M,) their width (see `Spread`); 0 of a score that never had more than one value.
        constant: (M,) whether nearly all rows had one value, 0 or 1.
    """

    encoder: ContextEncoder
    base: np.ndarray
    mean: np.ndarray
    log_variance: np.ndarray
    spread: np.ndarray
    correlation: np.ndarray
    middle: np.ndarray
    width: np.ndarray
    constant: np.ndarray

    @classmethod
    def of(cls, log: Log, encoder: ContextEncoder | None = None) -> Self:
        """Measure the scores of rows that count, at most `RECENT_ROWS` of them.

        A missing score does not count.
        """
        log = log.sampled(RECENT_ROWS)
        encoder = encoder or ContextEncoder.fit(log.context, _MOST_VALUES)
        # Rows that were not looked at have scores too, so places change nothing here.
        logits, weight = logit_of(log.scores), log.own_weight
        raw = Spread.of(logits, weight)
        codes = log.codes(encoder)
        # Effects on the whole variance: plain, and good enough to see that scores have moved.
        given = encoder.slots, weight, np.zeros(logits.shape[1])
        density = fit_incomplete_density(raw.clipped(logits), codes, *given)
        deviation = np.exp(density.log_variance / 2)
        M = len(density.base)
        found = cls(
            encoder=encoder,
            base=density.base,
            mean=density.mean,
            log_variance=density.log_variance,
            spread=density.spread,
            correlation=density.covariance / np.outer(deviation, deviation),
            middle=np.zeros(M),
            width=np.ones(M),
            constant=np.zeros(M),
        )
        now, alive = Spread.of(found.deviations(log), weight), raw.width > 0
        return replace(
            found,
            middle=np.where(alive, now.middle, 0.0),
            width=np.where(alive, now.width, 0.0),
            constant=(~alive).astype(np.float64),
        )

    def remeasured(self, log: Log) -> Self:
        """Return the reference of newer rows; a score that lost its spread keeps its units."""
        now = type(self).of(log, self.encoder)
        lost = now.constant > 0
        return replace(
            now,
            log_variance=np.where(lost, self.log_variance, now.log_variance),
            spread=np.where(lost, self.spread, now.spread),
            correlation=np.where(lost[:, None] | lost, self.correlation, now.correlation),
            width=np.where(lost, self.width, now.width),
        )

    def codes(self, log: Log) -> np.ndarray:
        """Return the context codes of rows."""
        return log.codes(self.encoder)

    def place(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the median logit and its standard deviation in the context of each row."""
        first = np.cumsum([0, *self.encoder.slots])[:-1]
        centre = np.tile(self.base, (len(codes), 1))
        effect = np.zeros_like(centre)
        for feature, start in enumerate(first):
            centre += self.mean[start + codes[:, feature]]
            effect += self.spread[start + codes[:, feature]]
        np.clip(effect, -MOST_EFFECT, MOST_EFFECT, out=effect)
        deviation = np.exp((self.log_variance + effect) / 2)
        return centre + self.middle * deviation, self.width * deviation

    def deviations(self, log: Log) -> np.ndarray:
        """Return how far each logit is from its median, in standard deviations, (rows, M)."""
        centre, deviation = self.place(self.codes(log))
        away: np.ndarray = (logit_of(log.scores) - centre) / np.where(deviation > 0, deviation, 1.0)
        return away

    def arrays(self, prefix: str) -> dict[str, np.ndarray]:
        """Return what `restored` reads, beside the encoder."""
        return {f"{prefix}/{name}": getattr(self, name) for name in _ARRAYS}

    @classmethod
    def restored(cls, encoder: ContextEncoder, prefix: str, arrays: dict[str, np.ndarray]) -> Self:
        """Take a reference out of the arrays of a saved model."""
        return cls(encoder, *(arrays.pop(f"{prefix}/{name}") for name in _ARRAYS))


def reference_arrays(prefix: str, M: int, slots: int) -> dict[str, Array]:
    """Declare the arrays of a stored `Reference`."""
    each, effect = Array((M,), low=-1e6, high=1e6), Array((slots, M), low=-1e6, high=1e6)
    declared = dict.fromkeys(_ARRAYS, each) | {
        "mean": effect,
        "log_variance": Array((M,), low=-100.0, high=100.0),
        "spread": effect,
        "correlation": Array((M, M), low=-1.001, high=1.001),
        "width": Array((M,), low=0.0, high=1e6),
        "constant": Array((M,), low=0.0, high=1.0),
    }
    return {f"{prefix}/{name}": array for name, array in declared.items()}


_ARRAYS = tuple(field.name for field in fields(Reference) if field.name != "encoder")
