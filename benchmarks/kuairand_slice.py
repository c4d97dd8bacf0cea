"""Fuse five objectives of a real log: out-of-fold gradient boosting, then every method.

    python benchmarks/kuairand_slice.py FOLDER --json benchmarks/results/kuairand_slice.json

FOLDER holds log.parquet and user_features.parquet in KuaiRand's columns. Scores of the training
days are made out of fold (5 folds), those of the last two days by a model of all training days.
"""

from pathlib import Path

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier
from store import options, write

from harmonrank.data import Schema
from harmonrank.evaluation import compare
from harmonrank.fusion import METHODS

OBJECTIVES = ("is_click", "long_view", "is_profile_enter", "is_comment", "is_follow")
CONTEXT = ("hour", "user_active_degree", "follow_user_num_range")
FOLDS = 5
BOOSTING = {"max_iter": 60, "learning_rate": 0.05, "max_leaf_nodes": 15, "min_samples_leaf": 50}


def features(folder: Path) -> pl.DataFrame:
    log, users = (pl.read_parquet(folder / f"{n}.parquet") for n in ("log", "user_features"))
    table = log.join(users, on="user_id", how="left", maintain_order="left").sort("time_ms")
    return table.with_columns(hour=pl.col("hourmin") // 100)


def design(table: pl.DataFrame, known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Numbers of every row; rates of users and videos come from the known rows alone."""
    numeric = [n for n, kind in table.schema.items() if n.startswith("onehot") or n.endswith("num")]
    columns = [table[n].cast(pl.Float64).to_numpy() for n in [*numeric, "hour", "duration_ms"]]
    columns += [table[n].cast(pl.Categorical).to_physical().to_numpy() for n in CONTEXT[1:]]
    for key in ("user_id", "video_id"):
        _, code = np.unique(table[key].to_numpy(), return_inverse=True)
        count = np.bincount(code[known], minlength=code.max() + 1)
        columns.append(count[code])
        for y in labels.T:
            rate = y[known].mean()
            total = np.bincount(code[known], y[known], code.max() + 1)
            columns.append(((total + 10 * rate) / (count + 10))[code])
    return np.stack([np.asarray(c, dtype=np.float64) for c in columns], axis=1)


def score(table: pl.DataFrame, train: np.ndarray, seed: int) -> np.ndarray:
    labels = table.select(OBJECTIVES).to_numpy().astype(float)
    scores = np.empty(labels.shape)
    fold = np.random.default_rng(seed).integers(0, FOLDS, len(table))
    for k in range(FOLDS + 1):
        target = train & (fold == k) if k < FOLDS else ~train
        known = np.flatnonzero(train & ~target)
        # Rates that a row's own label enters would be too good, so half of the rows give the rates.
        half = known[np.random.default_rng([seed, k]).random(len(known)) < 0.5]
        rest = np.setdiff1d(known, half)
        X = design(table, half, labels)
        for m, y in enumerate(labels.T):
            model = HistGradientBoostingClassifier(**BOOSTING, random_state=seed)
            scores[target, m] = model.fit(X[rest], y[rest]).predict_proba(X[target])[:, 1]
    return scores


if __name__ == "__main__":
    given = options(__doc__, "folder", methods=list(METHODS), seeds=3)
    table = features(Path(given.folder))
    days = table["date"].unique().sort().to_list()
    train = table["date"].is_in(days[:-2]).to_numpy()
    schema = Schema({n: f"p_{n}" for n in OBJECTIVES}, context=CONTEXT, request="user_id")
    runs = []
    for seed in range(given.seeds):
        named = zip(OBJECTIVES, score(table, train, seed).T, strict=True)
        fused = table.with_columns(pl.Series(f"p_{n}", s) for n, s in named)
        rows, test = fused.filter(train), fused.filter(~train)
        board = compare(rows, schema, given.methods, test=test, seed=seed).board
        runs.append({"seed": seed, **board.to_dict()})
        print(seed, {e.name: e.quality and e.quality.auc_sum for e in board.entries}, flush=True)
    write(given.json, {"runs": runs})
