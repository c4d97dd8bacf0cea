"""BoardVerdict: who is ahead of whom, by how much and in which objectives, as one sentence."""

__all__ = ["BoardVerdict", "Versus", "percent", "percents", "short", "verdict_of"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from harmonrank.evaluation.entry import Criterion, Entry
from harmonrank.metrics import Interval

DEFAULT = "harmonrank"
"""The method that a verdict is about, where it took part."""

Relation = Literal["ahead", "tied", "behind"]
_NAMED = 6
_LINKS: Mapping[Relation, str] = {"ahead": "ahead of", "tied": "tied with", "behind": "behind"}


@dataclass(frozen=True)
class Versus:
    """How the method that the verdict is about stands to another.

    Attributes:
        words: What a sentence calls the other.
        gap: What decides minus the other's, paired bootstrap.
        gaps: The same of each objective's AUC.
        unwanted: Objectives whose AUC is better if it is less.
        over_all: Where requests decide, the AUC-sum over all rows minus the other's.
        lifts: Events in the first k relative to the other's, −1; empty without requests.
    """

    name: str
    words: str
    gap: Interval
    gaps: Mapping[str, Interval]
    unwanted: tuple[str, ...] = ()
    over_all: Interval | None = None
    lifts: Mapping[str, Interval] = field(default_factory=dict)

    @property
    def relation(self) -> Relation:
        """Whether the interval leaves it ahead or behind; else the rows cannot tell them apart."""
        return relation_of(self.gap)

    @property
    def disagrees(self) -> bool:
        """Whether all rows say the opposite of requests, one of them surely."""
        if self.over_all is None or not self.gap.estimate * self.over_all.estimate < 0:
            return False
        return {self.relation, relation_of(self.over_all)} != {"tied"}

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
            **_difference(self.gap),
            "objectives": {name: _difference(gap) for name, gap in self.gaps.items()},
            "over_all_rows": self.over_all and _difference(self.over_all),
            "disagrees": self.disagrees,
            "events_at_k": {name: _difference(lift) for name, lift in self.lifts.items()},
        }


@dataclass(frozen=True)
class BoardVerdict:
    """A method against the best other one, and against what ranks today.

    Attributes:
        against: The last of them is the one whose objectives or events the sentence counts.
        criterion: What decides.
        k: Events among how many of a request.
    """

    method: str
    against: tuple[Versus, ...]
    criterion: Criterion = "all rows"
    k: int = 10

    @property
    def sentence(self) -> str:
        """The verdict in one sentence, with 95 % intervals; a second where measures disagree."""
        where = {"within requests": "Within requests", "all rows": "Over all rows"}
        first = where.get(self.criterion, f"In value at {self.k}")
        parts = _joined((versus.words, versus.gap) for versus in self.against)
        gains = self._gains() or self._objectives()
        return f"{first} {self.method} is {parts}{gains}.{self._warning()}"

    def _gains(self) -> str:
        """Tell how many events more or less there are in the first k than by the last."""
        last = self.against[-1]
        if self.criterion == "value" or not last.lifts:
            return ""
        told = [
            f"{name} {percent(lift.estimate)}{' (tied)' * (relation_of(lift) == 'tied')}"
            for name, lift in last.lifts.items()
        ]
        more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
        than = f" against {last.words}" if len(self.against) > 1 else ""
        return f"; in the first {self.k}{than}: {', '.join(told[:_NAMED])}{more}"

    def _warning(self) -> str:
        odd = [(v.words, v.over_all) for v in self.against if v.disagrees and v.over_all]
        if not odd:
            return ""
        return (
            f" Over all rows it is {_joined(odd)}: the two measures disagree; a ranking changes "
            "the order within requests only."
        )

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
        (count, word), *others = [some for some in counts if some[0]]
        if word == "tied":
            return "; no objective can be told apart"
        than = f" than {last.words}" if len(self.against) > 1 else ""
        than += " in AUC" if self.criterion == "value" else ""
        first = f"{count} objective{'s' * (count > 1)} {word}{than}"
        return "; " + ", ".join([first, *(f"{n} {word}" for n, word in others)])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "sentence": self.sentence,
            "method": self.method,
            "criterion": self.criterion,
            "k": self.k,
            "against": [versus.to_dict() for versus in self.against],
        }


def _difference(gap: Interval) -> dict[str, Any]:
    estimate, ends = gap.parts
    return {"difference": estimate, "difference_ci": ends}


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
    assert ours.quality is not None
    criterion: Criterion = "value" if ours.by_value else ours.quality.criterion
    return BoardVerdict(method, tuple(against), criterion, ours.k) if against else None


def _versus(ours: Entry, other: Entry, words: str) -> Versus:
    gap, by_request = ours.minus(other), ours.quality and ours.quality.criterion != "all rows"
    assert gap is not None, "both were resampled"
    weights = {} if ours.quality is None else ours.quality.weights
    unwanted = tuple(name for name, weight in weights.items() if weight < 0)
    over_all = ours.minus(other, "all rows") if by_request and not ours.by_value else None
    each, lifts = ours.minus_each(other), ours.lifts(other)
    return Versus(other.name, words, gap, each, unwanted, over_all, lifts)


def _joined(gaps: Iterable[tuple[str, Interval]]) -> str:
    """Say how one stands to some others; a relation that comes again is not said again."""
    parts, before = [], ""
    for words, gap in gaps:
        relation = relation_of(gap)
        link = _LINKS[relation] if relation != before else _LINKS[relation].split()[-1]
        parts.append(_part(link, words, gap))
        before = relation
    return " and ".join(parts)


def _part(link: str, words: str, gap: Interval) -> str:
    relation = relation_of(gap)
    tied = relation == "tied"
    size = short(gap.estimate, sign=True) if tied else short(abs(gap.estimate))
    low, high = (-gap.high, -gap.low) if relation == "behind" else (gap.low, gap.high)
    around = "no interval" if low != low else f"{short(low)} to {short(high)}"
    if tied:
        return f"{link} {words} ({size}, {around})"
    return f"{link} {words} by {size} ({around})"


def percent(share: float) -> str:
    """Return a share as people write a change.

    >>> percent(0.0312), percent(-0.02)
    ('+3.1 %', '−2.0 %')
    """
    return f"{100 * share:+.1f} %".replace("-", "−")


def percents(lift: Interval) -> str:
    """Return a change with its interval.

    >>> percents(Interval(0.0312, -0.01, 0.1, 0.95))
    '+3.1 % (−1.0 to +10.0)'
    """
    low, high = (percent(end).removesuffix(" %") for end in (lift.low, lift.high))
    return f"{percent(lift.estimate)} ({low} to {high})"


def short(value: float, *, sign: bool = False) -> str:
    """Return a difference of AUCs as people write it.

    >>> short(0.00834), short(-0.0021), short(0.0021, sign=True), short(1.5)
    ('.0083', '−.0021', '+.0021', '1.5000')
    """
    digits = f"{abs(value):.4f}"
    before = "−" if value < 0 and float(digits) else "+" * (sign and float(digits) > 0)
    return before + digits.removeprefix("0")
