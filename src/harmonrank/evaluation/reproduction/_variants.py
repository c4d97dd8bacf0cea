"""Losses, components and buckets: the paper's network with one thing changed."""

__all__ = ["cells", "tables"]

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harmonrank.evaluation.reproduction._cell import Cell
from harmonrank.evaluation.reproduction._fit import FitCell
from harmonrank.evaluation.reproduction._plan import NAMES, Plan, Results, minus
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


def _fits(plan: Plan, variant: _Variant) -> list[FitCell]:
    return plan.fits(variant.method, options=dict(variant.options))


def cells(plan: Plan, key: str) -> list[Cell]:
    """Return the published method and its variants."""
    fits = [plan.fits(_METHOD), *(_fits(plan, variant) for variant in _VARIANTS[key])]
    return [cell for each in fits for cell in each]


def tables(plan: Plan, key: str, results: Results) -> list[PaperTable]:
    """Return the table of one kind of change."""
    group = f"{len(plan.data.objectives)} objectives"
    whole = plan.fits(_METHOD)
    full = LOSSES[_METHOD]
    rows, verdicts = [], []
    for variant in _VARIANTS[key]:
        fits = _fits(plan, variant)
        paper = plan.paper({variant.name: variant.paper}, variant.name)
        rows.append(results.row(group, variant.name, paper, fits))
        gap = None if paper is None else full - paper
        difference = minus(results.sums(whole), results.sums(fits))
        verdicts.append(verdict(variant.claim, difference, paper=gap))
    name = {"losses": "soft ranks (HarmonRank)", "buckets": "300 buckets"}.get(key, "all of it")
    rows.append(results.row(group, name, plan.paper({0: full}, 0), whole))
    rows += results.ceiling(group, whole)
    notes = [_NOTES[key]] if key in _NOTES else []
    return [plan.table(key, _TITLES[key], rows, verdicts, notes)]
