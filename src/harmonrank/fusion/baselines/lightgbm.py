"""LightGBM: the probability of each objective by boosted trees, best weights on top."""

__all__ = ["LightGBM", "LightGBMConfig"]

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from harmonrank.data import ContextEncoder, Log
from harmonrank.fusion.baselines.trees import Trees, tree_arrays
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.probability import ProbabilityMethod
from harmonrank.fusion.state import ContextState
from harmonrank.support.extras import import_extra
from harmonrank.support.options import Count, Nonnegative, Rate
from harmonrank.support.parallel import map_parts
from harmonrank.support.storage.arrays import Array

Leaves = Annotated[int, Meta(ge=2, le=131_072)]
"""What LightGBM can grow."""

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

    learning_rate: Rate = 0.05
    leaves: Annotated[tuple[Leaves, ...], Meta(min_length=1, max_length=100)] = (4, 15)
    leaf_rows: Count = 200
    leaf_positives: Nonnegative = 20.0
    l2: Nonnegative = 10.0
    trees: Annotated[int, Meta(ge=1, le=100_000)] = 1000
    patience: Count = 30


class LightGBM(ProbabilityMethod):
    """One boosted classifier per objective on all scores and the context; extra `lightgbm`.

    Context features are categories; the unknown one is a category too. LightGBM grows the trees;
    they are kept and scored as `Trees`, so that a fitted model needs it no more.
    """

    name = "lightgbm"
    needs = "lightgbm"
    takes = ("graded", "given")
    Config = LightGBMConfig
    State = ContextState

    _encoder: ContextEncoder
    _trees: Trees

    def _fit(self, fit: Fit) -> None:
        lightgbm = import_extra("lightgbm", who=self.name)
        self._encoder = ContextEncoder.fit(fit.train.context)
        train, valid = self._features(fit.train), self._features(fit.valid)
        objectives, graded = fit.train.scores.shape[1], fit.train.schema.graded
        bins = lightgbm.Dataset(
            train,
            categorical_feature=list(range(objectives, train.shape[1])),
            params=self._parameters(fit.seed, self.config.leaves[0]),
            free_raw_data=False,
        ).construct()

        def boost(m: int) -> Any:
            labels, weight = fit.train.shown_labels(m)
            answers, exam_weight = fit.valid.shown_labels(m)
            x, seen = (
                part if log.shown is None else part[log.shown[:, m]]
                for part, log in ((train, fit.train), (valid, fit.valid))
            )
            rows = bins.create_valid(x, labels.astype(np.float32), weight=weight)
            exam = bins.create_valid(seen, answers.astype(np.float32), weight=exam_weight)
            # Validation rows of one class cannot say when to stop.
            known = len(answers) > 0 and answers.min() < answers.max()
            loss = "cross_entropy" if fit.train.schema.names[m] in graded else "binary"
            return self._boost(lightgbm, rows, exam if known else None, fit.seed, loss)

        # One objective per thread: threads inside a tree wait for each other at every node, and on
        # a busy machine mostly wait.
        boosters = map_parts(boost, range(objectives))
        self._trees = Trees.of([booster.model_to_string() for booster in boosters])

    def _boost(self, lightgbm: Any, rows: Any, exam: Any | None, seed: int, loss: str) -> Any:
        """Return the trees with the lowest validation log loss."""
        if exam is None:
            parameters = self._parameters(seed, self.config.leaves[0], loss)
            return lightgbm.train(parameters, rows, min(self.config.trees, _UNSEEN_TREES))
        tried = [
            lightgbm.train(
                self._parameters(seed, leaves, loss),
                rows,
                self.config.trees,
                valid_sets=[exam],
                callbacks=[lightgbm.early_stopping(self.config.patience, verbose=False)],
            )
            for leaves in self.config.leaves
        ]
        metric = "binary_logloss" if loss == "binary" else loss
        return min(tried, key=lambda booster: booster.best_score["valid_0"][metric])

    def _parameters(self, seed: int, leaves: int, loss: str = "binary") -> dict[str, Any]:
        return {
            "objective": loss,
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
        codes = log.codes(self._encoder)
        return np.concatenate([log.scores.astype(np.float64), codes], axis=1)

    def _probabilities(self, log: Log) -> np.ndarray:
        return self._trees.probabilities(self._features(log))

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        return {"context": self._encoder.to_list()}, vars(self._trees)

    def _declare(self, state: ContextState) -> dict[str, Array]:  # noqa: ARG002
        M = len(self.schema.names)
        return tree_arrays(M, M + len(self.schema.context))

    def _restore(self, state: ContextState, arrays: dict[str, np.ndarray]) -> None:
        self._encoder = state.encoder(self.schema)
        self._trees = Trees.restored(arrays)
