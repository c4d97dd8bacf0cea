"""LightGBM: the probability of each objective by boosted trees."""

__all__ = ["LightGBM", "LightGBMConfig"]

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from harmonrank.fusion.baselines.trees import Trees
from harmonrank.fusion.method import Method
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.model.fit_rows import FitRows
from harmonrank.support.extras import import_extra
from harmonrank.support.options import Count, Nonnegative, Rate
from harmonrank.support.parallel import map_parts

Leaves = Annotated[int, Meta(ge=2, le=131_072)]
"""The tree sizes that LightGBM allows."""

_UNSEEN_TREES = 100


@dataclass(frozen=True, eq=False)
class TreeFit:
    """The trees of every objective, on all scores and the context's codes."""

    trees: Trees

    def check(self, M: int, slots: tuple[int, ...]) -> None:
        """Refuse stored trees that do not fit."""
        self.trees.check(M, M + len(slots))

    def probabilities(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the probability of each objective, (rows, M)."""
        return self.trees.probabilities(_features(scores, codes))


@dataclass(frozen=True)
class LightGBMConfig:
    """How trees are grown; validation chooses the leaves and the number of trees per objective.

    Attributes:
        leaves: Tree sizes to try.
        leaf_rows: Fewest rows of a leaf.
        leaf_positives: Least curvature Σ p(1−p) of a leaf, which for a rare objective is about
            its number of positives.
        patience: Trees without a better validation log loss after which boosting stops.
    """

    name: ClassVar[str] = "lightgbm"
    traits: ClassVar[Traits] = Traits(needs="lightgbm", whole=True)
    state: ClassVar[type] = TreeFit

    learning_rate: Rate = 0.05
    leaves: Annotated[tuple[Leaves, ...], Meta(min_length=1, max_length=100)] = (4, 15)
    leaf_rows: Count = 200
    leaf_positives: Nonnegative = 20.0
    l2: Nonnegative = 10.0
    trees: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    patience: Count = 30

    def fit(self, rows: TrainingRows) -> TreeFit:
        """Boost the trees of each objective."""
        lightgbm = import_extra("lightgbm", who=self.name)
        train, valid = rows.sample(), rows.valid_sample()
        features, seen = _features(train.scores, train.codes), _features(valid.scores, valid.codes)
        M = len(rows.weights)
        bins = lightgbm.Dataset(
            features,
            categorical_feature=list(range(M, features.shape[1])),
            params=self._parameters(rows.seed, self.leaves[0]),
            free_raw_data=False,
        ).construct()

        def boost(m: int) -> Any:
            sets = [
                bins.create_valid(x, labels.astype(np.float32), weight=weight)
                for x, labels, weight in (_shown(train, features, m), _shown(valid, seen, m))
            ]
            answers = _shown(valid, seen, m)[1]
            # Validation rows of one class cannot say when to stop.
            known = len(answers) > 0 and answers.min() < answers.max()
            graded = rows.schema.names[m] in rows.schema.graded
            loss = "cross_entropy" if graded else "binary"
            return self._boost(lightgbm, sets[0], sets[1] if known else None, rows.seed, loss)

        # One objective per thread: threads within a tree wait for each other at every node.
        boosters = map_parts(boost, range(M))
        return TreeFit(Trees.of([booster.model_to_string() for booster in boosters]))

    def _boost(self, lightgbm: Any, rows: Any, valid: Any | None, seed: int, loss: str) -> Any:
        """Return the trees with the lowest validation log loss."""
        if valid is None:
            parameters = self._parameters(seed, self.leaves[0], loss)
            return lightgbm.train(parameters, rows, min(self.trees, _UNSEEN_TREES))
        tried = [
            lightgbm.train(
                self._parameters(seed, leaves, loss),
                rows,
                self.trees,
                valid_sets=[valid],
                callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
            )
            for leaves in self.leaves
        ]
        metric = "binary_logloss" if loss == "binary" else loss
        return min(tried, key=lambda booster: booster.best_score["valid_0"][metric])

    def _parameters(self, seed: int, leaves: int, loss: str = "binary") -> dict[str, Any]:
        return {
            "objective": loss,
            "learning_rate": self.learning_rate,
            "num_leaves": leaves,
            "min_data_in_leaf": self.leaf_rows,
            "min_sum_hessian_in_leaf": self.leaf_positives,
            "lambda_l2": self.l2,
            "seed": seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }


class LightGBM(Method):
    """One boosted classifier per objective on all scores and the context; extra `lightgbm`.

    Context features are categories, with one for unknown values. LightGBM grows the trees. They
    are stored and scored as `Trees`, so a fitted model does not need LightGBM.
    """

    Config = LightGBMConfig


def _features(scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
    codes = np.broadcast_to(codes, (len(scores), codes.shape[1]))
    return np.concatenate([scores.astype(np.float64), codes], axis=1)


def _shown(
    rows: FitRows, features: np.ndarray, m: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return features, labels and weights of the rows that show objective m."""
    if rows.shares is None:
        return features, rows.labels[:, m], rows.weight
    there = rows.shares[:, m] > 0
    weight = None if rows.weight is None else rows.weight[there]
    return features[there], rows.labels[there, m], weight
