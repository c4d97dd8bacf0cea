"""Losses, components and buckets: the paper's network with one thing changed."""

__all__ = ["Variants"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harmonrank.evaluation.reproduction._cell import Cell
from harmonrank.evaluation.reproduction._experiment import Experiment
from harmonrank.evaluation.reproduction._fit import FitCell
from harmonrank.evaluation.reproduction._study import NAMES, Results, Study, minus
from harmonrank.evaluation.reproduction._table import PaperTable
from harmonrank.evaluation.reproduction.claims import BUCKETS, COMPONENTS, LOSSES, verdict

_METHOD = "harmonrank-paper"


@dataclass(frozen=True)
class _Variant:
    """A change of the published method, what the paper has for it, and the claim against it."""

    name: str
    paper: float
    claim: str
    method: str = _METHOD
    options: tuple[tuple[str, Any], ...] = ()


_WITHOUT = {
    "self_attention": "self-attention",
    "personalised": "personalised features",
    "cross_attention": "cross-attention (concatenated)",
    "gate": "gate",
    "linear": "linear path",
}
_CLAIMS = {
    "self_attention": "self-attention helps",
    "personalised": "personalised features help",
    "cross_attention": "cross-attention beats concatenation",
}
_TITLES = {
    "losses": "Losses for AUC",
    "components": "Components of the network",
    "buckets": "Buckets per score",
}
_VARIANTS: Mapping[str, tuple[_Variant, ...]] = {
    "losses": tuple(
        _Variant(NAMES[method], LOSSES[method], f"the rank loss beats {NAMES[method]}", method)
        for method in LOSSES
        if method != _METHOD
    ),
    "components": tuple(
        _Variant(
            f"without {words}",
            COMPONENTS[switch],
            _CLAIMS.get(switch, f"the {words} helps"),
            options=((switch, False),),
        )
        for switch, words in _WITHOUT.items()
    ),
    "buckets": tuple(
        _Variant(
            f"{count} buckets" if count else "no buckets",
            figure,
            f"300 buckets beat {count or 'none'}",
            options=(("buckets", count),),
        )
        for count, figure in BUCKETS.items()
        if count != 300
    ),
}
_NOTES = {
    "buckets": "Without buckets the score itself enters, times a learned vector.",
}


def _fits(study: Study, variant: _Variant) -> list[FitCell]:
    return study.fits(variant.method, options=dict(variant.options))


@dataclass(frozen=True)
class Variants(Experiment):
    """The published method and one kind of change: 'losses', 'components' or 'buckets'."""

    key: str

    def cells(self, study: Study) -> list[Cell]:
        """Return the published method and its variants."""
        fits = [study.fits(_METHOD), *(_fits(study, variant) for variant in _VARIANTS[self.key])]
        return [cell for each in fits for cell in each]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one kind of change."""
        group = f"{len(study.data.objectives)} objectives"
        whole = study.fits(_METHOD)
        full = LOSSES[_METHOD]
        rows, verdicts = [], []
        for variant in _VARIANTS[self.key]:
            fits = _fits(study, variant)
            paper = study.paper({variant.name: variant.paper}, variant.name)
            rows.append(results.row(group, variant.name, paper, fits))
            gap = None if paper is None else full - paper
            difference = minus(results.sums(whole), results.sums(fits))
            verdicts.append(verdict(variant.claim, difference, paper=gap))
        name = {"losses": "soft ranks (HarmonRank)", "buckets": "300 buckets"}.get(
            self.key, "all of it"
        )
        rows.append(results.row(group, name, study.paper({0: full}, 0), whole))
        rows += results.ceiling(group, whole)
        notes = [_NOTES[self.key]] if self.key in _NOTES else []
        return study.table(self.key, _TITLES[self.key], rows, verdicts, notes)
