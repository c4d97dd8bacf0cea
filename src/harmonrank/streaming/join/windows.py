"""Windows: how long a stream waits, for feedback and for events that are out of order."""

__all__ = ["Windows", "parse_duration"]

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated

from msgspec import Meta

from harmonrank.support.errors import UsageError, did_you_mean, shown
from harmonrank.support.options import check_fields

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_LONGEST = 366 * 86_400

Wait = Annotated[float, Meta(ge=0, le=_LONGEST)]


@dataclass(frozen=True, kw_only=True)
class Windows:
    """How time is cut into intervals, and how long each waits for what belongs to it.

    >>> windows = Windows(windows={"buy": 86_400})
    >>> windows.of("buy"), windows.of("like")
    (86400.0, 3600.0)

    Attributes:
        every: Seconds of an interval; intervals begin at its multiples since 1970, UTC.
        lateness: Seconds that the watermark stays behind the newest event.
        window: Seconds after an exposure in which feedback counts.
        windows: The same for single objectives.
    """

    every: Annotated[float, Meta(ge=1, le=_LONGEST)] = 3600.0
    lateness: Wait = 300.0
    window: Wait = 3600.0
    windows: dict[str, Wait] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_fields("A stream", self)

    def of(self, objective: str) -> float:
        """Return how many seconds after an exposure feedback on an objective counts."""
        return self.windows.get(objective, self.window)

    def longest(self, objectives: Iterable[str]) -> float:
        """Return the longest wait, after which the labels of an interval are known.

        Raises:
            UsageError: A window is given for an objective that there is not.
        """
        known = list(objectives)
        for name in self.windows:
            if name not in known:
                raise UsageError(
                    f"There is a window for '{name}', which is no objective. "
                    f"{did_you_mean(name, known)}"
                )
        return max(self.of(name) for name in known)


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
