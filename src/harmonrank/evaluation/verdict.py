"""BoardVerdict: who is ahead of whom, by how much and in which objectives, as one sentence."""

__all__ = ["BoardVerdict", "Versus", "short", "verdict_of"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from harmonrank.evaluation.entry import Entry
from harmonrank.metrics import Interval

DEFAULT = "harmonrank"
"""The method that a verdict is about, where it took part."""

Relation = Literal["ahead", "tied", "behind"]
_LINKS: Mapping[Relation, str] = {"ahead": "ahead of", "tied": "tied with", "behind": "behind"}


@dataclass(frozen=True)
class Versus:
    """How the method that the verdict is about stands to another.

    Attributes:
        words: What a sentence calls the other.
        gap: Its AUC-sum, or its value at k, minus the other's, paired bootstrap.
        gaps: The same of each objective's AUC.
        unwanted: Objectives whose AUC is better if it is less.
    """

    name: str
    words: str
    gap: Interval
    gaps: Mapping[str, Interval]
    unwanted: tuple[str, ...] = ()

    @property
    def relation(self) -> Relation:
        """Whether the interval leaves it ahead or behind; else the rows cannot tell them apart."""
        return relation_of(self.gap)

    def objectives(self, relation: Relation) -> list[str]:
        """Return the objectives in which it stands that way."""
        turned: dict[Relation, Relation] = {"ahead": "behind", "behind": "ahead", "tied": "tied"}
        return [
            name
            for name, gap in self.gaps.items()
            if relation_of(gap) == (turned[relation] if name in self.unwanted else relation)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "relation": self.relation,
            "difference": self.gap.estimate,
            "difference_ci": [self.gap.low, self.gap.high],
            "objectives": {
                name: {"difference": gap.estimate, "difference_ci": [gap.low, gap.high]}
                for name, gap in self.gaps.items()
            },
        }


@dataclass(frozen=True)
class BoardVerdict:
    """A method against the best other one, and against what ranks today.

    Attributes:
        against: The last of them is the one whose objectives the sentence counts.
        unit: What is compared, where it is not AUC-sum.
    """

    method: str
    against: tuple[Versus, ...]
    unit: str = ""

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with 95 % intervals in brackets."""
        parts, before = [], ""
        for versus in self.against:
            relation = versus.relation
            link = _LINKS[relation] if relation != before else _LINKS[relation].split()[-1]
            parts.append(_part(link, versus))
            before = relation
        unit = f" in {self.unit}" if self.unit else ""
        return f"{self.method} is {' and '.join(parts)}{unit}{self._objectives()}."

    def _objectives(self) -> str:
        """Count the objectives by how they stand to the last of the others."""
        last = self.against[-1]
        if len(last.gaps) < 2:
            return ""
        kinds: list[tuple[Relation, str]] = [
            ("ahead", "better"),
            ("behind", "worse"),
            ("tied", "tied"),
        ]
        counts = [(len(last.objectives(kind)), word) for kind, word in kinds]
        (count, word), *others = [found for found in counts if found[0]]
        if word == "tied":
            return "; no objective can be told apart"
        than = f" than {last.words}" if len(self.against) > 1 else ""
        than += " in AUC" if self.unit else ""
        first = f"{count} objective{'s' * (count > 1)} {word}{than}"
        return "; " + ", ".join([first, *(f"{n} {word}" for n, word in others)])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "sentence": self.sentence,
            "method": self.method,
            "against": [versus.to_dict() for versus in self.against],
        }


def relation_of(gap: Interval) -> Relation:
    """Return how an interval of a difference stands to 0; one that is not known is a tie."""
    if gap.low > 0:
        return "ahead"
    return "behind" if gap.high < 0 else "tied"


def verdict_of(
    entries: Sequence[Entry], baseline: tuple[str, str] | None = None
) -> BoardVerdict | None:
    """Compare our default, or else the first, with the best other and with the baseline.

    Args:
        entries: The best first.
        baseline: The name of the entry that ranks today, and what a sentence calls it.

    Returns:
        None where there is nothing to compare.
    """
    fine = {entry.name: entry for entry in entries if entry.quality is not None}
    today = fine.pop(baseline[0], None) if baseline else None
    if not fine:
        return None
    method = DEFAULT if DEFAULT in fine else next(iter(fine))
    ours = fine.pop(method)
    others = [(name, entry) for name, entry in list(fine.items())[:1]]
    against = [_versus(ours, entry, name) for name, entry in others]
    if today is not None and baseline is not None:
        against.append(_versus(ours, today, baseline[1]))
    unit = f"value at {ours.value.k}" if ours.by_value and ours.value else ""
    return BoardVerdict(method, tuple(against), unit) if against else None


def _versus(ours: Entry, other: Entry, words: str) -> Versus:
    gap = ours.minus(other)
    assert gap is not None, "both have a quality"
    weights = {} if ours.quality is None else ours.quality.weights
    unwanted = tuple(name for name, weight in weights.items() if weight < 0)
    return Versus(other.name, words, gap, ours.minus_each(other), unwanted)


def _part(link: str, versus: Versus) -> str:
    gap = versus.gap
    tied = versus.relation == "tied"
    size = short(gap.estimate, sign=True) if tied else short(abs(gap.estimate))
    low, high = gap.low, gap.high
    if versus.relation == "behind":
        low, high = -high, -low
    around = "no interval" if low != low else f"{short(low)} to {short(high)}"
    if tied:
        return f"{link} {versus.words} ({size}, {around})"
    return f"{link} {versus.words} by {size} ({around})"


def short(value: float, *, sign: bool = False) -> str:
    """Return a difference of AUCs as people write it.

    >>> short(0.00834), short(-0.0021), short(0.0021, sign=True), short(1.5)
    ('.0083', '−.0021', '+.0021', '1.5000')
    """
    digits = f"{abs(value):.4f}"
    before = "−" if value < 0 and float(digits) else "+" * (sign and float(digits) > 0)
    return before + digits.removeprefix("0")
