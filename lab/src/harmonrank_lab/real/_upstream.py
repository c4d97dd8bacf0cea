"""Upstream: one gradient boosting per objective, fitted on older rows, scores the newer ones."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from harmonrank.data import Schema
from harmonrank.support import DataError, import_extra
from harmonrank.support.storage import read_toml
from harmonrank_lab.real._log import RealRows

LEAST_POSITIVES = 40
"""An objective needs so many positives and negatives in each of the three parts."""

_PRIOR_ROWS = 10
_MOST_CATEGORIES = 1000
_ROUNDS = 100
_BOOSTING = read_toml(Path(__file__).parent / "boosting.toml", "settings")


@dataclass(frozen=True)
class Prepared:
    """What the fusions learn from and are measured on.

    Attributes:
        train: Rows of the fusions, with a score per objective.
        test: Newer rows.
        schema: Without columns of items.
        with_items: The same with them, or None where the log has none.
        user: The column whose rows are kept together when rows are resampled.
        positives: Of each label in the rows of upstream models, fusions and test.
    """

    train: pl.DataFrame
    test: pl.DataFrame
    schema: Schema
    with_items: Schema | None
    user: str
    positives: dict[str, list[int]]

    def write(self, folder: Path) -> None:
        """Write the tables and the schemas, which `harmonrank compare` reads."""
        folder.mkdir()
        self.train.write_parquet(folder / "train.parquet")
        self.test.write_parquet(folder / "test.parquet")
        for name, schema in (("schema", self.schema), ("schema-items", self.with_items)):
            if schema is not None:
                (folder / f"{name}.toml").write_text(schema.to_toml(), encoding="utf-8")

    def facts(self) -> dict[str, Any]:
        """Return how many rows, requests, users and positives there are."""
        return {
            "rows": {"train": len(self.train), "test": len(self.test)},
            "requests": self.test["request_id"].n_unique(),
            "users": self.test[self.user].n_unique(),
            "positives": {name: self.positives[name] for name in self.schema.names},
            "too_few": {n: k for n, k in self.positives.items() if n not in self.schema.names},
        }


def prepare(rows: RealRows, seed: int) -> Prepared:
    """Give newer rows the scores of models that learned from older ones.

    Every row has the same kind of features: rates of users and items among rows that came before
    its part or its day, and what was known when it was shown. No model sees a row that a fusion
    learns from.

    Raises:
        DataError: No label has enough positives.
    """
    parts = [rows.frame.filter(pl.col("part") == part) for part in (1, 2, 3)]
    positives = {n: [int(part[n].sum()) for part in parts] for n in rows.labels}
    rarer = {
        n: min(min(k, len(p) - k) for k, p in zip(counts, parts, strict=True))
        for n, counts in positives.items()
    }
    kept = [name for name in rows.labels if rarer[name] >= LEAST_POSITIVES]
    if not kept:
        raise DataError(
            f"{rows.log.title} needs a label with {LEAST_POSITIVES} positives and negatives in "
            f"each part: upstream, fusion and test. Got these positives: {positives}."
        )
    pieces = [_with_rates(some, known, rows.keys, kept) for some, known in rows.known()]
    scored = _scored(pl.concat(pieces, how="vertical_relaxed"), rows, kept, seed)
    scores, unwanted = {n: f"p_{n}" for n in kept}, [n for n in rows.log.unwanted if n in kept]
    schema, with_items = (
        Schema(
            scores,
            context=context,
            request="request_id",
            unwanted=unwanted,
            user=rows.keys[0],
            time=rows.time,
        )
        for context in (rows.log.context, [*rows.log.context, *rows.log.item_context])
    )
    ids = ["request_id", *rows.keys[:2], *filter(None, [rows.time])]
    columns = dict.fromkeys([*ids, *with_items.context, *scores, *scores.values()])
    train, test = (scored.filter(pl.col("part") == part).select(*columns) for part in (2, 3))
    items = with_items if rows.log.item_context else None
    return Prepared(train, test, schema, items, rows.keys[0], positives)


def _with_rates(
    rows: pl.DataFrame, known: pl.DataFrame, keys: tuple[str, ...], labels: list[str]
) -> pl.DataFrame:
    """Add counts and rates by key among known rows, drawn towards the mean rate of all."""
    known = known.with_columns(
        pl.lit(None, pl.Int64).alias(n) for n in {*labels} - {*known.columns}
    )
    means = known.select(pl.col(labels).cast(pl.Float64).mean()).row(0, named=True)
    for key in keys:
        rates = [
            (pl.col(n).sum() + _PRIOR_ROWS * (means[n] or 0.0)) / (pl.col(n).count() + _PRIOR_ROWS)
            for n in labels
        ]
        named = [rate.alias(_rate(key, n)) for rate, n in zip(rates, labels, strict=True)]
        table = known.group_by(key).agg(pl.len().alias(f"{key} count"), *named)
        rows = rows.join(table, on=key, how="left", maintain_order="left")
        filled = [pl.col(_rate(key, n)).fill_null(means[n] or 0.0) for n in labels]
        rows = rows.with_columns(pl.col(f"{key} count").fill_null(0), *filled)
    return rows


def _rate(key: str, label: str) -> str:
    return f"rate of {label} by {key}"


def _scored(frame: pl.DataFrame, rows: RealRows, labels: list[str], seed: int) -> pl.DataFrame:
    """Fit a model per objective on the rows of part 1; score the others."""
    lightgbm = import_extra("lightgbm", who="lab real")
    codes = [n for n in rows.categorical if frame[n].n_unique() <= _MOST_CATEGORIES]
    numbers = [*rows.numeric, *(f"{key} count" for key in rows.keys)]
    numbers += [_rate(key, name) for key in rows.keys for name in labels]
    X = frame.select(
        *(pl.col(name).cast(pl.Float64) for name in numbers),
        *(pl.col(name).cast(pl.String).rank("dense").cast(pl.Float64) for name in codes),
    ).to_numpy()
    old = (frame["part"] == 1).to_numpy()
    categories = list(range(len(numbers), X.shape[1]))
    scored = frame.filter(pl.Series(~old))
    for name in labels:
        learned = lightgbm.Dataset(
            X[old], frame[name].to_numpy()[old], categorical_feature=categories
        )
        model = lightgbm.train({**_BOOSTING, "seed": seed}, learned, _ROUNDS)
        scored = scored.with_columns(pl.Series(f"p_{name}", np.asarray(model.predict(X[~old]))))
    return scored
