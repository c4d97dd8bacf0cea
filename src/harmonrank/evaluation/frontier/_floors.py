"""Floors: what the AUC of an objective must not fall below, or of an unwanted one not exceed."""

__all__ = ["Floor"]

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from harmonrank.support.errors import UsageError, did_you_mean

_FORM = re.compile(
    r"(?P<name>.+?)\s*(?P<side>[<>])=\s*(?P<current>current)?\s*(?P<number>[-+]?\s*[\d.eE-]+)?"
)


@dataclass(frozen=True)
class Floor:
    """The least AUC of an objective, or the least change of it against the current weights.

    Attributes:
        objective: Its name.
        least: An AUC, or a change of it.
        relative: Whether it is a change.
        unwanted: Whether the objective is: its AUC, or the change, is then the most allowed.
    """

    objective: str
    least: float
    relative: bool
    unwanted: bool = False

    @classmethod
    def parse(cls, text: str, names: Sequence[str], unwanted: Sequence[str] = ()) -> Self:
        """Read what --keep says.

        >>> Floor.parse("buy>=0.75", ["buy"])
        Floor(objective='buy', least=0.75, relative=False, unwanted=False)
        >>> str(Floor.parse("buy >= current - 0.002", ["buy"]))
        'buy>=current-0.002'

        Raises:
            UsageError: It is no floor, or of an objective that is not there.
        """
        found = _FORM.fullmatch(text.strip())
        wrong = UsageError(
            "--keep takes floors such as buy>=0.75 or like>=current-0.002, with an AUC from 0 to "
            f"1; of an unwanted objective report<=0.3. Got '{text}'."
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
        against = name in unwanted
        if against != (found["side"] == "<"):
            what = "is unwanted, so its AUC is kept below a bound" if against else "is wanted"
            side = "<=" if against else ">="
            raise UsageError(f"--keep: '{name}' {what}; write {name}{side}… Got '{text}'.")
        return cls(name, least, relative, against)

    @property
    def bound(self) -> float:
        """The least AUC, or change of it, of what is wanted: the absence of what is not."""
        if not self.unwanted:
            return self.least
        return -self.least if self.relative else 1 - self.least

    def __str__(self) -> str:
        start = f"{self.objective}{'<=' if self.unwanted else '>='}"
        if not self.relative:
            return f"{start}{self.least:g}"
        return f"{start}current{f'{self.least:+g}' if self.least else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        bound = "most" if self.unwanted else "least"
        return {"objective": self.objective, bound: self.least, "relative": self.relative}
