"""Compare: many methods on the same rows."""

__all__ = ["USUAL", "compare"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

from harmonrank.data import Log, Schema, Source, read_log
from harmonrank.data.reading.forks import require_polars_threads
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.data.splitting import Cut, split_rows
from harmonrank.engine import Engine, current_engine, using
from harmonrank.evaluation.baseline import Baseline
from harmonrank.evaluation.comparison import Comparison
from harmonrank.evaluation.drift_notes import drift_notes
from harmonrank.evaluation.entry import Entry, entry_of
from harmonrank.evaluation.leaderboard import leaderboard_of
from harmonrank.evaluation.runs import Runs
from harmonrank.evaluation.table_rows import TableRows
from harmonrank.fusion import METHODS, Method, installed_methods, method_class
from harmonrank.fusion.drift.measurement import drift_between
from harmonrank.fusion.influence import influence_of
from harmonrank.fusion.method import measured
from harmonrank.fusion.position import corrected
from harmonrank.fusion.quality.block_quality import require_measurable
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.fusion.quality.upstream import missing_of
from harmonrank.fusion.saved import PackedModel, pack
from harmonrank.support.errors import HarmonRankError, UsageError, shown
from harmonrank.support.events import MethodEnded, MethodStarted, OnEvent
from harmonrank.support.options import (
    checked_flag,
    checked_listener,
    checked_path,
    checked_seed,
    checked_whole,
)

USUAL = ("harmonrank", "logistic", "closed-form")
"""The methods that are compared unless others are named."""


def compare(
    train: Source,
    schema: Schema | Mapping[str, Any],
    methods: Sequence[str] | str = USUAL,
    *,
    test: Source | None = None,
    split: Literal["time", "request"] | Cut | None = None,
    valid: Source | None = None,
    baseline: str | Baseline | None = None,
    seed: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    runs: str | Path | None = None,
    recalibrate: bool = False,
    k: int = 10,
    memory: str | None = None,
    engine: Engine | None = None,
    on_event: OnEvent | None = None,
) -> Comparison:
    """Fit every method on the same rows and measure it on the same test rows.

    A method that fails is listed with its error, and the others go on.

    Args:
        train: Training rows, or a log that `split` cuts.
        schema: Which column is what; a dict of its parts will do.
        methods: Names of methods; 'all' are those whose packages are installed, and the log
            tells which are left out.
        test: Rows to measure on, with labels.
        split: In place of `test`: measure on the newest fifth of the rows ('time'), on a fifth of
            the requests ('request'), or as a `Cut` says.
        valid: Validation rows; split off the training rows if left out.
        baseline: What ranks today: a column of the test table, or a formula over its columns such
            as 'p_click * (1 + 3*p_like)**0.5'; it stands in the leaderboard as 'today'.
        seed: Given to every fit.
        options: Options of a method by its name.
        runs: A folder that keeps each finished method's model and result. A method that is
            there already, of the same data, options and seed, is not fitted again.
        recalibrate: Measure every method after `recalibrated` on the test rows, without labels;
            entries also tell its quality as fitted.
        k: Events among how many of a request are counted. Where the schema has values per event,
            what these are worth decides.
        memory: How much a table may take, such as '3GB'; half of what is free if left out. A
            larger parquet table is read in blocks.
        engine: Whose workers fit and measure a method each (`open_engine`); this process if left
            out.
        on_event: Called with the start and end of each method and its training events.
    """
    require_polars_threads("A comparison")
    schema, seed, listener = Schema.of(schema), checked_seed(seed), checked_listener(on_event)
    recalibrate, k = checked_flag("recalibrate", recalibrate), checked_whole("k", k, least=1)
    folder = None if runs is None else checked_path("runs", runs)
    classes, chosen = _classes(methods), _options(options)
    cut = Cut(split, seed=seed) if isinstance(split, str) else split
    parts = _Parts.read(train, test, cut, schema, memory)
    if folder is not None and (parts.learn.blocks or parts.test.blocks):
        raise UsageError("--runs needs all rows in memory; leave it out, or raise --memory.")
    rows, tested, schema = parts.learn.log, parts.test.log, parts.schema
    rows.require_both_classes("training")
    tested.require_both_classes("test")
    today = Baseline.of(baseline, train if test is None else test, parts.test.index)
    pi = rows.prevalence()
    entries = [] if today is None else [today.entry(tested, prevalence=pi, k=k)]
    lost = {"train": missing_of(rows), "test": missing_of(tested)}
    position = PositionCorrection.of(tested)
    rows, tested = rows.counted(), tested.counted()
    held = None if valid is None else TableRows.read(valid, schema, memory)
    held_log = None if held is None else held.log
    keep = None if folder is None else Runs(folder, [rows, tested, held_log], seed, recalibrate, k)
    fits = _Fits(
        parts.learn.table, None if held is None else held.table, tested, parts.test, seed,
        recalibrate, k, memory, today is not None,
    )  # fmt: skip
    with using(engine):
        finished = fits.all(classes, chosen, keep, listener)
    entries += [entry for entry, _ in finished.values()]
    drift = drift_between(rows, tested)
    board = leaderboard_of(rows, tested, entries, drift, recalibrated=recalibrate, baseline=today)
    if parts.learn.sampled is not None:
        board = replace(board, train_rows=parts.learn.sampled.rows)
    if parts.test.sampled is not None:
        board = replace(board, test_rows=parts.test.sampled.rows)
    names = zip(("Training", "Test"), lost.values(), strict=True)
    notes = parts.words(list(classes))
    notes += [f"{part} rows. {missing}" for part, missing in names if missing]
    notes += [] if position is None else [f"Test rows. {position.words()}"]
    models = {name: model for name, (_, model) in finished.items() if model is not None}
    judge = next(iter(models.values()), None) if drift.replaced and not recalibrate else None
    shares = None if judge is None else judge.corrections(tested)
    notes += drift_notes(drift, recalibrated=recalibrate, shares=shares)
    judged = board.verdict.method if board.verdict else next(iter(models), "")
    if judged in models:
        board = replace(board, influence=influence_of(models[judged], tested))
    return Comparison(board, models, tuple(notes), rows, tested, seed, lost, position)


@dataclass(frozen=True)
class _Parts:
    """The rows to learn from and to measure on.

    Attributes:
        schema: With one examination curve for all methods, that of the training rows.
        cut: How one table was cut, in words.
    """

    learn: TableRows
    test: TableRows
    schema: Schema
    cut: str | None = None

    @classmethod
    def read(
        cls, train: Source, test: Source | None, cut: Cut | None, schema: Schema, memory: str | None
    ) -> "_Parts":
        """Read two tables, or cut one."""
        if (test is None) == (cut is None):
            raise UsageError(
                "Give either --test TABLE, or --split time (or request) to cut one table."
            )
        learn = TableRows.read(train, schema, memory)
        if test is not None:
            shared = replace(schema, examination=learn.log.schema.examination)
            tested = TableRows.read(test, shared, memory)
            if tested.blocks is not None or (learn.blocks is not None and schema.position):
                require_measurable(schema)
            return cls(learn, tested, shared)
        assert cut is not None
        if learn.blocks is not None:
            raise UsageError(
                "--split needs all rows in memory; write the parts with `harmonrank.split` in "
                "Python, or raise --memory."
            )
        whole = read_log(train, schema)
        split = split_rows(train, cut, time=schema.time, request=schema.request)
        row_numbers = split.rows("test")
        rows = corrected(whole.take(split.rows("train")))
        shared = replace(schema, examination=rows.schema.examination)
        tested = TableRows(corrected(read_log(whole.take(row_numbers), shared)), row_numbers)
        return cls(TableRows(rows), tested, shared, split.words())

    def words(self, methods: Sequence[str]) -> list[str]:
        """Return how rows were cut, and what was done with a table that is read in blocks."""
        told = [] if self.cut is None else [self.cut]
        if self.learn.sampled is not None:
            few = [name for name in methods if method_class(name).traits.whole]
            how = "every method is fitted on all of them."
            if few:
                how = (
                    f"methods are fitted on all of them, but {', '.join(few)} on as many as "
                    "--memory holds, drawn at random."
                )
            told.append(f"Training rows. Read {self.learn.sampled.rows:,} rows in blocks: {how}")
        sampled = self.test.sampled
        return told if sampled is None else [*told, f"Test rows. {sampled.words()}"]


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


Finished = tuple[Entry, Method | None]
"""A method's result, and the model that has it."""


@dataclass(frozen=True)
class _Fits:
    """The rows that every method is fitted and measured on."""

    train: Log | LogBlocks
    valid: Log | LogBlocks | None
    test: Log
    whole: TableRows
    seed: int
    recalibrate: bool
    k: int
    memory: str | None
    baseline: bool

    def all(
        self,
        classes: Mapping[str, type[Method]],
        options: Mapping[str, Mapping[str, Any]],
        keep: Runs | None,
        listener: OnEvent,
    ) -> dict[str, Finished]:
        """Return what every method came to; one that was kept is not fitted again."""
        methods = {name: kind(**options.get(name, {})) for name, kind in classes.items()}
        kept = {name: None if keep is None else keep.find(m) for name, m in methods.items()}
        elsewhere = self._begun({n: options.get(n, {}) for n in methods if kept[n] is None})
        finished: dict[str, Finished] = {}
        for index, (name, method) in enumerate(methods.items()):
            listener(MethodStarted(name, index, len(classes)))
            entry, model = kept[name], None
            if keep is not None and entry is not None:
                model = keep.model(name, self.test)
            elif name in elsewhere:
                entry, packed = current_engine().get(elsewhere[name])
                model = packed and packed.model()
            else:
                entry, model = self.run(method, listener)
                if keep is not None and entry.error is None:
                    keep.put(method, entry)
            listener(MethodEnded(name, index, len(classes), entry, kept[name] is not None))
            finished[name] = entry, model
        return finished

    def _begun(self, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return promises of the results of methods, where workers are in use: one call each."""
        engine = current_engine()
        if engine.name == "local":
            return {}
        given = engine.put(self)
        return {
            name: engine.call(_run_packed, given, name, dict(options[name])) for name in options
        }

    def run(self, method: Method, on_event: OnEvent) -> Finished:
        """Fit a method and measure it; one that cannot be has an entry that says why."""
        started = perf_counter()
        try:
            method.fit(
                self.train,
                self.train.schema,
                valid=self.valid,
                seed=self.seed,
                on_event=on_event,
                memory=self.memory,
            )
            seconds = perf_counter() - started
            as_fitted = method.evaluate(self.test, k=self.k) if self.recalibrate else None
            blind = replace(self.test, labels=None)
            scorer = method.recalibrated(blind) if self.recalibrate else method
            fused = scorer.score(self.test)
            quality = measured(method, fused, self.test, k=self.k)
            entry = entry_of(method.name, fused, self.test, quality, seconds, as_fitted, k=self.k)
            return self.whole.exact(entry, scorer, moved=not self.baseline), scorer
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
