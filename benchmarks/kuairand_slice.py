"""Fuse five objectives of a real log: out-of-fold gradient boosting, then every method.

    python benchmarks/kuairand_slice.py FOLDER --json benchmarks/results/kuairand_slice.json

FOLDER holds log.parquet and user_features.parquet in KuaiRand's columns. Scores of the training
days are made out of fold (5 folds), those of the last two days by a model of all training days.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier

from harmonrank.data import Schema
from harmonrank.evaluation import compare
from harmonrank.fusion import METHODS

OBJECTIVES = ("is_click", "long_view", "is_profile_enter", "is_comment", "is_follow")
CONTEXT = ("hour", "user_active_degree", "follow_user_num_range")
FOLDS = 5


def features(folder: Path) -> pl.DataFrame:
    log = pl.read_parquet(folder / "log.parquet")
    users = pl.read_parquet(folder / "user_features.parquet")
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
            model = HistGradientBoostingClassifier(
                max_iter=60,
                learning_rate=0.05,
                max_leaf_nodes=15,
                min_samples_leaf=50,
                random_state=seed,
            )
            scores[target, m] = model.fit(X[rest], y[rest]).predict_proba(X[target])[:, 1]
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--methods", default="all")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    table = features(options.folder)
    days = table["date"].unique().sort().to_list()
    train = table["date"].is_in(days[:-2]).to_numpy()
    names = METHODS if options.methods == "all" else options.methods.split(",")
    schema = Schema({n: f"p_{n}" for n in OBJECTIVES}, context=CONTEXT, request="user_id")
    results = []
    for seed in range(options.seeds):
        scores = score(table, train, seed)
        fused = table.with_columns(
            pl.Series(f"p_{n}", s) for n, s in zip(OBJECTIVES, scores.T, strict=True)
        )
        board = compare(fused.filter(train), fused.filter(~train), schema, names, seed=seed)
        results.append({"seed": seed, **board.to_dict()})
        print(f"seed {seed}: {train.sum():,} training rows, {(~train).sum():,} test rows")
        for entry in board.entries:
            if entry.quality is None:
                print(f"  {entry.name:28s} failed: {entry.error}")
            else:
                q = entry.quality
                print(
                    f"  {entry.name:28s} {q.auc_sum.estimate:.4f} "
                    + " ".join(f"{v.estimate:.3f}" for v in q.auc.values())
                )
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
