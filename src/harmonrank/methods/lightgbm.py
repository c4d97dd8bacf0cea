"""LightGBM: the probability of each objective by boosted trees, best weights on top."""

__all__ = ["LightGBM", "LightGBMConfig"]

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from harmonrank.data import ContextEncoder, Log
from harmonrank.errors import UsageError
from harmonrank.methods.base import Fit
from harmonrank.methods.extras import import_extra
from harmonrank.methods.probability import ProbabilityMethod

_UNSEEN_TREES = 100


@dataclass(frozen=True)
class LightGBMConfig:
    """How trees are grown; validation chooses the leaves and the number of trees per objective.

    Attributes:
        leaves: Tree sizes that are tried.
        leaf_rows: Fewest rows of a leaf.
        leaf_positives: Least curvature Σ p(1−p) of a leaf, which for a rare objective is about
            its number of positives.
        patience: Trees without a better validation log loss after which boosting stops.
    """

    learning_rate: float = 0.05
    leaves: tuple[int, ...] = (4, 15)
    leaf_rows: int = 200
    leaf_positives: float = 20.0
    l2: float = 10.0
    trees: int = 1000
    patience: int = 30

    def __post_init__(self) -> None:
        object.__setattr__(self, "leaves", tuple(self.leaves))
        if not self.leaves or min(self.leaves) < 2:
            raise UsageError(f"`leaves` must be one or more sizes from 2 up. Got {self.leaves}.")
        for name in ("learning_rate", "trees", "patience"):
            if not getattr(self, name) > 0:
                raise UsageError(f"`{name}` must be above 0. Got {getattr(self, name)}.")


class LightGBM(ProbabilityMethod):
    """One boosted classifier per objective on all scores and the context; extra `lightgbm`.

    Context features are categories; the unknown one is a category too.
    """

    name = "lightgbm"
    Config = LightGBMConfig

    _encoder: ContextEncoder
    _boosters: list[Any]

    def _fit(self, fit: Fit) -> None:
        lightgbm = import_extra("lightgbm", extra="lightgbm", method=self.name)
        self._encoder = ContextEncoder.fit(fit.train.context)
        train, valid = self._features(fit.train), self._features(fit.valid)
        objectives = fit.train.scores.shape[1]
        bins = lightgbm.Dataset(
            train,
            categorical_feature=list(range(objectives, train.shape[1])),
            params=self._parameters(fit.seed, self.config.leaves[0]),
            free_raw_data=False,
        ).construct()

        def boost(m: int) -> Any:
            labels, answers = (log.known_labels()[:, m] for log in (fit.train, fit.valid))
            weight, exam_weight = fit.train.sample_weight, fit.valid.sample_weight
            rows = bins.create_valid(train, labels.astype(np.float32), weight=weight)
            exam = bins.create_valid(valid, answers.astype(np.float32), weight=exam_weight)
            # Validation rows of one class cannot say when to stop.
            known = answers.min() < answers.max()
            return self._boost(lightgbm, rows, exam if known else None, fit.seed)

        self._boosters = _side_by_side(boost, range(objectives))

    def _boost(self, lightgbm: Any, rows: Any, exam: Any | None, seed: int) -> Any:
        """Return the trees with the lowest validation log loss."""
        if exam is None:
            parameters = self._parameters(seed, self.config.leaves[0])
            return lightgbm.train(parameters, rows, min(self.config.trees, _UNSEEN_TREES))
        tried = [
            lightgbm.train(
                self._parameters(seed, leaves),
                rows,
                self.config.trees,
                valid_sets=[exam],
                callbacks=[lightgbm.early_stopping(self.config.patience, verbose=False)],
            )
            for leaves in self.config.leaves
        ]
        return min(tried, key=lambda booster: booster.best_score["valid_0"]["binary_logloss"])

    def _parameters(self, seed: int, leaves: int) -> dict[str, Any]:
        return {
            "objective": "binary",
            "learning_rate": self.config.learning_rate,
            "num_leaves": leaves,
            "min_data_in_leaf": self.config.leaf_rows,
            "min_sum_hessian_in_leaf": self.config.leaf_positives,
            "lambda_l2": self.config.l2,
            "seed": seed,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }

    def _features(self, log: Log) -> np.ndarray:
        codes = self._encoder.encode(log.context)
        return np.concatenate([log.scores.astype(np.float64), codes], axis=1)

    def probabilities(self, log: Log) -> np.ndarray:
        """Return the probability of each objective, (rows, objectives)."""
        features = self._features(log)
        columns = _side_by_side(lambda b: b.predict(features, num_threads=1), self._boosters)
        return np.stack(columns, axis=1)

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        trees = [booster.model_to_string() for booster in self._boosters]
        return {"context": self._encoder.to_list(), "trees": trees}, {}

    def _restore(self, parts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        del arrays
        lightgbm = import_extra("lightgbm", extra="lightgbm", method=self.name)
        self._encoder = ContextEncoder.from_list(parts["context"])
        self._boosters = [lightgbm.Booster(model_str=text) for text in parts["trees"]]


def _side_by_side(work: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Do one objective per thread.

    Threads inside a tree wait for each other at every node, and on a busy machine mostly wait.
    """
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        return list(pool.map(work, items))
