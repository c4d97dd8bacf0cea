"""Reference: what scores looked like at the fit, given the context, and how they are matched."""

__all__ = ["FEWEST_RECENT", "RECENT_ROWS", "Recalibration", "Reference", "recent_rows"]

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Self

import numpy as np

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.tables import column_names
from harmonrank.model.density.density import MOST_EFFECT, mixed
from harmonrank.model.density.spread import Spread
from harmonrank.model.missing.density_fit import fit_incomplete_density
from harmonrank.support.errors import DataError
from harmonrank.support.logistic import score_logit, sigmoid
from harmonrank.support.storage.arrays import Array

RECENT_ROWS = 200_000
"""Scores are measured on at most so many rows, drawn at random."""

_Each = Annotated[np.ndarray, Array(("M",), low=-1e6, high=1e6)]
_Effects = Annotated[np.ndarray, Array(("slots", "M"), low=-1e6, high=1e6, least=0)]

FEWEST_RECENT = 1000
"""Fewer rows cannot tell a change from chance."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Mean and spread of each score's logit in each context; effects of features add up.

    Effects are shrunk to 0, so a context with few rows is taken for an average one.

    Attributes:
        first: (features,) the place of each feature's first value among those of all features.
        base: (M,) mean logit.
        mean: (slots, M) what each context value adds to it.
        log_variance: (M,) of the deviation from the mean.
        spread: (slots, M) what each context value adds to the log variance.
        correlation: (M, M) of the deviations.
        middle: (M,) median of the standardised deviations.
        width: (M,) their width (see `Spread`); 0 of a score that never had more than one value.
        constant: (M,) whether nearly all rows had one value, 0 or 1.
    """

    first: Annotated[np.ndarray, Array(("features",), "int64", low=0, rising=True, least=0)]
    base: _Each
    mean: _Effects
    log_variance: Annotated[np.ndarray, Array(("M",), low=-100.0, high=100.0)]
    spread: _Effects
    correlation: Annotated[np.ndarray, Array(("M", "M"), low=-1.001, high=1.001)]
    middle: _Each
    width: Annotated[np.ndarray, Array(("M",), low=0.0, high=1e6)]
    constant: Annotated[np.ndarray, Array(("M",), low=0.0, high=1.0)]

    @classmethod
    def of(
        cls,
        scores: np.ndarray,
        codes: np.ndarray,
        slots: tuple[int, ...],
        weight: np.ndarray | None = None,
    ) -> Self:
        """Measure the scores of rows; a missing score does not count.

        Args:
            scores: (rows, M).
            codes: (rows, features) of the context.
            slots: Codes per feature.
            weight: (rows,) what each counts by itself, whatever its place.
        """
        logits = score_logit(scores)
        raw, M = Spread.of(logits, weight), logits.shape[1]
        # Effects on the whole variance: plain, and good enough to see that scores have moved.
        given = slots, weight, np.zeros(M)
        density = fit_incomplete_density(raw.clipped(logits), codes, *given)
        deviation = np.exp(density.log_variance / 2)
        plain = cls(
            first=density.first,
            base=density.base,
            mean=density.mean,
            log_variance=density.log_variance,
            spread=density.spread,
            correlation=density.covariance / np.outer(deviation, deviation),
            middle=np.zeros(M),
            width=np.ones(M),
            constant=np.zeros(M),
        )
        now, alive = Spread.of(plain.deviations(scores, codes), weight), raw.width > 0
        return replace(
            plain,
            middle=np.where(alive, now.middle, 0.0),
            width=np.where(alive, now.width, 0.0),
            constant=(~alive).astype(np.float64),
        )

    def followed(self, now: Self, share: np.ndarray) -> Self:
        """Return the reference of newer rows, for each score as far as its share, 0 to 1, says.

        A score that lost its spread keeps its units.
        """
        alive = now.constant == 0
        units = share * alive
        parts = {"base": share, "mean": share, "middle": share, "log_variance": units}
        parts |= {"spread": units, "width": units}
        parts["correlation"] = (1 - np.outer(1 - share, 1 - share)) * np.outer(alive, alive)
        both = ((name, getattr(self, name), getattr(now, name), of) for name, of in parts.items())
        changed = {name: mixed(before, after, of) for name, before, after, of in both}
        return replace(self, constant=np.where(share > 0, now.constant, self.constant), **changed)

    def recoded(self, codes: list[np.ndarray], slots: tuple[int, ...]) -> Self:
        """Return the reference for more context values; those it did not know are average ones.

        Args:
            codes: By feature, the new code of each old one.
            slots: New codes per feature.
        """
        first = np.cumsum([0, *slots])[:-1].astype(np.int64)
        moved = [start + code for start, code in zip(first, codes, strict=True)]
        slot = np.concatenate([np.empty(0, np.int64), *moved])

        def wider(effects: np.ndarray) -> np.ndarray:
            wide = np.zeros((sum(slots), effects.shape[1]))
            wide[slot] = effects
            return wide

        return replace(self, first=first, mean=wider(self.mean), spread=wider(self.spread))

    def place(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the median logit and its standard deviation in the context of each row."""
        centre = np.tile(self.base, (len(codes), 1))
        effect = np.zeros_like(centre)
        for feature, start in enumerate(self.first):
            centre += self.mean[start + codes[:, feature]]
            effect += self.spread[start + codes[:, feature]]
        np.clip(effect, -MOST_EFFECT, MOST_EFFECT, out=effect)
        deviation = np.exp((self.log_variance + effect) / 2)
        return centre + self.middle * deviation, self.width * deviation

    def deviations(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return how far each logit is from its median, in standard deviations, (rows, M)."""
        centre, deviation = self.place(codes)
        away: np.ndarray = (score_logit(scores) - centre) / np.where(deviation > 0, deviation, 1.0)
        return away


@dataclass(frozen=True)
class Recalibration:
    """Matches moments: what any method can do about changed scores without labels.

    With m and d the median and the standard deviation of a score's logit ℓ in the row's context,
    now and at the fit,

        ℓ' = m_fit(c) + d_fit(c) (ℓ − m_now(c)) / d_now(c),

    eq. 11 of docs/default-method.md. A score that has only one value now is taken for the median of
    its context at the fit.

    Attributes:
        fit: Of the rows that the method was fitted on.
        now: Of the rows that it was recalibrated on.
    """

    fit: Reference
    now: Reference

    def scores(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the scores that rows with these codes would have had at the fit, (rows, M)."""
        centre, deviation = self.now.place(codes)
        fit_centre, fit_deviation = self.fit.place(codes)
        alive = (self.now.constant == 0) & (deviation > 0)
        away = (score_logit(scores) - centre) / np.where(alive, deviation, 1.0)
        logits = fit_centre + fit_deviation * np.where(alive, away, 0.0)
        return sigmoid(logits)


def recent_rows(table: Source, schema: Schema) -> Log:
    """Return the rows of a table that count, drawn at random if there are very many.

    They have labels if the table has all of them.

    Raises:
        DataError: There are too few of them.
    """
    log = _with_labels(table, schema) or read_log(table, schema, labels=False, sample_weight=True)
    log = log.counted()
    log.require_scores("recent")
    if log.rows < FEWEST_RECENT:
        raise DataError(
            f"Recalibration needs at least {FEWEST_RECENT:,} recent rows that count to tell a "
            f"change from chance. Got {log.rows:,}; wait for more."
        )
    return log.sampled(RECENT_ROWS)


def _with_labels(table: Source, schema: Schema) -> Log | None:
    """Return the rows with their labels; None if they have none, or not yet all of them."""
    if isinstance(table, Log):
        known = table.labels is not None
    else:
        known = set(schema.names) <= set(column_names(table))
    with suppress(DataError):
        return read_log(table, schema) if known else None
    return None
