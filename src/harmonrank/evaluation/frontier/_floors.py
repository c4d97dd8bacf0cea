"""Floors: what the AUC of an objective must not fall below, or of an unwanted one not exceed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from harmonrank.evaluation.baseline import TODAY
from harmonrank.support.errors import UsageError, did_you_mean

CURRENT = "current"
"""The weights of the model, as floors name them; what ranks today is `TODAY`."""

_FORM = re.compile(
    rf"(?P<name>.+?)\s*(?P<side>[<>])=\s*(?P<against>{CURRENT}|{TODAY})?\s*"
    r"(?P<number>[-+]?\s*[\d.eE-]+)?"
)


@dataclass(frozen=True)
class Floor:
    """The least AUC of an objective, or the least change of it.

    Attributes:
        objective: Its name.
        least: An AUC, or a change of it.
        relative: Whether it is a change.
        unwanted: Whether the objective is: its AUC, or the change, is then the most allowed.
        against: What a change is against: the 'current' weights, or the score that ranks 'today'.
    """

    objective: str
    least: float
    relative: bool
    unwanted: bool = False
    against: str = CURRENT

    @classmethod
    def parse(cls, text: str, names: Sequence[str], unwanted: Sequence[str] = ()) -> Self:
        """Read what --keep says.

        >>> Floor.parse("buy>=0.75", ["buy"])
        Floor(objective='buy', least=0.75, relative=False, unwanted=False, against='current')
        >>> str(Floor.parse("buy >= today - 0.002", ["buy"]))
        'buy>=today-0.002'

        Raises:
            UsageError: It is no floor, or of an objective that is not there.
        """
        found = _FORM.fullmatch(text.strip())
        wrong = UsageError(
            "--keep takes floors such as buy>=0.75 or like>=current-0.002, or today-0.002 with "
            "--baseline, with an AUC from 0 to 1; of an unwanted objective report<=0.3. "
            f"Got '{text}'."
        )
        if found is None:
            raise wrong
        name, relative, number = found["name"], found["against"] is not None, found["number"]
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
        return cls(name, least, relative, against, found["against"] or CURRENT)

    def __str__(self) -> str:
        start = f"{self.objective}{'<=' if self.unwanted else '>='}"
        if not self.relative:
            return f"{start}{self.least:g}"
        return f"{start}{self.against}{f'{self.least:+g}' if self.least else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        bound = "most" if self.unwanted else "least"
        parts = {"objective": self.objective, bound: self.least, "relative": self.relative}
        return {**parts, "against": self.against if self.relative else None}
