"""Diff: what is different between two versions."""

__all__ = ["Diff", "diff_of"]

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from harmonrank.data import Source, read_log
from harmonrank.data.reading.tables import column_names
from harmonrank.fusion import Method
from harmonrank.fusion.position import corrected
from harmonrank.metrics import Interval, spearman
from harmonrank.registry.guardrails import change_of, request_change_of
from harmonrank.registry.version import Version
from harmonrank.support.table import Column, Table, Tabular


@dataclass(frozen=True, repr=False)
class Diff(Tabular):
    """Facts of two versions side by side, and how they rank the same rows.

    Attributes:
        facts: Per objective, each fact that differs, of the first and of the second.
        auc: By objective, the change of the AUC from the first to the second on the same rows.
        correlation: Spearman's, of the two fused scores on these rows.
        request_auc: The same change of the AUC within requests, of objectives that have one.
    """

    first: Version
    second: Version
    facts: dict[str, dict[str, tuple[Any, Any]]]
    auc: dict[str, Interval] | None = None
    correlation: float | None = None
    request_auc: dict[str, Interval] = field(default_factory=dict)

    def to_table(self) -> Table:
        """Return a row per fact that differs."""
        a, b = str(self.first.number), str(self.second.number)
        columns = (Column("objective"), Column("fact"), Column(a), Column(b))
        rows: list[tuple[Any, ...]] = [
            ("", what, getattr(self.first, what), getattr(self.second, what))
            for what in ("method", "window", "created")
            if getattr(self.first, what) != getattr(self.second, what)
        ]
        for name, facts in self.facts.items():
            rows += [(name, fact, *pair) for fact, pair in facts.items()]
        return Table(columns, tuple(rows), notes=tuple(self._notes()))

    def _notes(self) -> list[str]:
        notes = [] if self.facts else ["No fact of an objective differs."]
        for where, changes in (("within requests", self.request_auc), ("over all rows", self.auc)):
            for name, moved in (changes or {}).items():
                notes.append(f"AUC of {name} {where}: {moved.estimate:+.4f} ({moved}).")
        if self.correlation is not None:
            notes.append(f"Rank correlation of the fused scores: {self.correlation:.4f}.")
        return notes

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""

        def ends(changes: dict[str, Interval]) -> dict[str, list[float]]:
            return {name: [m.estimate, m.low, m.high] for name, m in changes.items()}

        return {
            "versions": [self.first.to_dict(), self.second.to_dict()],
            "facts": {name: {k: list(v) for k, v in f.items()} for name, f in self.facts.items()},
            "auc": self.auc and ends(self.auc),
            "request_auc": ends(self.request_auc),
            "correlation": self.correlation,
        }


def diff_of(
    versions: tuple[Version, Version], models: tuple[Method, Method], data: Source | None = None
) -> Diff:
    """Compare two versions; with data, also how they rank it, and how well if it has labels."""
    first, second = versions
    facts = _facts(versions, models)
    if data is None:
        return Diff(first, second, facts)
    schema = models[1].schema
    labelled = set(schema.names) <= set(column_names(data))
    log = corrected(read_log(data, schema, labels=labelled))
    old, new = models[0].score(log), models[1].score(log)
    correlation = float(spearman(np.stack([old, new], axis=1))[0, 1])
    if not labelled:
        return Diff(first, second, facts, correlation=correlation)
    areas = {name: change_of(new, old, log, m) for m, name in enumerate(schema.names)}
    changes = ((n, request_change_of(new, old, log, m)) for m, n in enumerate(schema.names))
    within = {name: moved for name, moved in changes if moved is not None}
    return Diff(first, second, facts, areas, correlation, within)


def _facts(
    versions: tuple[Version, Version], models: tuple[Method, Method]
) -> dict[str, dict[str, tuple[Any, Any]]]:
    """Return what differs, by objective and fact; a number that is not known is None."""
    explained = [model.explain() for model in models]
    for facts, version in zip(explained, versions, strict=True):
        metrics = version.metrics or {}
        if metrics.get("request_auc"):
            facts["AUC within requests at publication"] = metrics["request_auc"]
        if metrics:
            facts["AUC at publication"] = metrics["auc"]
    names = list(dict.fromkeys(name for model in models for name in model.schema.names))
    kinds = list(dict.fromkeys(kind for facts in explained for kind in facts))
    differing: dict[str, dict[str, tuple[Any, Any]]] = {}
    for name in names:
        for kind in kinds:
            a, b = (facts.get(kind, {}).get(name) for facts in explained)
            if a != b:
                differing.setdefault(name, {})[kind.replace("_", " ")] = (a, b)
    return differing
