"""Losses, components and buckets: the paper's network with one thing changed."""

__all__ = ["Variants"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from msgspec import Struct

from harmonrank.support.storage import decode
from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import PUBLISHED_METHOD, Experiment, Results, Study, minus
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable

_PUBLISHED = FIGURES["main"]["elive-5"][PUBLISHED_METHOD]


class _Change(Struct, forbid_unknown_fields=True):
    """A change of the published method, what the paper has for it, and the claim against it."""

    name: str
    claim: str
    paper: float | None = None
    method: str = PUBLISHED_METHOD
    source: Literal["paper", "ours"] = "paper"
    options: dict[str, Any] = {}


class _Kind(Struct, forbid_unknown_fields=True):
    """Changes of one kind, and the options of the published method they are compared with."""

    title: str
    whole: str
    changes: list[_Change]
    note: str = ""
    options: dict[str, Any] = {}


_KINDS = decode(FIGURES["variants"], dict[str, _Kind], "figures.toml")


def _fits(study: Study, method: str, options: Mapping[str, Any]) -> list[FitCell]:
    """Return the cells of a method; TOML has no None, so it is the text 'none' there."""
    known = {name: None if value == "none" else value for name, value in options.items()}
    return study.fits(method, options=known)


@dataclass(frozen=True)
class Variants(Experiment):
    """The published method and one kind of change: 'losses', 'components' or 'buckets'."""

    key: str

    def cells(self, study: Study) -> list[StudyCell]:
        """Return the published method and its variants."""
        kind = _KINDS[self.key]
        every = [(PUBLISHED_METHOD, kind.options), *((c.method, c.options) for c in kind.changes)]
        return [cell for method, options in every for cell in _fits(study, method, options)]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one kind of change."""
        kind, group = _KINDS[self.key], f"{len(study.data.objectives)} objectives"
        whole, full = _fits(study, PUBLISHED_METHOD, kind.options), study.paper(_PUBLISHED)
        rows, verdicts = [], []
        for change in kind.changes:
            fits, paper = _fits(study, change.method, change.options), study.paper(change.paper)
            rows.append(results.row(group, change.name, paper, fits))
            about = {"paper": minus(full, paper), "source": change.source}
            verdicts.append(results.verdict(change.claim, whole, fits, **about))
        rows.append(results.row(group, kind.whole, full, whole))
        rows += results.ceiling(group, whole)
        notes = [kind.note] if kind.note else []
        return study.table(self.key, kind.title, rows, verdicts, notes)
