"""The prediction stage on a simulated log: AUC beside LightGBM and the truth, and rows per second.

    python benchmarks/prediction.py --json benchmarks/results/prediction.json

A KuaiRand-format log is simulated and imported; every network and LightGBM learn from the same
columns of the same training rows, stop by the same validation rows and are measured on the same
test rows. LightGBM gets every categorical column, IDs included, as a category and every number as
it is. Rows per second are those of whole training passes, reading and shuffling included.

Of MMoE, one network is measured; the mean of it and the networks of five folds, which learned from
training rows alone; and the mean of the three that in the end learned from training and validation
rows alike, for as many epochs as validation chose: this one is what `harmonrank lab predict score`
gives for new rows. LightGBM gets the same advantage: once validation rows have chosen its leaves
and its rounds, it is fitted on training and validation rows with these, and both are measured.

Gaps are those to the AUC of the true probabilities, by the test labels, with a 95 % interval for
the noise of these (DeLong, paired), and exact: by the true probabilities as labels, free of it.
"""

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numba
import numpy as np
import polars as pl
import torch

from harmonrank.metrics import auc, auc_sum_interval
from harmonrank_lab.upstream import FULL, PredictorConfig, fit_predictor, load_predictor
from harmonrank_lab.upstream.calibration_error import calibration_error
from harmonrank_lab.upstream.logs import ImportedLog, LogColumns, find_kuairand, import_log
from harmonrank_lab.upstream.predictor import MODEL
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log


def table_of(log: ImportedLog, part: str) -> pl.DataFrame:
    """All columns that a network sees, joined."""
    c = log.columns
    frame = pl.concat(log.batches(part))
    for features, key in ((log.users(), c.user), (log.items(), c.item)):
        if features is not None:
            frame = frame.join(features, on=key, how="left", maintain_order="left")
    return frame


def matrices(log: ImportedLog) -> tuple[list[np.ndarray], list[int]]:
    """Numbers as they are, and categories as codes that train or valid knew, of all three parts."""
    c = log.columns
    categories = [c.user, c.item, *c.categorical]
    numeric = list(c.numeric)
    for table in (c.users, c.items):
        if table is not None:
            categories += table.categorical
            numeric += table.numeric
    frames = [table_of(log, part) for part in ("train", "valid", "test")]
    columns: list[list[np.ndarray]] = [[], [], []]
    for name in categories:
        seen = pl.concat(frame.select(name) for frame in frames[:2])
        known = seen.unique().drop_nulls().sort(name).with_row_index("code")
        for part, frame in enumerate(frames):
            codes = frame.select(name).join(known, on=name, how="left", maintain_order="left")
            columns[part].append(codes["code"].cast(pl.Float32).fill_null(-1).to_numpy())
    for name in numeric:
        for part, frame in enumerate(frames):
            columns[part].append(frame[name].cast(pl.Float32).fill_null(np.nan).to_numpy())
    return [np.stack(c, axis=1) for c in columns], list(range(len(categories)))


def lightgbm_scores(
    log: ImportedLog, seed: int, threads: int
) -> dict[str, tuple[np.ndarray, float]]:
    """Scores of the test rows, and seconds: of training rows, and of both parts afterwards."""
    import lightgbm

    (train, valid, test), categories = matrices(log)
    labels = [pl.concat(log.batches(p, log.columns.objectives)) for p in ("train", "valid")]
    fixed = {
        "objective": "binary",
        "metric": "auc",
        "learning_rate": 0.1,
        "min_data_in_leaf": 200,
        "min_data_per_group": 100,
        "cat_smooth": 50,
        "cat_l2": 50,
        "lambda_l2": 10,
        "seed": seed,
        "verbosity": -1,
        "num_threads": threads,
    }
    scores: list[list[np.ndarray]] = [[], []]
    seconds = [0.0, 0.0]
    both = np.concatenate([train, valid])
    for name in log.columns.objectives:
        started = time.perf_counter()
        y = [frame[name].to_numpy() for frame in labels]
        best = None
        for leaves in (15, 63):
            rows = lightgbm.Dataset(train, y[0], categorical_feature=categories)
            booster = lightgbm.train(
                {**fixed, "num_leaves": leaves},
                rows,
                300,
                valid_sets=[rows.create_valid(valid, y[1])],
                callbacks=[lightgbm.early_stopping(25, verbose=False)],
            )
            reached = booster.best_score["valid_0"]["auc"]
            if best is None or reached > best[0]:
                best = reached, booster, leaves
        _, booster, leaves = best
        scores[0].append(booster.predict(test))
        seconds[0] += (done := time.perf_counter()) - started
        rows = lightgbm.Dataset(both, np.concatenate(y), categorical_feature=categories)
        again = lightgbm.train({**fixed, "num_leaves": leaves}, rows, booster.best_iteration)
        scores[1].append(again.predict(test))
        seconds[1] += time.perf_counter() - done
        print(f"  {name}: {leaves} leaves, {booster.best_iteration} rounds", flush=True)
    names = ("lightgbm", "lightgbm, train and valid")
    return {
        kind: (np.stack(found, axis=1), taken)
        for kind, found, taken in zip(names, scores, seconds, strict=True)
    }


def network_auc(
    log: ImportedLog, name: str, folder: Path, seed: int, folds: int, test: pl.DataFrame
) -> dict:
    """Fit a network, and those of folds and refits; measure it, and the means of the others."""
    if (folder / name / MODEL).is_file():
        predictor = load_predictor(folder / name)
    else:
        config = PredictorConfig(network=name, refits=3 if folds else 0)
        predictor = fit_predictor(log, folder / name, config, folds=folds, seed=seed)
    rows, facts = predictor.encoder.rows(test), predictor.members[FULL].facts
    names, columns = log.columns.objectives, log.columns
    found = {
        name: {
            **measured(predictor.members[FULL].score(rows), test, columns),
            "ece_valid_before": {
                o: c.before for o, c in zip(names, facts.calibration, strict=True)
            },
            "ece_valid_after": {o: c.after for o, c in zip(names, facts.calibration, strict=True)},
            "epochs": facts.epochs,
            "best_epoch": facts.best_epoch + 1,
            "seconds": facts.seconds,
            "rows_per_second": facts.rows_per_second,
        }
    }
    if folds:
        found[f"{name}, mean of {len(predictor.validated)} validated"] = {
            **measured(predictor.score_valid(rows), test, columns),
            "best_epochs": [m.facts.best_epoch + 1 for m in predictor.validated.values()],
            "seconds": sum(m.facts.seconds for m in predictor.validated.values()),
        }
        found[f"{name}, as predict score gives it"] = {
            **measured(predictor.score(rows), test, columns),
            "networks": len(predictor.finals),
            "epochs": [m.facts.best_epoch + 1 for m in predictor.finals.values()],
            "seconds": sum(m.facts.seconds for m in predictor.members.values()),
        }
    return found


def measured(p: np.ndarray, test: pl.DataFrame, columns: LogColumns) -> dict:
    """AUC by the test labels, exact AUC by the true probabilities, the gaps of both, and ECE."""
    kinds = ("auc", "exact_auc", "gap", "gap_ci", "exact_gap", "ece")
    found: dict = {kind: {} for kind in kinds}
    for m, name in enumerate(columns.objectives):
        labels, truth = test[name].to_numpy(), test[columns.truth[name]].to_numpy()
        for kind, gap, against in (("auc", "gap", labels), ("exact_auc", "exact_gap", truth)):
            found[kind][name] = float(auc(p[:, m], against))
            found[gap][name] = float(auc(truth, against)) - found[kind][name]
        gap = auc_sum_interval(truth, labels, minus=p[:, m])
        found["gap_ci"][name] = [gap.low, gap.high]
        found["ece"][name] = calibration_error(p[:, m], labels)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--log", type=Path, help="An imported log, instead of a simulated one.")
    parser.add_argument("--models", type=Path, help="Keep predictors here; take those there are.")
    parser.add_argument("--networks", default="mmoe,ple,esmm")
    parser.add_argument("--folds", type=int, default=5, help="Further networks of mmoe.")
    parser.add_argument("--no-lightgbm", action="store_true")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    numba.set_num_threads(options.threads)
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        log = options.log
        if log is None:
            world = KuaiRandWorld(options.users, options.items)
            simulate_log(world, options.rows, place / "raw", seed=options.seed)
            import_log(find_kuairand(place / "raw"), place / "log")
            log = place / "log"
        result = run(ImportedLog.open(log), options, options.models or place)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


def run(log: ImportedLog, options: argparse.Namespace, place: Path) -> dict:
    test = pl.concat(log.batches("test"))
    objectives = log.columns.objectives
    positives = log.manifest["positives"]["train"]
    truth = {
        o: float(auc(test[log.columns.truth[o]].to_numpy(), test[o].to_numpy())) for o in objectives
    }
    print(f"{'truth':16s}", shown(truth), flush=True)
    networks, trees = {}, {}
    for name in options.networks.split(","):
        folds = options.folds if name == "mmoe" else 0
        networks |= network_auc(log, name, place, options.seed, folds, test)
        for kind in [kind for kind in networks if kind.split(",")[0] == name]:
            report(kind, networks[kind])
    if not options.no_lightgbm:
        scores = lightgbm_scores(log, options.seed, options.threads)
        for kind, (p, seconds) in scores.items():
            trees[kind] = {**measured(p, test, log.columns), "seconds": seconds}
            report(kind, trees[kind])
    return {
        "machine": {
            "cores": os.cpu_count(),
            "processor": platform.processor() or platform.machine(),
            "threads": options.threads,
            "load": os.getloadavg()[0],
            "torch": torch.__version__,
        },
        "rows": log.rows,
        "positives": {
            o: int(sum(p[o] for p in log.manifest["positives"].values())) for o in objectives
        },
        "training_positives": positives,
        "truth": truth,
        "networks": networks,
        "lightgbm": trees or None,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def report(kind: str, found: dict) -> None:
    print(f"{kind:16s}", shown(found["auc"]), f"{found['seconds']:.0f} s", flush=True)
    for gap in ("gap", "exact_gap"):
        print(f"  {gap:14s}", shown(found[gap]), flush=True)


def shown(values: dict) -> str:
    mean = np.mean(list(values.values()))
    return " ".join(f"{v:.4f}" for v in values.values()) + f"  mean {mean:.4f}"


if __name__ == "__main__":
    main()
