"""The prediction stage on a simulated log: beside LightGBM and the truth, and out of fold.

    python benchmarks/prediction.py networks --json benchmarks/results/prediction.json
    python benchmarks/prediction.py out-of-fold --rows 400000 --users 5000 --items 2000 \\
        --json benchmarks/results/out_of_fold.json

A KuaiRand-format log is simulated and imported. `networks`: every network and LightGBM learn from
the same columns of the same training rows, stop by the same validation rows and are measured on the
same test rows. Of MMoE, one network is measured; the mean of it and the networks of five folds; and
the mean of the three that in the end learned from training and validation rows alike, for as many
epochs as validation chose: this one is what `harmonrank lab predict score` gives for new rows.
LightGBM gets the same advantage: once validation rows have chosen its leaves and its rounds, it is
fitted on training and validation rows with these, and both are measured. Gaps are those to the AUC
of the true probabilities, by the test labels, with a 95 % interval for the noise of these (DeLong,
paired), and exact: by the true probabilities as labels.

`out-of-fold`: what a fusion loses by learning from scores that have seen their labels. Fusions are
fitted on training rows scored in sample (by the network of all training rows) and out of fold,
and measured on rows scored by the mean of all networks ("mean"), by the network of all training
rows alone ("full"), or each by one fold network chosen by chance ("one").
"""

from argparse import Namespace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
from store import clocked, options, write

from harmonrank.evaluation import compare
from harmonrank.metrics import auc, auc_sum_interval
from harmonrank_lab.upstream import (
    FULL,
    PredictorConfig,
    fit_predictor,
    fusion_schema,
    score_frame,
)
from harmonrank_lab.upstream.calibrator import calibration_error
from harmonrank_lab.upstream.logs import ImportedLog, LogColumns, find_kuairand, import_log
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log

TREES = {
    "objective": "binary",
    "metric": "auc",
    "learning_rate": 0.1,
    "min_data_in_leaf": 200,
    "min_data_per_group": 100,
    "cat_smooth": 50,
    "cat_l2": 50,
    "lambda_l2": 10,
    "verbosity": -1,
}


def table_of(log: ImportedLog, part: str) -> pl.DataFrame:
    """All columns that a network sees, joined."""
    frame = pl.concat(log.batches(part))
    for features, key in ((log.users(), log.columns.user), (log.items(), log.columns.item)):
        if features is not None:
            frame = frame.join(features, on=key, how="left", maintain_order="left")
    return frame


def matrices(log: ImportedLog) -> tuple[list[np.ndarray], list[int]]:
    """Numbers as they are, and categories as codes that train or valid knew, of all three parts."""
    c = log.columns
    tables = [table for table in (c.users, c.items) if table is not None]
    categories = [c.user, c.item, *c.categorical, *(n for t in tables for n in t.categorical)]
    numeric = [*c.numeric, *(n for t in tables for n in t.numeric)]
    frames = [table_of(log, part) for part in ("train", "valid", "test")]
    columns: list[list[np.ndarray]] = [[], [], []]
    for name in categories:
        seen = pl.concat(frame.select(name) for frame in frames[:2])
        known = seen.unique().drop_nulls().sort(name).with_row_index("code")
        for part, frame in enumerate(frames):
            codes = frame.select(name).join(known, on=name, how="left", maintain_order="left")
            columns[part].append(codes["code"].cast(pl.Float32).fill_null(-1).to_numpy())
    for name, (part, frame) in product(numeric, enumerate(frames)):
        columns[part].append(frame[name].cast(pl.Float32).fill_null(np.nan).to_numpy())
    return [np.stack(c, axis=1) for c in columns], list(range(len(categories)))


def boosted(log: ImportedLog, seed: int) -> dict[str, np.ndarray]:
    """Scores of the test rows by trees of training rows, and by trees of both parts afterwards."""
    import lightgbm

    (train, valid, test), categories = matrices(log)
    labels = [pl.concat(log.batches(p, log.columns.objectives)) for p in ("train", "valid")]
    both, scores = np.concatenate([train, valid]), ([], [])
    for name in log.columns.objectives:
        y, tried = [frame[name].to_numpy() for frame in labels], []
        for leaves in (15, 63):
            rows = lightgbm.Dataset(train, y[0], categorical_feature=categories)
            booster = lightgbm.train(
                {**TREES, "seed": seed, "num_leaves": leaves},
                rows,
                300,
                valid_sets=[rows.create_valid(valid, y[1])],
                callbacks=[lightgbm.early_stopping(25, verbose=False)],
            )
            tried.append((booster.best_score["valid_0"]["auc"], leaves, booster))
        _, leaves, booster = max(tried, key=lambda one: one[0])
        rows = lightgbm.Dataset(both, np.concatenate(y), categorical_feature=categories)
        chosen = {**TREES, "seed": seed, "num_leaves": leaves}
        again = lightgbm.train(chosen, rows, booster.best_iteration)
        for kind, trees in zip(scores, (booster, again), strict=True):
            kind.append(trees.predict(test))
    names = ("lightgbm", "lightgbm, train and valid")
    return {n: np.stack(tried, axis=1) for n, tried in zip(names, scores, strict=True)}


def measured(p: np.ndarray, test: pl.DataFrame, columns: LogColumns) -> dict:
    """AUC by the test labels, exact AUC by the true probabilities, the gaps of both, and ECE."""
    figures: dict = {k: {} for k in ("auc", "exact_auc", "gap", "gap_ci", "exact_gap", "ece")}
    for m, name in enumerate(columns.objectives):
        labels, truth = test[name].to_numpy(), test[columns.truth[name]].to_numpy()
        for kind, gap, against in (("auc", "gap", labels), ("exact_auc", "exact_gap", truth)):
            figures[kind][name] = float(auc(p[:, m], against))
            figures[gap][name] = float(auc(truth, against)) - figures[kind][name]
        noise = auc_sum_interval(truth, labels, minus=p[:, m])
        figures["gap_ci"][name] = [noise.low, noise.high]
        figures["ece"][name] = calibration_error(p[:, m], labels)
    print({kind: list(figures[kind].values()) for kind in ("auc", "exact_gap")}, flush=True)
    return figures


def networks(log: ImportedLog, place: Path, given: Namespace) -> dict:
    """Fit each network, and of MMoE those of folds and refits; measure them and their means."""
    test, columns, figures = pl.concat(log.batches("test")), log.columns, {}
    for name in given.networks:
        folds = given.folds if name == "mmoe" else 0
        config = PredictorConfig(network=name, refits=3 if folds else 0)
        predictor = fit_predictor(log, place / name, config, folds=folds, seed=given.seed)
        rows, facts = predictor.encoder.rows(test), predictor.members[FULL].facts
        scored = measured(predictor.members[FULL].score(rows), test, columns)
        speed = {"seconds": facts.seconds, "rows_per_second": facts.rows_per_second}
        figures[name] = {**scored, **speed, "best_epoch": facts.best_epoch + 1}
        if folds:
            mean = f"{name}, mean of {len(predictor.validated)} validated"
            figures[mean] = measured(predictor.score_valid(rows), test, columns)
            final = measured(predictor.score(rows), test, columns)
            figures[f"{name}, as predict score gives it"] = final
    trees = {} if given.no_lightgbm else boosted(log, given.seed)
    truth = {o: float(auc(test[columns.truth[o]], test[o])) for o in columns.objectives}
    others = {name: measured(p, test, columns) for name, p in trees.items()}
    return {"rows": log.rows, "truth": truth, "networks": figures, "lightgbm": others}


def scores_of(predictor, frame: pl.DataFrame, how: str, seed: int) -> np.ndarray:
    """Score rows that no network saw, in one of three ways."""
    rows = predictor.encoder.rows(frame, labels=False)
    if how != "one":
        return (predictor.members[FULL] if how == "full" else predictor).score(rows)
    folds = np.stack([m.score(rows) for n, m in predictor.members.items() if n != FULL])
    chosen = np.random.default_rng(seed).integers(0, len(folds), frame.height)
    return folds[chosen, np.arange(frame.height)]


def out_of_fold(log: ImportedLog, place: Path, given: Namespace) -> dict:
    predictor = fit_predictor(
        log, place / "model", PredictorConfig(refits=0), folds=given.folds, seed=given.seed
    )
    schema, joined = fusion_schema(log)
    users = log.users().select(joined)
    frames = {
        part: pl.concat(log.batches(part)).join(
            users, on=log.columns.user, how="left", maintain_order="left"
        )
        for part in ("train", "valid", "test")
    }
    kept = [n for n in schema.names if all(0 < f[n].mean() < 1 for f in frames.values())]
    own, schema = [schema.names.index(name) for name in kept], schema.subset(kept)
    train = {
        "in-sample": scores_of(predictor, frames["train"], "full", given.seed),
        "out-of-fold": score_frame(predictor, frames["train"], own="train"),
    }

    def scored(part: str, p: np.ndarray) -> pl.DataFrame:
        named = zip(schema.score_columns, p[:, own].T, strict=True)
        return frames[part].with_columns(pl.Series(name, column) for name, column in named)

    fusion, drop = [], list(log.columns.truth.values())
    for tested, (how, p) in product(("mean", "full", "one"), train.items()):
        valid, test = (
            scored(part, scores_of(predictor, frames[part], tested, given.seed))
            for part in ("valid", "test")
        )
        known = scored("train", p).drop(drop)
        more = {"test": test, "valid": valid, "seed": given.seed}
        board = compare(known, schema, given.methods, **more).board
        for entry in board.entries:
            reached = entry.quality and {"auc_sum": entry.quality.exact_auc_sum}
            row = {"method": entry.name, "train": how, "test": tested, **(reached or {})}
            fusion.append(row | {"error": entry.error})
            print(fusion[-1], flush=True)
    return {"rows": log.rows, "objectives": kept, "fusion": fusion}


if __name__ == "__main__":
    given = options(
        __doc__, "part", rows=2_000_000, users=20_000, items=5_000, seed=0, folds=5,
        networks=["mmoe", "ple", "esmm"], no_lightgbm=False,
        methods=["harmonrank", "logistic", "closed-form"],
    )  # fmt: skip
    with TemporaryDirectory() as scratch:
        place, world = Path(scratch), KuaiRandWorld(given.users, given.items)
        simulate_log(world, given.rows, place / "raw", seed=given.seed)
        import_log(find_kuairand(place / "raw"), place / "log")
        work = {"networks": networks, "out-of-fold": out_of_fold}[given.part]
        figures, seconds, _ = clocked(lambda: work(ImportedLog.open(place / "log"), place, given))
    write(given.json, {**figures, "seconds": seconds})
