"""Losses, components and buckets: the paper's network with one thing changed."""

__all__ = ["Variants"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from harmonrank.fusion import method_class
from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import NAMES, Experiment, Results, Study, minus
from harmonrank_lab.paper_tables._table import BUCKETS, COMPONENTS, LOSSES, PaperTable, verdict

_METHOD = "harmonrank-paper"
_OWN_BUCKETS = method_class(_METHOD).Config.buckets


@dataclass(frozen=True)
class _Variant:
    """A change of the published method, what the paper has for it, and the claim against it."""

    name: str
    paper: float | None
    claim: str
    method: str = _METHOD
    options: tuple[tuple[str, Any], ...] = ()
    source: Literal["paper", "ours"] = "paper"


def _buckets(count: int | None, scale: str = "raw", *, interpolate: bool = False) -> Any:
    return (("buckets", count), ("interpolate", interpolate), ("scale", scale))


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
_AS_PRINTED = _Variant(
    "soft ranks, every pair the same (as printed)",
    None,
    "counting each objective's pairs as one AUC beats the loss as printed",
    options=(("pairs", "published"),),
    source="ours",
)
_SMOOTH = _Variant(
    f"{_OWN_BUCKETS} interpolated, on the logit",
    None,
    "300 buckets of the raw score beat few that are interpolated on the logit",
    options=_buckets(_OWN_BUCKETS, "logit", interpolate=True),
    source="ours",
)
_VARIANTS: Mapping[str, list[_Variant]] = {
    "losses": [
        _Variant(NAMES[method], LOSSES[method], f"the rank loss beats {NAMES[method]}", method)
        for method in LOSSES
        if method != _METHOD
    ],
    "components": [
        _Variant(
            f"without {words}",
            COMPONENTS[switch],
            _CLAIMS.get(switch, f"the {words} helps"),
            options=((switch, False),),
        )
        for switch, words in _WITHOUT.items()
    ],
    "buckets": [
        _Variant(
            f"{count} buckets" if count else "no buckets",
            figure,
            f"300 buckets beat {count or 'none'}",
            options=_buckets(count),
        )
        for count, figure in BUCKETS.items()
        if count != 300
    ],
}
_VARIANTS["losses"].append(_AS_PRINTED)
_VARIANTS["buckets"].append(_SMOOTH)
# What the others are compared with.
_WHOLE = {"buckets": dict(_buckets(300))}
_NOTES = {
    "losses": "As printed, the paper's loss drops 1/(n⁺n⁻) and counts every pair the same.",
    "buckets": "Of the raw score, ⌊s·B⌋; without any, it enters itself, times a learned vector.",
}


def _fits(study: Study, variant: _Variant) -> list[FitCell]:
    return study.fits(variant.method, options=dict(variant.options))


@dataclass(frozen=True)
class Variants(Experiment):
    """The published method and one kind of change: 'losses', 'components' or 'buckets'."""

    key: str

    def cells(self, study: Study) -> list[StudyCell]:
        """Return the published method and its variants."""
        fits = [self._whole(study), *(_fits(study, variant) for variant in _VARIANTS[self.key])]
        return [cell for each in fits for cell in each]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one kind of change."""
        group = f"{len(study.data.objectives)} objectives"
        whole = self._whole(study)
        full = LOSSES[_METHOD]
        rows, verdicts = [], []
        for variant in _VARIANTS[self.key]:
            fits = _fits(study, variant)
            printed = {} if variant.paper is None else {variant.name: variant.paper}
            paper = study.paper(printed, variant.name)
            rows.append(results.row(group, variant.name, paper, fits))
            gap = None if paper is None else full - paper
            difference = minus(results.sums(whole), results.sums(fits))
            verdicts.append(verdict(variant.claim, difference, paper=gap, source=variant.source))
        name = {"losses": "soft ranks (HarmonRank)", "buckets": "300 buckets"}.get(
            self.key, "all of it"
        )
        rows.append(results.row(group, name, study.paper({0: full}, 0), whole))
        rows += results.ceiling(group, whole)
        notes = [_NOTES[self.key]] if self.key in _NOTES else []
        return study.table(self.key, _TITLES[self.key], rows, verdicts, notes)

    def _whole(self, study: Study) -> list[FitCell]:
        """Return what the variants are compared with."""
        return study.fits(_METHOD, options=_WHOLE.get(self.key))
