"""What a log holds, what to beware of in it, and how far scores moved since training."""

__all__ = ["ContextFacts", "DataFacts", "ObjectiveFacts", "data_facts"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harmonrank.data import Log
from harmonrank.data.context import ContextEncoder
from harmonrank.evaluation.cautions import unseen_shares
from harmonrank.metrics import spearman
from harmonrank.reports.stability import SHOWN_ROWS

_MANY_VALUES = 1000


@dataclass(frozen=True)
class ObjectiveFacts:
    """One objective: its columns, how common it is, and whether its score is of the right size.

    Attributes:
        effective_weight: w/(π(1−π)) as a share of 1.
        one_class: Share of test requests without both a positive and a negative; None without
            requests.
    """

    name: str
    score: str
    weight: float
    effective_weight: float
    positives: int
    prevalence: float
    train_prevalence: float | None
    mean_score: float
    one_class: float | None
    graded: bool = False


@dataclass(frozen=True)
class ContextFacts:
    """One context column: distinct values, and the share of test rows with one never trained on."""

    name: str
    values: int
    most_common: str
    most_common_share: float
    unseen: float | None


@dataclass(frozen=True)
class DataFacts:
    """Rows, requests, objectives, context, correlations and warnings.

    Attributes:
        label_correlation: Spearman's ρ between the labels of the test rows, (M, M).
        truth_correlation: The same of the true probabilities, in a world.
    """

    rows: dict[str, int]
    requests: int | None
    objectives: tuple[ObjectiveFacts, ...]
    context: tuple[ContextFacts, ...]
    label_correlation: tuple[tuple[float, ...], ...]
    score_correlation: tuple[tuple[float, ...], ...]
    truth_correlation: tuple[tuple[float, ...], ...]
    warnings: tuple[str, ...]


def data_facts(
    test: Log,
    train: Log | None = None,
    *,
    effective: Mapping[str, float] | None = None,
    warnings: Sequence[str] = (),
) -> DataFacts:
    """Describe the rows that a result rests on.

    Args:
        test: The rows that were measured.
        train: The rows that were learned from.
        effective: The effective weights of the method that is looked at; of the training rows, or
            else of the test rows, if left out.
        warnings: What was found to be wrong with the rows already.
    """
    objectives = _objectives(test, train, effective)
    context = _context(test, train)
    rows = {} if train is None else {"train": train.rows}
    some = test.sampled(SHOWN_ROWS)
    return DataFacts(
        rows=rows | {"test": test.rows},
        requests=None if test.request is None else len(np.unique(test.request)),
        objectives=objectives,
        context=context,
        label_correlation=_matrix(spearman(some.known_labels())),
        score_correlation=_matrix(spearman(some.scores)),
        truth_correlation=() if some.truth is None else _matrix(spearman(some.truth)),
        warnings=(*warnings, *_warnings(objectives, context)),
    )


def _matrix(values: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.tolist())


def _objectives(
    test: Log, train: Log | None, effective: Mapping[str, float] | None
) -> tuple[ObjectiveFacts, ...]:
    schema, pi = test.schema, test.prevalence()
    shares = _effective(test if train is None else train) if effective is None else effective
    positives = (test.known_labels() > 0).sum(axis=0, dtype=np.int64)
    means = _means(test)
    before = None if train is None else train.prevalence()
    one_class = _one_class(test)
    return tuple(
        ObjectiveFacts(
            name=name,
            score=schema.score_columns[m],
            weight=float(schema.weight_vector[m]),
            effective_weight=shares[name],
            positives=int(positives[m]),
            prevalence=float(pi[m]),
            train_prevalence=None if before is None else float(before[m]),
            mean_score=float(means[m]),
            one_class=None if one_class is None else one_class[m],
            graded=name in schema.graded,
        )
        for m, name in enumerate(schema.names)
    )


def _effective(log: Log) -> dict[str, float]:
    """Return what a unit of probability counts, by the prevalence of some rows."""
    pi, value = log.prevalence(), log.schema.values_with(None)
    effective = log.schema.weight_vector / np.maximum(pi * (1 - pi), 1e-12)
    effective = effective if value is None else value
    shares = effective / np.abs(effective).sum()
    return dict(zip(log.schema.names, shares.tolist(), strict=True))


def _means(log: Log) -> np.ndarray:
    """Return the mean of each score over the rows that have it."""
    known = ~np.isnan(log.scores)
    weight = np.ones(log.rows) if log.sample_weight is None else log.sample_weight
    total = weight @ known
    means: np.ndarray = (weight @ np.where(known, log.scores, 0)) / np.where(total > 0, total, 1)
    return means


def _one_class(log: Log) -> list[float] | None:
    """Return per objective the share of requests whose rows are all or none positive."""
    if log.request is None:
        return None
    _, place, size = np.unique(log.request, return_inverse=True, return_counts=True)
    counts = [np.bincount(place, labels) for labels in (log.known_labels() > 0).T]
    return [float(((count == 0) | (count == size)).mean()) for count in counts]


def _context(test: Log, train: Log | None) -> tuple[ContextFacts, ...]:
    encoder = ContextEncoder.fit((train or test).context)
    codes = test.codes(encoder)
    unseen = {} if train is None else unseen_shares(train, test)
    facts = []
    for feature, name in enumerate(encoder.names):
        column = codes[:, feature]
        code = int(np.bincount(column).argmax())
        facts.append(
            ContextFacts(
                name=name,
                values=(train or test).context[name].n_unique(),
                most_common=encoder.label(feature, code),
                most_common_share=float((column == code).mean()),
                unseen=unseen.get(name),
            )
        )
    return tuple(facts)


def _warnings(
    objectives: tuple[ObjectiveFacts, ...], context: tuple[ContextFacts, ...]
) -> list[str]:
    """Return a line for each kind of oddity, with the objectives or columns that show it."""
    kinds = {
        "Mean score and share of positives, where upstream is not calibrated: {}.": [
            f"{o.name} {o.mean_score:.2%} and {o.prevalence:.2%}"
            for o in objectives
            if not o.graded and not 0.5 <= o.mean_score / max(o.prevalence, 1e-12) <= 2
        ],
        "Share of positives in training and in test, where it changed: {}.": [
            f"{o.name} {o.train_prevalence:.2%} and {o.prevalence:.2%}"
            for o in objectives
            if o.train_prevalence
            and not o.graded
            and not 0.8 <= o.prevalence / o.train_prevalence <= 1.25
        ],
        "Test requests that are one-class and cannot count in AUC within requests: {}.": [
            f"{o.name} {o.one_class:.0%}" for o in objectives if (o.one_class or 0) > 0.5
        ],
        "Rare values share one slot: {}.": [
            f"{c.name} has {c.values:,} values" for c in context if c.values > _MANY_VALUES
        ],
    }
    return [line.format(", ".join(names)) for line, names in kinds.items() if names]
