"""The prediction stage on a simulated log: AUC beside LightGBM and the truth, and rows per second.

    python benchmarks/prediction.py --json benchmarks/results/prediction.json

A KuaiRand-format log is simulated and imported; every network and LightGBM learn from the same
columns of the same training rows, stop by the same validation rows and are measured on the same
test rows. LightGBM gets every categorical column, IDs included, as a category and every number as
it is. Of MMoE, one network is measured, and the mean of it and the networks of five folds, which
is what `harmonrank predict score` gives. Rows per second are those of whole training passes,
reading and shuffling included.

Gaps are those to the AUC of the true probabilities, by the test labels, and exact: by the true
probabilities as labels, free of the noise of a few hundred positives.
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

from harmonrank.data.log_worlds import KuaiRandWorld
from harmonrank.data.logs import ImportedLog, LogColumns, find_kuairand, import_log
from harmonrank.evaluation.log_simulation import simulate_log
from harmonrank.metrics import auc, calibration_error
from harmonrank.prediction import FULL, PredictorConfig, fit_predictor, load_predictor
from harmonrank.prediction.predictor import MODEL


def table_of(log: ImportedLog, part: str) -> pl.DataFrame:
    """All columns that a network sees, joined."""
    c = log.columns
    frame = pl.concat(log.batches(part))
    for features, key in ((log.users(), c.user), (log.items(), c.item)):
        if features is not None:
            frame = frame.join(features, on=key, how="left", maintain_order="left")
    return frame


def matrices(log: ImportedLog) -> tuple[list[np.ndarray], list[int]]:
    """Numbers as they are and categories as codes that training knew, of all three parts."""
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
        known = frames[0].select(name).unique().drop_nulls().with_row_index("code")
        for part, frame in enumerate(frames):
            codes = frame.select(name).join(known, on=name, how="left", maintain_order="left")
            columns[part].append(codes["code"].cast(pl.Float32).fill_null(-1).to_numpy())
    for name in numeric:
        for part, frame in enumerate(frames):
            columns[part].append(frame[name].cast(pl.Float32).fill_null(np.nan).to_numpy())
    return [np.stack(c, axis=1) for c in columns], list(range(len(categories)))


def lightgbm_auc(log: ImportedLog, seed: int, threads: int) -> tuple[dict, float]:
    import lightgbm

    (train, valid, test), categories = matrices(log)
    labels = [pl.concat(log.batches(p, log.columns.objectives)) for p in ("train", "valid", "test")]
    found, started = {}, time.perf_counter()
    for name in log.columns.objectives:
        y = [frame[name].to_numpy() for frame in labels]
        best = None
        for leaves in (15, 63):
            rows = lightgbm.Dataset(train, y[0], categorical_feature=categories)
            booster = lightgbm.train(
                {
                    "objective": "binary",
                    "metric": "auc",
                    "learning_rate": 0.1,
                    "num_leaves": leaves,
                    "min_data_in_leaf": 200,
                    "min_data_per_group": 100,
                    "cat_smooth": 50,
                    "cat_l2": 50,
                    "lambda_l2": 10,
                    "seed": seed,
                    "verbosity": -1,
                    "num_threads": threads,
                },
                rows,
                300,
                valid_sets=[rows.create_valid(valid, y[1])],
                callbacks=[lightgbm.early_stopping(25, verbose=False)],
            )
            reached = booster.best_score["valid_0"]["auc"]
            if best is None or reached > best[0]:
                best = reached, booster
        found[name] = float(auc(best[1].predict(test), y[2]))
        print(f"  lightgbm {name:12s} {found[name]:.4f}", flush=True)
    return found, time.perf_counter() - started


def network_auc(
    log: ImportedLog, name: str, folder: Path, seed: int, folds: int, test: pl.DataFrame
) -> dict:
    """Fit a network, and one per fold; measure the one of all rows, and the mean of all."""
    if (folder / name / MODEL).is_file():
        predictor = load_predictor(folder / name)
    else:
        config = PredictorConfig(network=name)
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
        found[f"{name}, mean of {1 + folds}"] = {
            **measured(predictor.score(rows), test, columns),
            "seconds": sum(member.facts.seconds for member in predictor.members.values()),
        }
    return found


def measured(p: np.ndarray, test: pl.DataFrame, columns: LogColumns) -> dict:
    """AUC by the test labels, exact AUC by the true probabilities, the gaps of both, and ECE."""
    found: dict = {"auc": {}, "exact_auc": {}, "gap": {}, "exact_gap": {}, "ece": {}}
    for m, name in enumerate(columns.objectives):
        labels, truth = test[name].to_numpy(), test[columns.truth[name]].to_numpy()
        for kind, gap, against in (("auc", "gap", labels), ("exact_auc", "exact_gap", truth)):
            found[kind][name] = float(auc(p[:, m], against))
            found[gap][name] = float(auc(truth, against)) - found[kind][name]
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
    networks = {}
    for name in options.networks.split(","):
        folds = options.folds if name == "mmoe" else 0
        networks |= (new := network_auc(log, name, place, options.seed, folds, test))
        for kind, found in new.items():
            print(f"{kind:16s}", shown(found["auc"]), f"{found['seconds']:.0f} s", flush=True)
            for gap in ("gap", "exact_gap"):
                print(f"  {gap:14s}", shown(found[gap]), flush=True)
    trees = None
    if not options.no_lightgbm:
        found, seconds = lightgbm_auc(log, options.seed, options.threads)
        trees = {"auc": found, "seconds": seconds}
        print(f"{'lightgbm':16s}", shown(found), f"{seconds:.0f} s", flush=True)
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
        "lightgbm": trees,
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def shown(values: dict) -> str:
    mean = np.mean(list(values.values()))
    return " ".join(f"{v:.4f}" for v in values.values()) + f"  mean {mean:.4f}"


if __name__ == "__main__":
    main()
