"""Floors: what the AUC of an objective must not fall below."""

__all__ = ["Floor"]

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from harmonrank.errors import UsageError, did_you_mean

_FORM = re.compile(r"(?P<name>.+?)\s*>=\s*(?P<current>current)?\s*(?P<number>[-+]?\s*[\d.eE-]+)?")


@dataclass(frozen=True)
class Floor:
    """The least AUC of an objective, or the least change of it against the current weights.

    Attributes:
        objective: Its name.
        least: An AUC, or a change of it.
        relative: Whether it is a change.
    """

    objective: str
    least: float
    relative: bool

    @classmethod
    def parse(cls, text: str, names: Sequence[str]) -> Self:
        """Read what --keep says.

        >>> Floor.parse("buy>=0.75", ["buy"])
        Floor(objective='buy', least=0.75, relative=False)
        >>> str(Floor.parse("buy >= current - 0.002", ["buy"]))
        'buy>=current-0.002'

        Raises:
            UsageError: It is no floor, or of an objective that is not there.
        """
        found = _FORM.fullmatch(text.strip())
        wrong = UsageError(
            "--keep takes floors such as buy>=0.75 or like>=current-0.002, with an AUC from 0 to "
            f"1. Got '{text}'."
        )
        if found is None:
            raise wrong
        name, relative, number = found["name"], found["current"] is not None, found["number"]
        try:
            least = float(number.replace(" ", "")) if number else 0.0
        except ValueError:
            raise wrong from None
        low = -1.0 if relative else 0.0
        signed = number is not None and number[0] in "+-"
        if not low <= least <= 1.0 or (number is None and not relative):
            raise wrong
        if relative and number is not None and not signed:
            raise wrong
        if name not in names:
            raise UsageError(
                f"--keep names an unknown objective '{name}'. {did_you_mean(name, names)}"
            )
        return cls(name, least, relative)

    def __str__(self) -> str:
        if not self.relative:
            return f"{self.objective}>={self.least:g}"
        return f"{self.objective}>=current{f'{self.least:+g}' if self.least else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        return {"objective": self.objective, "least": self.least, "relative": self.relative}
