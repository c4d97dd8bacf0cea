"""Tables of AUC-sums: ways to fuse, variants of the paper's network, ever rarer labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from harmonrank.support.storage import decode
from harmonrank_lab.paper_tables import _table
from harmonrank_lab.paper_tables._data import StudyCell
from harmonrank_lab.paper_tables._fit import FitCell
from harmonrank_lab.paper_tables._study import (
    NAMES,
    PUBLISHED_METHOD,
    Experiment,
    Results,
    Study,
    minus,
)
from harmonrank_lab.paper_tables._table import FIGURES, PaperTable, Row, Verdict

_RIVALS = ("mbce", "label-aggregation", "reinforce")
_METHODS = (*_RIVALS, PUBLISHED_METHOD, "harmonrank")
_PUBLISHED = FIGURES["main"]["elive-5"][PUBLISHED_METHOD]
_SKEW_RIVALS = ("mbce", "pairwise-logistic")
_SKEW_METHODS = (*_SKEW_RIVALS, PUBLISHED_METHOD, "harmonrank")
_AS_IS, _ODDS = 1_000, (10_000, 100_000)
_WORDS = {_AS_IS: "as is", 10_000: "1:10⁴", 100_000: "1:10⁵"}


def _main_fits(study: Study) -> dict[tuple[str, ...], dict[str, list[FitCell]]]:
    sets = [names for names in (study.data.three, study.data.objectives) if names is not None]
    return {names: {m: study.fits(m, objectives=names) for m in _METHODS} for names in sets}


class Main(Experiment):
    """Every method on three and on all objectives."""

    key = "main"
    worlds = ("elive", "qkvideo")

    def cells(self, study: Study) -> list[StudyCell]:
        """Return every method on both sets of objectives."""
        return [
            cell for fits in _main_fits(study).values() for each in fits.values() for cell in each
        ]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one data set."""
        rows: list[Row] = []
        verdicts: list[Verdict] = []
        for names, fits in _main_fits(study).items():
            group = f"{len(names)} objectives"
            paper = FIGURES["main"].get(f"{study.data.paper}-{len(names)}", {})
            published, ours = fits[PUBLISHED_METHOD], fits["harmonrank"]
            rows += [results.row(group, NAMES[m], paper.get(m), fits[m]) for m in _METHODS]
            rows += results.ceiling(group, ours)
            for rival in _RIVALS:
                gap = minus(paper.get(PUBLISHED_METHOD), paper.get(rival))
                claim = f"HarmonRank beats {NAMES[rival]}, {group}"
                verdicts.append(results.verdict(claim, published, fits[rival], paper=gap))
            claim = f"our default harmonrank beats the paper's HarmonRank, {group}"
            verdicts.append(results.verdict(claim, ours, published, source="ours"))
        sets = (study.data.three, study.data.objectives)
        notes = [f"{len(names)} objectives: {', '.join(names)}." for names in sets if names]
        whole = _main_fits(study)[study.data.objectives]
        done = {NAMES[m]: cells for m, cells in whole.items() if not results.error(cells)}
        areas = {name: results.areas(cells) for name, cells in done.items()}
        training = {name: results[cells[0]].get("history", ()) for name, cells in done.items()}
        training = {name: epochs for name, epochs in training.items() if epochs}
        return study.table(self.key, rows, verdicts, notes, areas=areas, training=training)


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

    whole: str
    changes: list[_Change]
    options: dict[str, Any] = {}


_KINDS = decode(FIGURES["variants"], dict[str, _Kind], "figures.toml")


def _variant_fits(study: Study, method: str, options: Mapping[str, Any]) -> list[FitCell]:
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
        return [cell for method, options in every for cell in _variant_fits(study, method, options)]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return the table of one kind of change."""
        kind, group = _KINDS[self.key], f"{len(study.data.objectives)} objectives"
        whole, full = _variant_fits(study, PUBLISHED_METHOD, kind.options), study.paper(_PUBLISHED)
        rows, verdicts = [], []
        for change in kind.changes:
            fits = _variant_fits(study, change.method, change.options)
            paper = study.paper(change.paper)
            rows.append(results.row(group, change.name, paper, fits))
            about = {"paper": minus(full, paper), "source": change.source}
            verdicts.append(results.verdict(change.claim, whole, fits, **about))
        rows.append(results.row(group, kind.whole, full, whole))
        rows += results.ceiling(group, whole)
        return study.table(self.key, rows, verdicts)


def _skewed(study: Study) -> str:
    """Return the objective to be thinned out: purchases, or the rarest."""
    names = study.data.objectives
    if "buy" in names:
        return "buy"
    train = study.data.logs(0, names).train
    return names[int(train.prevalence().argmin())]


def _skew_fits(study: Study, method: str, odds: int) -> list[FitCell]:
    if odds == _AS_IS:
        return study.fits(method)
    return study.fits(method, skewed=_skewed(study), odds=odds)


def _paper(study: Study, method: str, odds: int) -> float | None:
    return study.paper(FIGURES["skew"].get(method, {}).get(str(odds)))


def _paper_drop(study: Study, method: str, odds: int) -> float | None:
    whole, skewed = _paper(study, method, _AS_IS), _paper(study, method, odds)
    return None if whole is None or skewed is None else 100 * (1 - skewed / whole)


def _drop(study: Study, results: Results, method: str, odds: int) -> np.ndarray | None:
    """Return by how many per cent the AUC-sum falls."""
    whole, skewed = (results.sums(_skew_fits(study, method, each)) for each in (_AS_IS, odds))
    return None if whole is None or skewed is None else 100 * (1 - skewed / whole)


def _skew_verdicts(study: Study, results: Results, odds: int) -> list[Verdict]:
    words, ours = _WORDS[odds], PUBLISHED_METHOD
    drops = {method: _drop(study, results, method, odds) for method in _SKEW_METHODS}
    less = [
        _table.verdict(
            f"HarmonRank drops less than {NAMES[rival]} at {words}",
            minus(drops[rival], drops[ours]),
            paper=minus(_paper_drop(study, rival, odds), _paper_drop(study, ours, odds)),
            unit="%",
        )
        for rival in _SKEW_RIVALS
    ]
    beats = [
        results.verdict(
            f"HarmonRank beats {NAMES[rival]} at {words}",
            _skew_fits(study, ours, odds),
            _skew_fits(study, rival, odds),
            paper=minus(_paper(study, ours, odds), _paper(study, rival, odds)),
        )
        for rival in _SKEW_RIVALS
    ]
    claim = f"our default harmonrank drops less than the paper's HarmonRank at {words}"
    difference = minus(drops[ours], drops["harmonrank"])
    return [*less, *beats, _table.verdict(claim, difference, unit="%", source="ours")]


def _skew_facts(study: Study, results: Results) -> dict[str, str]:
    """Return the thinned objective, and how many positives each skew leaves of it."""
    rare = _skewed(study)
    column, kept = study.data.objectives.index(rare), []
    for odds, words in _WORDS.items():
        fitted = results[_skew_fits(study, "harmonrank", odds)[0]]
        if "positives" in fitted:
            kept.append(f"{words} {fitted['positives'][column]:,}")
    return {"rare": rare, "kept": ", ".join(kept)}


class Skew(Experiment):
    """Each method at each skew."""

    key = "skew"

    def cells(self, study: Study) -> list[StudyCell]:
        """Return each method at each skew."""
        return [
            c
            for method in _SKEW_METHODS
            for odds in _WORDS
            for c in _skew_fits(study, method, odds)
        ]

    def table(self, study: Study, results: Results) -> PaperTable:
        """Return AUC-sums, then the drops."""
        rows = [
            results.row(words, NAMES[m], _paper(study, m, odds), _skew_fits(study, m, odds))
            for odds, words in _WORDS.items()
            for m in _SKEW_METHODS
        ]
        for odds in _ODDS:
            for m in _SKEW_METHODS:
                paper, drop = _paper_drop(study, m, odds), _drop(study, results, m, odds)
                about = (f"drop at {_WORDS[odds]}", NAMES[m], "%", paper)
                rows.append(Row(*about, _table.known_estimate(drop)))
        verdicts = [v for odds in _ODDS for v in _skew_verdicts(study, results, odds)]
        return study.table(self.key, rows, verdicts, facts=_skew_facts(study, results))
