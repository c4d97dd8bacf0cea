"""Text: numbers and verdicts of a made-again table as people read them."""

__all__ = ["COUNTS", "SUMMARY", "counts", "estimate", "heading", "number", "sentence", "upper"]

from collections import Counter
from collections.abc import Sequence

from harmonrank_lab.paper_tables import Estimate, Outcome, PaperTable, Verdict

COUNTS: tuple[Outcome, ...] = ("held", "did not hold", "cannot be told")
SUMMARY = (
    "A claim is a difference that should be above 0. It held if its 95 % interval over seeds (and "
    "rows) lies above 0, did not hold if it lies below, else it cannot be told. Of claims about "
    "equals, one in twenty gets a verdict by chance."
)
_FORMATS = {
    "%": ".2f",
    "ms": ".2f",
    "rows/s": ",.0f",
    "parameters": ",.0f",
    "correlation": ".3f",
}
_SUFFIX = {"%": " %", "ms": " ms"}


def number(value: float | None, unit: str, sign: str = "") -> str:
    """Return a number with the digits that its unit deserves.

    >>> number(3.75221, "AUC-sum"), number(273e6, "FLOPs"), number(None, "ms")
    ('3.7522', '273.0M', '–')
    """
    if value is None:
        return "–"
    if unit == "FLOPs":
        return f"{value / 1e6:{sign}.1f}M"
    return f"{value:{sign}{_FORMATS.get(unit, '.4f')}}".replace("-", "−")


def estimate(found: Estimate | None, unit: str, sign: str = "") -> str:
    """Return a mean with half its interval; with one seed, the mean alone.

    >>> estimate(Estimate(3.75, 3.74, 3.76, 3), "AUC-sum")
    '3.7500 ± 0.0100'
    """
    if found is None:
        return "failed"
    mean = number(found.mean, unit, sign)
    return mean if not found.reach else f"{mean} ± {number(found.reach, unit)}"


def sentence(verdict: Verdict) -> str:
    """Return a claim with its verdict and numbers.

    >>> found = Estimate(0.05, 0.04, 0.06, 3)
    >>> sentence(Verdict("A beats B", "paper", "held", "AUC-sum", 0.084, found))
    'Held: A beats B (paper +0.0840, here +0.0500 ± 0.0100).'
    """
    suffix = _SUFFIX.get(verdict.unit, "")
    parts = []
    if verdict.paper is not None:
        parts.append(f"paper {number(verdict.paper, verdict.unit, '+')}{suffix}")
    if verdict.ours is not None:
        parts.append(f"here {estimate(verdict.ours, verdict.unit, '+')}{suffix}")
    numbers = f" ({', '.join(parts)})" if parts else ""
    return f"{upper(verdict.outcome)}: {verdict.claim}{numbers}."


def heading(table: PaperTable) -> str:
    """Return a table's title with the short name of its data and of the protocol."""
    data = table.data.partition(",")[0].partition(" in place")[0].removeprefix("simulated ")
    return f"{table.title} · {data}, {table.settings.partition(':')[0]}"


def upper(text: str) -> str:
    """Return a text that begins a sentence; the rest of it stays as it is."""
    return text[:1].upper() + text[1:]


def counts(tables: Sequence[PaperTable], source: str = "paper") -> dict[Outcome, int]:
    """Return how many claims had each outcome."""
    found = Counter(v.outcome for table in tables for v in table.verdicts if v.source == source)
    return {outcome: found.get(outcome, 0) for outcome in COUNTS}
