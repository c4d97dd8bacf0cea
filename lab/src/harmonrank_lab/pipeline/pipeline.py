"""Pipeline: raw logs in, a comparison of fusions out, each step kept until its inputs change."""

__all__ = ["PIPELINE_STEPS", "PipelineConfig", "Steps", "run_pipeline"]

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from msgspec import Meta

from harmonrank import Comparison, __version__, compare
from harmonrank.data import Schema
from harmonrank.metrics import auc
from harmonrank.support import DataError, OnEvent, storage
from harmonrank.support.storage import Store, digest
from harmonrank_lab.events import StepEnded, StepStarted
from harmonrank_lab.upstream import PredictorConfig, fit_predictor, load_predictor, score_log
from harmonrank_lab.upstream.calibrator import calibration_error
from harmonrank_lab.upstream.logs import PARTS, ImportedLog, LogSource, import_log
from harmonrank_lab.upstream.scoring import SCHEMA

PIPELINE_STEPS = ("import", "predict", "score", "compare", "report")
"""What is done, in order; the last is for whoever draws it."""


class _Record(msgspec.Struct):
    """What a step left, as JSON parts."""

    seconds: Annotated[float, Meta(ge=0)]
    outputs: dict[str, str]
    facts: Any


class Steps:
    """Runs steps into one folder, each only if its key or its outcome is not what it was.

    The key is a digest of the step's name, its inputs and options and the package's version. An
    input that is itself an outcome is named by the digest of its files, so that a step which is
    done again with the same outcome makes no other step run.

    Args:
        folder: Holds the outcomes, and `steps/NAME.json` with the key and digest of each.
        names: Of all steps, in order.
        on_event: Called when a step begins and ends.
    """

    def __init__(
        self, folder: str | Path, names: tuple[str, ...], on_event: OnEvent = lambda _: None
    ) -> None:
        self.folder, self._names, self._on_event = Path(folder), names, on_event
        self._store = Store(self.folder / "steps")

    def run(
        self, name: str, inputs: Mapping[str, Any], outputs: list[str], work: Callable[[], Any]
    ) -> tuple[str, Any]:
        """Return the digest of a step's outcome, and its facts, doing the work where needed.

        Args:
            name: One of the names.
            inputs: All that the outcome depends on, as JSON.
            outputs: Files and folders that the work leaves.
            work: Leaves them, replacing what is there, and returns facts as JSON.
        """
        index, steps = self._names.index(name), len(self._names)
        key = digest([name, __version__, inputs])
        record = self._store.find(name, key, lambda parts: self._unchanged(parts, outputs))
        kept = record is not None
        if record is None:
            self._on_event(StepStarted(name, index, steps))
            started = perf_counter()
            outcome = work()
            seconds = perf_counter() - started
            record = _Record(seconds, storage.file_sums(self.folder, outputs), outcome)
            self._store.put(name, key, msgspec.structs.asdict(record))
        self._on_event(StepEnded(name, index, steps, record.seconds, kept))
        return digest(record.outputs), record.facts

    def _unchanged(self, parts: Any, outputs: list[str]) -> _Record | None:
        """Return a step's record if its files are as it left them."""
        record = storage.decode(parts, _Record, "The record of a step")
        sums = record.outputs
        # Each output is a file, or a folder of some.
        told = all(any(f == o or f.startswith(f"{o}/") for f in sums) for o in outputs)
        whole = told and all((self.folder / file).is_file() for file in sums)
        return record if whole and storage.file_sums(self.folder, sums) == sums else None


@dataclass(frozen=True)
class PipelineConfig:
    """All options of a pipeline.

    Attributes:
        rows: Wanted rows of train, valid and test; a half and two quarters if left out.
        folds: Of the out-of-fold scores.
        by: How folds are cut; as the log was split if left out.
        fusion_rows: A fusion is fitted on at most this many rows, as in the paper, and selected
            and measured on half as many each; whole requests are drawn.
        methods: Fusions to compare.
    """

    rows: tuple[int | None, int | None, int | None] = (None, None, None)
    predictor: PredictorConfig = field(default_factory=PredictorConfig)
    folds: int = 5
    by: Literal["user", "time"] | None = None
    fusion_rows: int = 1_000_000
    methods: tuple[str, ...] = ("harmonrank", "closed-form", "prevalence-weights", "logistic")
    seed: int = 0


@dataclass(frozen=True)
class PipelineResult:
    """What a pipeline came to.

    Attributes:
        comparison: Of the fusions.
        prediction: Of each objective, how good its score is on the test rows.
        caveats: What a reader of the numbers has to know about the data.
        digest: Of all that a report of this result depends on.
    """

    comparison: Comparison = field(repr=False)
    prediction: Mapping[str, Mapping[str, Any]]
    caveats: tuple[str, ...]
    digest: str


def run_pipeline(
    source: LogSource,
    folder: str | Path,
    config: PipelineConfig,
    *,
    steps: Steps,
    on_event: OnEvent = lambda _: None,
) -> PipelineResult:
    """Import, predict out of fold, score and compare; each step only if something changed.

    The folder holds log/, predictor/, scores/ and runs/, and a record of each step. A run that
    was cut short goes on where it was.
    """
    run = _Pipeline(source, Path(folder), config, steps, on_event)
    log_digest = run.import_step()
    predictor_digest = run.predict_step(log_digest)
    scores_digest, scored = run.score_step(log_digest, predictor_digest)
    schema = run.schema(scored)
    digest, comparison = run.compare_step(scores_digest, schema)
    return PipelineResult(comparison, scored["prediction"], run.caveats(scored), digest)


@dataclass(frozen=True)
class _Pipeline:
    """The steps of one pipeline."""

    source: LogSource
    folder: Path
    config: PipelineConfig
    steps: Steps
    on_event: OnEvent

    def import_step(self) -> str:
        """Turn raw files into one layout."""
        tables = [*(table.path for table in self.source.tables), *self.source.joined]
        files = [*self.source.files, *tables, *([self.source.truth] if self.source.truth else [])]
        inputs = {
            "kind": self.source.columns.kind,
            "files": {path.name: storage.sha256(path) for path in files},
            "settings": dict(self.source.settings),
            "rows": list(self.config.rows),
        }

        def work() -> dict[str, Any]:
            log, rows, tell = self.folder / "log", self.config.rows, self.on_event
            manifest = import_log(self.source, log, rows=rows, overwrite=True, on_step=tell)
            return {"rows": manifest["rows"]}

        return self.steps.run("import", inputs, ["log"], work)[0]

    def predict_step(self, log: str) -> str:
        """Train the networks."""
        predictor, folds, by = self.config.predictor, self.config.folds, self.config.by
        seed, tell = self.config.seed, self.on_event
        inputs = {"log": log, "config": asdict(predictor), "folds": [folds, by], "seed": seed}

        def work() -> None:
            opened, path = ImportedLog.open(self.folder / "log"), self.folder / "predictor"
            fit = partial(fit_predictor, opened, path, predictor, overwrite=True, on_event=tell)
            fit(folds=folds, by=by, seed=seed)

        return self.steps.run("predict", inputs, ["predictor"], work)[0]

    def score_step(self, log: str, predictor: str) -> tuple[str, dict[str, Any]]:
        """Score every row by networks that never saw its label."""
        inputs = {"log": log, "predictor": predictor, "rows": self.config.fusion_rows}

        def work() -> dict[str, Any]:
            most = self.config.fusion_rows
            parts = {"train": most, "valid": most // 2, "test": most // 2}
            opened = ImportedLog.open(self.folder / "log")
            fitted, path = load_predictor(self.folder / "predictor"), self.folder / "scores"
            tell = self.on_event
            score_log(fitted, opened, path, most_rows=parts, overwrite=True, on_event=tell)
            return self._scored()

        return self.steps.run("score", inputs, ["scores"], work)

    def _scored(self) -> dict[str, Any]:
        """Return which objectives can be ranked in every part, and how good their scores are."""
        schema = Schema.read(self.folder / "scores" / SCHEMA)
        lacking = set()
        for part in PARTS:
            table = pl.scan_parquet(self.table(part))
            means = table.select(pl.col(schema.names).mean()).collect().row(0)
            lacking |= {n for n, mean in zip(schema.names, means, strict=True) if mean in (0, 1)}
        kept = [name for name in schema.names if name not in lacking]
        test = pl.read_parquet(self.table("test"))
        prediction = {name: _quality(test, schema, name) for name in kept}
        return {"objectives": kept, "left_out": sorted(lacking), "prediction": prediction}

    def schema(self, scored: Mapping[str, Any]) -> Schema:
        """Return the schema of the objectives that can be ranked."""
        kept = scored["objectives"]
        if not kept:
            raise DataError(
                "No objective has both a positive and a negative label in each of train, valid "
                "and test; the log is too short, so use more rows."
            )
        return Schema.read(self.folder / "scores" / SCHEMA).subset(kept)

    def table(self, part: str) -> Path:
        """Return where the scored rows of train, valid or test are."""
        return self.folder / "scores" / f"{part}.parquet"

    def compare_step(self, scores: str, schema: Schema) -> tuple[str, Comparison]:
        """Fit the fusions; a fusion whose rows and options are the same is not fitted again."""
        methods, seed = self.config.methods, self.config.seed
        inputs: dict[str, Any] = {"scores": scores, "schema": schema.to_dict(), "seed": seed}
        inputs["methods"] = list(methods)
        comparisons: list[Comparison] = []

        def compared(on_event: OnEvent) -> Comparison:
            train, valid, test = (self.table(part) for part in PARTS)
            return compare(
                train, schema, methods, test=test, valid=valid,
                seed=seed, runs=self.folder / "runs", on_event=on_event,
            )  # fmt: skip

        def work() -> None:
            comparisons.append(compared(self.on_event))
            with storage.new_file(self.folder / "leaderboard.json", overwrite=True) as partial:
                storage.write_json(partial, comparisons[0].board.to_dict())

        digest, _ = self.steps.run("compare", inputs, ["leaderboard.json", "runs"], work)
        # Kept methods make the board again in a moment, intervals and all.
        return digest, comparisons[0] if comparisons else compared(lambda _: None)

    def caveats(self, scored: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what the import noted, and what was left out since."""
        manifest = ImportedLog.open(self.folder / "log").manifest
        odd = (f"{count:,} × {what}." for what, count in manifest["oddities"].items())
        left_out = [
            f"'{name}' is left out: one of train, valid and test has no positive or no negative."
            for name in scored["left_out"]
        ]
        return (*manifest["notes"], *odd, *left_out)


def _quality(test: pl.DataFrame, schema: Schema, name: str) -> dict[str, Any]:
    labels, scores = test[name].to_numpy(), test[schema.objectives[name]].to_numpy()
    truth = schema.truth.get(name)
    return {
        "positives": int(labels.sum()),
        "auc": float(auc(scores, labels)),
        "truth_auc": None if truth is None else float(auc(test[truth].to_numpy(), labels)),
        "ece": calibration_error(scores, labels),
        "mean_score": float(np.mean(scores)),
        "prevalence": float(np.mean(labels)),
    }
