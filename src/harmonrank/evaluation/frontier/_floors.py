"""Floors: what an objective's AUC or events must not fall below, or of an unwanted one exceed."""

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
_FIRST = re.compile(r"(?P<name>.+?)\s*@\s*(?P<k>[1-9]\d{0,5})")


@dataclass(frozen=True)
class Floor:
    """The least AUC of an objective, or the fewest events in the first k, or the least change.

    Attributes:
        objective: Its name.
        least: The figure, or a change of it.
        relative: Whether it is a change.
        unwanted: Whether the objective is: its figure, or the change, is then the most allowed.
        against: What a change is against: the 'current' weights, or the score that ranks 'today'.
        k: Events per request among so many are meant; None means the AUC.
    """

    objective: str
    least: float
    relative: bool
    unwanted: bool = False
    against: str = CURRENT
    k: int | None = None

    @classmethod
    def parse(cls, text: str, names: Sequence[str], unwanted: Sequence[str] = ()) -> Self:
        """Read what --keep says.

        >>> Floor.parse("buy>=0.75", ["buy"]).least
        0.75
        >>> str(Floor.parse("buy @ 10 >= today - 0.002", ["buy"]))
        'buy@10>=today-0.002'

        Raises:
            UsageError: It is no floor, or of an objective that is not there.
        """
        parts = _FORM.fullmatch(text.strip())
        wrong = UsageError(
            "--keep takes floors such as buy>=0.75 or like>=current-0.002, or today-0.002 with "
            "--baseline, with an AUC from 0 to 1; click@10>=today of the events in the first 10; "
            f"of an unwanted objective report<=0.3. Got '{text}'."
        )
        if parts is None:
            raise wrong
        name, relative, number = parts["name"], parts["against"] is not None, parts["number"]
        first, k = None if name in names else _FIRST.fullmatch(name), None
        if first is not None:
            name, k = first["name"], int(first["k"])
        try:
            least = float(number.replace(" ", "")) if number else 0.0
        except ValueError:
            raise wrong from None
        most = 1.0 if k is None else float("inf")
        signed = number is not None and number[0] in "+-"
        if not (-most if relative else 0.0) <= least <= most or (number is None and not relative):
            raise wrong
        if relative and number is not None and not signed:
            raise wrong
        if name not in names:
            raise UsageError(
                f"--keep names an unknown objective '{name}'. {did_you_mean(name, names)}"
            )
        against = name in unwanted
        if against != (parts["side"] == "<"):
            what = "is unwanted, so it is kept below a bound" if against else "is wanted"
            side = "<=" if against else ">="
            raise UsageError(f"--keep: '{name}' {what}; write {name}{side}… Got '{text}'.")
        return cls(name, least, relative, against, parts["against"] or CURRENT, k)

    def __str__(self) -> str:
        of = self.objective if self.k is None else f"{self.objective}@{self.k}"
        start = f"{of}{'<=' if self.unwanted else '>='}"
        if not self.relative:
            return f"{start}{self.least:g}"
        return f"{start}{self.against}{f'{self.least:+g}' if self.least else ''}"

    def to_dict(self) -> dict[str, Any]:
        """Return JSON parts."""
        bound = "most" if self.unwanted else "least"
        parts = {"objective": self.objective, "k": self.k, bound: self.least}
        parts["relative"] = self.relative
        return {**parts, "against": self.against if self.relative else None}
