"""Windows: how long a stream waits, for feedback and for events that are out of order."""

__all__ = ["Windows", "parse_duration"]

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from harmonrank.support.errors import UsageError, did_you_mean, shown

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST = timedelta(days=366)


@dataclass(frozen=True)
class Windows:
    """How time is cut into intervals, and how long each waits for what belongs to it.

    >>> windows = Windows(wait={"buy": timedelta(hours=24)})
    >>> windows.of("buy"), windows.of("like")
    (datetime.timedelta(days=1), datetime.timedelta(seconds=3600))

    Attributes:
        every: The length of an interval; intervals begin at its multiples since 1970, UTC.
        lateness: How far the watermark stays behind the newest event.
        wait: How long after an exposure feedback on an objective counts.
        otherwise: The same for objectives that `wait` does not name.
    """

    every: timedelta = timedelta(hours=1)
    lateness: timedelta = timedelta(minutes=5)
    wait: Mapping[str, timedelta] = field(default_factory=dict)
    otherwise: timedelta = timedelta(hours=1)

    def __post_init__(self) -> None:
        waits = {f"the window of '{name}'": wait for name, wait in self.wait.items()}
        for name, wait in {"the window": self.otherwise, **waits}.items():
            _check(name, wait, timedelta(0))
        _check("`lateness`", self.lateness, timedelta(0))
        _check("`every`", self.every, timedelta(seconds=1))

    def of(self, objective: str) -> timedelta:
        """Return how long after an exposure feedback on an objective counts."""
        return self.wait.get(objective, self.otherwise)

    def longest(self, objectives: Iterable[str]) -> timedelta:
        """Return the longest wait, after which the labels of an interval are known.

        Raises:
            UsageError: A window is given for an objective that there is not.
        """
        known = list(objectives)
        for name in self.wait:
            if name not in known:
                raise UsageError(
                    f"There is a window for '{name}', which is no objective. "
                    f"{did_you_mean(name, known)}"
                )
        return max(self.of(name) for name in known)


def _check(name: str, value: timedelta, least: timedelta) -> None:
    if not isinstance(value, timedelta) or not least <= value <= _LONGEST:
        raise UsageError(
            f"{name[:1].upper()}{name[1:]} must be a time from {least} to 366 days. "
            f"Got {shown(value)}."
        )


def parse_duration(text: str, option: str) -> timedelta:
    """Read '90s', '5m', '1h', '1.5h' or '2d'.

    >>> parse_duration("24h", "--window")
    datetime.timedelta(days=1)
    """
    found = re.fullmatch(r"(\d{1,9}(?:\.\d{1,6})?)([smhd])", text.strip())
    if found is None:
        raise UsageError(
            f"{option} must be a number with s, m, h or d, as in 90s, 5m, 1h or 2d. "
            f"Got {shown(text)}."
        )
    return timedelta(**{_UNITS[found[2]]: float(found[1])})
