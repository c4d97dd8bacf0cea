"""What a fusion loses by learning from scores that have seen their labels.

    python benchmarks/out_of_fold.py --json benchmarks/results/out_of_fold.json

A log is simulated, imported and predicted with folds. Fusions are then fitted on training rows
scored in sample (by the network of all training rows) and out of fold, selected and measured on
validation and test rows scored by the mean of all networks' logits ("mean", what `harmonrank
predict score` does where no network learns from validation rows, as here), by the network of all
training rows alone ("full"), or each by one fold network chosen by chance ("one"). AUC-sums are
exact, by the true probabilities.
"""

import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.evaluation import compare
from harmonrank.metrics import auc
from harmonrank_lab.upstream import FULL, PredictorConfig, fit_predictor
from harmonrank_lab.upstream.logs import ImportedLog, find_kuairand, import_log
from harmonrank_lab.upstream.scoring import fusion_schema, score_frame
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log


def scores_of(predictor, frame: pl.DataFrame, how: str, seed: int) -> np.ndarray:
    """Score rows that no network saw, in one of three ways."""
    rows = predictor.encoder.rows(frame, labels=False)
    if how == "full":
        return predictor.members[FULL].score(rows)
    if how == "mean":
        return predictor.score(rows)
    folds = np.stack([m.score(rows) for n, m in predictor.members.items() if n != FULL])
    chosen = np.random.default_rng(seed).integers(0, len(folds), frame.height)
    return folds[chosen, np.arange(frame.height)]


def with_scores(frame: pl.DataFrame, p: np.ndarray, schema: Schema) -> pl.DataFrame:
    columns = zip(schema.score_columns, p.T, strict=True)
    return frame.with_columns(pl.Series(name, column) for name, column in columns)


def run(log: ImportedLog, place: Path, options: argparse.Namespace) -> dict:
    config = PredictorConfig(network=options.network, epochs=options.epochs, refits=0)
    folds, seed = options.folds, options.seed
    predictor = fit_predictor(log, place / "model", config, folds=folds, seed=seed)
    schema, joined = fusion_schema(log)
    users = log.users().select(joined)
    frames = {
        part: pl.concat(log.batches(part)).join(
            users, on=log.columns.user, how="left", maintain_order="left"
        )
        for part in ("train", "valid", "test")
    }
    kept = [n for n in schema.names if all(0 < f[n].mean() < 1 for f in frames.values())]
    schema, names = schema.subset(kept), list(schema.names)
    own = [names.index(name) for name in kept]
    result: dict = {"rows": log.rows, "objectives": kept, "score_auc": {}, "fusion": []}
    train = {
        "in-sample": scores_of(predictor, frames["train"], "full", seed)[:, own],
        "out-of-fold": score_frame(predictor, frames["train"], own="train")[:, own],
    }
    for how, p in train.items():
        result["score_auc"][f"train, {how}"] = aucs(p, frames["train"], kept)
    drop = list(log.columns.truth.values())
    for exam in ("mean", "full", "one"):
        later = {
            part: scores_of(predictor, frames[part], exam, seed)[:, own]
            for part in ("valid", "test")
        }
        result["score_auc"][f"test, {exam}"] = aucs(later["test"], frames["test"], kept)
        for how, p in train.items():
            board = compare(
                with_scores(frames["train"].drop(drop), p, schema),
                with_scores(frames["test"], later["test"], schema),
                schema,
                options.methods.split(","),
                valid=with_scores(frames["valid"], later["valid"], schema),
                seed=options.seed,
            )
            for entry in board.entries:
                total = None if entry.quality is None else entry.quality.exact_auc_sum
                regret = None if entry.quality is None else entry.quality.regret
                result["fusion"].append(
                    {
                        "method": entry.name,
                        "train": how,
                        "test": exam,
                        "auc_sum": total,
                        "regret": regret,
                        "error": entry.error,
                    }
                )
                print(
                    f"{entry.name:20s} train {how:12s} test {exam:5s} {total} {regret}", flush=True
                )
    return result


def aucs(p: np.ndarray, frame: pl.DataFrame, names: list[str]) -> dict:
    found = {n: float(auc(p[:, m], frame[n].to_numpy())) for m, n in enumerate(names)}
    print(" ".join(f"{value:.4f}" for value in found.values()), flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--items", type=int, default=2_000)
    parser.add_argument("--epochs", type=int, default=10, help="at most, of each network")
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", default="mmoe")
    parser.add_argument("--methods", default="harmonrank,logistic,closed-form")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with TemporaryDirectory() as scratch:
        place = Path(scratch)
        world = KuaiRandWorld(options.users, options.items)
        simulate_log(world, options.rows, place / "raw", seed=options.seed)
        import_log(find_kuairand(place / "raw"), place / "log")
        result = run(ImportedLog.open(place / "log"), place, options)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
