"""Scoring: a log or a table with the predicted probability of every objective."""

__all__ = ["SCHEMA", "fusion_schema", "score_frame", "score_log", "score_rows"]

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from harmonrank.data import Schema, reading
from harmonrank.data.reading import ParquetWriter
from harmonrank.support import OnEvent, UsageError
from harmonrank.support.storage import check_output, new_file, new_folder
from harmonrank_lab.events import ScoredRows
from harmonrank_lab.upstream.logs import PARTS, ImportedLog
from harmonrank_lab.upstream.predictor import Predictor, fingerprint
from harmonrank_lab.upstream.side import spread

SCHEMA = "schema.toml"
"""The file that tells scored tables from any other folder."""

_CONTEXT_VALUES = 16
_USER_COLUMNS = 4


def score_log(
    predictor: Predictor,
    log: ImportedLog,
    path: str | Path,
    *,
    most_rows: Mapping[str, int] | None = None,
    overwrite: bool = False,
    on_event: OnEvent = lambda _: None,
) -> Schema:
    """Write train, valid and test of a log as tables that a fusion can be fitted on.

    No row is scored by a network that saw its label, or a fusion would trust what test rows do not
    keep. Of the log that the predictor was fitted on, a training row is scored out of fold, by the
    network that never saw it, and a validation row by the networks that learned from training
    rows alone. Its test rows, and all rows of any other log, are scored by the networks that
    learned from both.

    Args:
        predictor: A fitted predictor.
        log: An imported log.
        path: The folder to write: train.parquet, valid.parquet, test.parquet, schema.toml.
        most_rows: Per part, about how many rows are kept at most; whole requests are drawn.
        overwrite: Replace an earlier folder.
        on_event: Called as rows are done.

    Raises:
        UsageError: The training rows would be scored by a network that saw their labels.
    """
    own = fingerprint(log) == predictor.log
    if own and predictor.folds is None:
        raise UsageError(
            "This predictor has no folds, so its scores of the log's own training rows have seen "
            "their labels; fit it with --folds 5."
        )
    predictor = predictor.with_log(log)
    schema, user_columns = fusion_schema(log)
    users = log.users()
    traits = None if users is None or not user_columns else users.select(user_columns)
    job = _Job(predictor, log, own, schema, traits, dict(most_rows or {}))
    with new_folder(path, holds=SCHEMA, overwrite=overwrite) as folder:
        for part in PARTS:
            job.write(part, folder, on_event)
        (folder / SCHEMA).write_text(schema.to_toml(), encoding="utf-8")
    return schema


@dataclass(frozen=True)
class _Job:
    """What the parts of a log are scored by."""

    predictor: Predictor
    log: ImportedLog
    own: bool
    schema: Schema
    traits: pl.DataFrame | None
    most_rows: Mapping[str, int]

    def write(self, part: str, folder: Path, on_event: OnEvent) -> None:
        """Write the table of one part."""
        log, done = self.log, 0
        with ParquetWriter(folder / f"{part}.parquet") as writer:
            for frame in log.batches(part, rows=reading.PIECE_ROWS):
                done += frame.height
                frame = self._drawn(part, frame)
                p = score_frame(self.predictor, frame, own=part if self.own else None)
                writer.put(self._table(part, frame, p))
                on_event(ScoredRows(part, done, log.rows[part]))

    def _drawn(self, part: str, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows of requests that a hash chooses, all if there are not too many."""
        rows = self.log.rows[part]
        share = self.most_rows.get(part, rows) / max(rows, 1)
        if share >= 1:
            return frame
        return frame.filter(spread(frame[self.log.columns.request]) < np.uint64(share * (1 << 32)))

    def _table(self, part: str, frame: pl.DataFrame, p: np.ndarray) -> pl.DataFrame:
        """Return the columns that a fusion reads, with the scores."""
        c, schema = self.log.columns, self.schema
        if self.traits is not None:
            frame = frame.join(self.traits, on=c.user, how="left", maintain_order="left")
        kept = dict.fromkeys([c.row, c.request, *schema.context, *schema.names])
        # What is known of the truth is for measuring; no fit may come near it.
        truth = [] if part == "train" else list(schema.truth.values())
        scores = [pl.Series(name, p[:, m]) for m, name in enumerate(schema.score_columns)]
        return frame.select(*kept, *scores, *truth)


def fusion_schema(log: ImportedLog) -> tuple[Schema, list[str]]:
    """Return the schema of scored tables, and the user columns that are joined to the rows.

    Context are the row's own categories and the first few user columns with few values: what a
    fusion can personalise by, without IDs.
    """
    c = log.columns
    users, joined = log.users(), []
    if users is not None and c.users is not None:
        few = [n for n in c.users.categorical if 1 < users[n].n_unique() <= _CONTEXT_VALUES]
        named = [n for n in few if not n.startswith("onehot")]
        joined = [c.user, *named[:_USER_COLUMNS]]
    scores, context = {name: f"p_{name}" for name in c.objectives}, (*c.categorical, *joined[1:])
    return Schema(scores, context=context, request=c.request, truth=dict(c.truth)), joined


def score_frame(predictor: Predictor, frame: pl.DataFrame, *, own: str | None = None) -> np.ndarray:
    """Return probabilities, (rows, objectives) float32, by networks not trained on these rows.

    Args:
        predictor: A fitted predictor.
        frame: Rows of a log.
        own: Which part of the predictor's own log they are of; None if of no part.
    """
    rows = predictor.encoder.rows(frame, labels=False)
    if own != "train":
        return predictor.score_valid(rows) if own == "valid" else predictor.score(rows)
    assert predictor.folds is not None
    fold = predictor.folds.of(frame)
    p = np.empty((len(rows), len(predictor.objectives)), np.float32)
    for k in np.unique(fold):
        mine = np.flatnonzero(fold == k)
        p[mine] = predictor.of_fold(int(k)).score(rows.take(mine))
    return p


def score_rows(
    predictor: Predictor,
    source: str | Path,
    output: str | Path,
    *,
    overwrite: bool = False,
    on_event: OnEvent = lambda _: None,
) -> int:
    """Write the rows of a parquet file, in order, with a score per objective; return their number.

    They are taken for new: rows of the predictor's own log belong to `score_log`. Users and items
    that the predictor does not know are scored by what else the row tells.
    """
    source, output = Path(source), Path(output)
    names = reading.column_names(source)
    reading.check_columns(source, names, predictor.encoder.reads)
    added = [f"p_{name}" for name in predictor.objectives]
    for name in added:
        if name in names:
            raise UsageError(f"'{source}' has a column '{name}' already; drop or rename it.")
    check_output(output, overwrite=overwrite)
    total, done = reading.count_rows(source), 0
    with (
        new_file(output, overwrite=overwrite) as partial,
        ParquetWriter(partial) as writer,
        closing(reading.pieces(source)) as frames,
    ):
        for frame in frames:
            p = score_frame(predictor, frame)
            scores = [pl.Series(name, p[:, m]) for m, name in enumerate(added)]
            writer.put(frame.with_columns(scores))
            done += frame.height
            on_event(ScoredRows("rows", done, total))
    return done
