"""What a log holds, what to beware of in it, and how far scores moved since training."""

__all__ = ["ContextFacts", "DataFacts", "ObjectiveFacts", "data_facts"]

from dataclasses import dataclass

import numpy as np

from harmonrank.data import Log
from harmonrank.data.context import UNKNOWN, ContextEncoder
from harmonrank.metrics import spearman
from harmonrank.reports.stability import SHOWN_ROWS

_RARE_POSITIVES = 100
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


def data_facts(test: Log, train: Log | None = None) -> DataFacts:
    """Describe the rows that a result rests on."""
    objectives = _objectives(test, train)
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
        warnings=tuple(_warnings(objectives, context)),
    )


def _matrix(values: np.ndarray) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(row) for row in values.tolist())


def _objectives(test: Log, train: Log | None) -> tuple[ObjectiveFacts, ...]:
    schema, pi = test.schema, test.prevalence()
    value = schema.values_with(None)
    effective = schema.weight_vector / np.maximum(pi * (1 - pi), 1e-12)
    effective = effective if value is None else value
    positives = test.known_labels().sum(axis=0, dtype=np.int64)
    means = np.average(test.scores, axis=0, weights=test.sample_weight)
    before = None if train is None else train.prevalence()
    one_class = _one_class(test)
    return tuple(
        ObjectiveFacts(
            name=name,
            score=schema.score_columns[m],
            weight=float(schema.weight_vector[m]),
            effective_weight=float(effective[m] / np.abs(effective).sum()),
            positives=int(positives[m]),
            prevalence=float(pi[m]),
            train_prevalence=None if before is None else float(before[m]),
            mean_score=float(means[m]),
            one_class=None if one_class is None else one_class[m],
        )
        for m, name in enumerate(schema.names)
    )


def _one_class(log: Log) -> list[float] | None:
    """Return per objective the share of requests whose rows are all or none positive."""
    if log.request is None:
        return None
    _, place, size = np.unique(log.request, return_inverse=True, return_counts=True)
    counts = [np.bincount(place, labels) for labels in log.known_labels().T]
    return [float(((count == 0) | (count == size)).mean()) for count in counts]


def _context(test: Log, train: Log | None) -> tuple[ContextFacts, ...]:
    encoder = ContextEncoder.fit((train or test).context)
    codes = encoder.encode(test.context)
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
                unseen=None if train is None else float((column == UNKNOWN).mean()),
            )
        )
    return tuple(facts)


def _warnings(
    objectives: tuple[ObjectiveFacts, ...], context: tuple[ContextFacts, ...]
) -> list[str]:
    said = []
    for o in objectives:
        if o.positives < _RARE_POSITIVES:
            said.append(
                f"'{o.name}' has only {o.positives:,} positives among the test rows; "
                "its AUC is uncertain, see its interval."
            )
        if not 0.5 <= o.mean_score / max(o.prevalence, 1e-12) <= 2:
            said.append(
                f"The score of '{o.name}' is {o.mean_score:.2%} on average, but {o.prevalence:.2%} "
                "of rows are positive: upstream is not calibrated."
            )
        before = o.train_prevalence
        if before and not 0.8 <= o.prevalence / before <= 1.25:
            said.append(
                f"'{o.name}' went from {before:.2%} positive in training to "
                f"{o.prevalence:.2%} in test."
            )
        if o.one_class is not None and o.one_class > 0.5:
            said.append(
                f"{o.one_class:.0%} of test requests have '{o.name}' on all or none of their rows; "
                "they cannot count in its AUC within requests."
            )
    if objectives and max(o.effective_weight for o in objectives) > 0.8 and len(objectives) > 1:
        heavy = max(objectives, key=lambda o: o.effective_weight)
        said.append(
            f"'{heavy.name}' takes {heavy.effective_weight:.0%} of the effective weight: AUC "
            "counts pairs, so the rarer an objective, the more each of its positives counts."
        )
    for c in context:
        if c.unseen:
            said.append(f"{c.unseen:.2%} of test rows have a '{c.name}' that training did not see.")
        if c.values > _MANY_VALUES:
            said.append(f"'{c.name}' has {c.values:,} values; the rare ones share one slot.")
    return said
