"""Compare: many methods on the same rows, one leaderboard."""

__all__ = ["compare"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.engine import current_engine
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.compare_blocks import CompareBlocks
from harmonrank.evaluation.entry import Entry, entry_of
from harmonrank.evaluation.leaderboard import Leaderboard, leaderboard_of
from harmonrank.evaluation.runs import Runs
from harmonrank.fusion import METHODS, Method, installed_methods, method_class
from harmonrank.fusion.drift.drift_measurement import drift_between
from harmonrank.fusion.position.correction import corrected
from harmonrank.fusion.scoring.packed import PackedModel, pack
from harmonrank.support.errors import HarmonRankError, UsageError, shown
from harmonrank.support.events import MethodEnded, MethodStarted, OnEvent
from harmonrank.support.options import (
    checked_flag,
    checked_listener,
    checked_path,
    checked_seed,
    checked_whole,
)


def compare(
    train: Source,
    test: Source,
    schema: Schema | Mapping[str, Any],
    methods: Sequence[str] | str = "all",
    *,
    valid: Source | None = None,
    baseline: str | Baseline | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    runs: str | Path | None = None,
    recalibrate: bool = False,
    k: int = 10,
    on_event: OnEvent | None = None,
    blocks: CompareBlocks | None = None,
) -> Leaderboard:
    """Fit every method on the same rows and measure it on the same test rows.

    A method that fails is listed with its error, and the others go on.

    Args:
        train: Training rows.
        test: Rows to measure on, with labels.
        schema: Which column is what; a dict of its parts will do.
        methods: Names of methods; 'all' are those whose packages are installed, and the log
            tells which are left out.
        valid: Validation rows; split off the training rows if left out.
        baseline: What ranks today: a column of the test table, or a formula over its columns such
            as 'p_click * (1 + 3*p_like)**0.5'; it stands in the leaderboard as 'today'.
        seed: Given to every fit.
        options: Options of a method by its name.
        runs: A folder that keeps each finished method's model and result. A method that is
            there already, of the same data, options and seed, is not fitted again.
        recalibrate: Measure every method after `recalibrated` on the test rows, without labels;
            entries also tell its quality as fitted.
        k: Where the schema has values per event: value at how many of a request decides.
        on_event: Called with the start and end of each method and its training events; the end of
            a fit hands its model on.
        blocks: The tables themselves, where `train` or `test` are some of their rows.
    """
    require_polars_threads("A comparison")
    schema, seed, listener = Schema.of(schema), checked_seed(seed), checked_listener(on_event)
    recalibrate, k = checked_flag("recalibrate", recalibrate), checked_whole("k", k, least=1)
    folder = None if runs is None else checked_path("runs", runs)
    classes, chosen = _classes(methods), _options(options)
    rows = corrected(read_log(train, schema))
    # One examination curve for all methods, that of the training rows.
    schema = replace(schema, examination=rows.schema.examination)
    exam = corrected(read_log(test, schema))
    rows.require_both_classes("training")
    exam.require_both_classes("test")
    today = _baseline(baseline, test)
    pi = rows.prevalence()
    fixed = [] if today is None else [today.entry(exam, prevalence=pi, k=k)]
    rows, exam = rows.counted(), exam.counted()
    valid_log = None if valid is None else corrected(read_log(valid, schema))
    keep = None if folder is None else Runs(folder, [rows, exam, valid_log], seed, recalibrate, k)
    entries = list(fixed)
    fits = _Fits(rows, valid_log, exam, seed, recalibrate, k, blocks)
    found = {
        name: None if keep is None else keep.find(kind(**chosen.get(name, {})))
        for name, kind in classes.items()
    }
    elsewhere = fits.begun({n: chosen.get(n, {}) for n, entry in found.items() if entry is None})
    for index, (name, kind) in enumerate(classes.items()):
        listener(MethodStarted(name, index, len(classes)))
        method = kind(**chosen.get(name, {}))
        entry, model = found[name], None
        kept = entry is not None
        if entry is None and name in elsewhere:
            entry, packed = current_engine().get(elsewhere[name])
            model = packed and packed.model()
        elif entry is None:
            entry, model = fits.run(method, listener)
            if keep is not None and entry.error is None:
                keep.put(method, entry)
        listener(MethodEnded(name, index, len(classes), entry, kept, model))
        entries.append(entry)
    drift = drift_between(rows, exam)
    return leaderboard_of(rows, exam, entries, drift, recalibrated=recalibrate, baseline=today)


def _baseline(baseline: Any, test: Source) -> Baseline | None:
    if baseline is None or isinstance(baseline, Baseline):
        return baseline
    return Baseline.read(test, baseline)


def _classes(methods: Any) -> dict[str, type[Method]]:
    """Return the classes of the methods that were asked for, each once."""
    if isinstance(methods, str):
        methods = installed_methods() if methods == "all" else (methods,)
    names = tuple(methods) if isinstance(methods, Iterable) else (None,)
    if not all(isinstance(name, str) for name in names):
        raise UsageError(f"`methods` must be 'all' or a list of names. Got {shown(methods)}.")
    if not names:
        raise UsageError(f"Name at least one method. Known: {', '.join(METHODS)}.")
    return {name: method_class(name) for name in dict.fromkeys(names)}


def _options(options: Any) -> dict[str, dict[str, Any]]:
    """Return the options of each method, refused before any fit if one is wrong."""
    whole = {} if options is None else options
    parts = whole.values() if isinstance(whole, Mapping) else (None,)
    if not all(
        isinstance(part, Mapping) and all(isinstance(k, str) for k in part) for part in parts
    ):
        raise UsageError(
            "`options` must map a method to its options by name, as in "
            f"{{'harmonrank-paper': {{'width': 4}}}}. Got {shown(options)}."
        )
    for name, part in whole.items():
        method_class(name)(**part)
    return {name: dict(part) for name, part in whole.items()}


@dataclass(frozen=True)
class _Fits:
    """The rows that every method is fitted and measured on."""

    rows: Log
    valid: Log | None
    exam: Log
    seed: int
    recalibrate: bool
    k: int
    blocks: CompareBlocks | None = None

    def begun(self, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return promises of the results of methods, where workers are in use: one call each."""
        engine = current_engine()
        if engine.name == "local":
            return {}
        given = engine.put(self)
        return {
            name: engine.call(_run_packed, given, name, dict(options[name])) for name in options
        }

    def run(self, method: Method, on_event: OnEvent) -> tuple[Entry, Method | None]:
        """Return a method's result, and the model that has it."""
        started = perf_counter()
        try:
            given = method, self.valid, self.seed, on_event
            if self.blocks is None or not self.blocks.fitted(*given):
                method.fit(
                    self.rows, self.rows.schema, valid=self.valid, seed=self.seed, on_event=on_event
                )
            seconds = perf_counter() - started
            as_fitted = method.evaluate(self.exam, k=self.k) if self.recalibrate else None
            scorer = method.recalibrated(self.exam) if self.recalibrate else method
            fused = scorer.score(self.exam)
            quality = method.measured(fused, self.exam, k=self.k)
            entry = entry_of(method.name, fused, self.exam, quality, seconds, as_fitted)
            return entry if self.blocks is None else self.blocks.measured(entry, scorer), scorer
        except Exception as error:
            ours = isinstance(error, HarmonRankError)
            message = str(error) if ours else f"{type(error).__name__}: {error}"
            return Entry(method.name, perf_counter() - started, error=message), None


def _run_packed(
    fits: _Fits, name: str, options: dict[str, Any]
) -> tuple[Entry, PackedModel | None]:
    """Run a method on a worker; its model comes back as bytes."""
    entry, model = fits.run(method_class(name)(**options), lambda _: None)
    return entry, None if model is None else pack(model)
