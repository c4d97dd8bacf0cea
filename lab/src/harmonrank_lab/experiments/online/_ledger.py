"""Ledger: who was shown how much and what they did, and what they would have done."""

__all__ = ["Ledger"]

from collections.abc import Sequence

import numpy as np
import polars as pl

from harmonrank_lab.experiments.ab import Lift, lift_of, paired_log_ratio

LEVEL = 0.95


class Ledger:
    """Sums by user and day.

    Attributes:
        frames: A table per day with a row per user who came.
        expected: A list per day: per arm (users, objectives), what all users would have done in
            this arm, by true chance.
    """

    def __init__(self, users: int, objectives: tuple[str, ...], arms: Sequence[str]) -> None:
        self._objectives, self._arms = objectives, tuple(arms)
        self._shape = (users, len(objectives))
        self.frames: list[pl.DataFrame] = []
        self.expected: list[dict[str, np.ndarray]] = []
        self._clear()

    def _clear(self) -> None:
        self._shown, self._came = np.zeros(self._shape[0], np.int64), np.zeros(self._shape, int)
        self._would = {name: np.zeros(self._shape) for name in self._arms}

    def saw(self, user: np.ndarray, shown: int, came: np.ndarray) -> None:
        """Add what was shown to the users of some requests, and what they did."""
        np.add.at(self._shown, user, shown)
        np.add.at(self._came, user, came)

    def would(self, arm: str, user: np.ndarray, chance: np.ndarray) -> None:
        """Add what the users of all requests would have done in an arm, by true chance."""
        np.add.at(self._would[arm], user, chance)

    def end_day(self, day: int, names: np.ndarray) -> None:
        """Close a day; `names` has the arm of every user."""
        came = np.flatnonzero(self._shown)
        columns = {
            "user_id": came,
            "arm": names[came],
            "day": np.full(len(came), day, np.int16),
            "impressions": self._shown[came],
        }
        columns |= {name: self._came[came, m] for m, name in enumerate(self._objectives)}
        self.frames.append(pl.DataFrame(columns))
        self.expected.append(self._would)
        self._clear()

    def log(self) -> pl.DataFrame:
        """Return the days so far as one table."""
        return pl.concat(self.frames)

    def exact(self, base: str) -> tuple[Lift, ...]:
        """Return the lifts by true chance, of the same users in all arms."""
        total = {arm: sum(day[arm] for day in self.expected) for arm in self._arms}
        lifts = []
        for arm in self._arms:
            if arm == base:
                continue
            ratios, errors = paired_log_ratio(np.asarray(total[base]), np.asarray(total[arm]))
            lifts += [
                lift_of(arm, name, float(ratio), float(error), LEVEL)
                for name, ratio, error in zip(self._objectives, ratios, errors, strict=True)
            ]
        return tuple(lifts)
