"""The logs an experiment runs on, and the study cell: one experiment, which is never run again."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypedDict

import msgspec
import numpy as np

from harmonrank.data import Log, Schema, read_log
from harmonrank.data.reading import check_columns, column_names, count_rows
from harmonrank.support import DataError, OnEvent, UsageError, did_you_mean
from harmonrank.support.storage import decode, digest, read_json, sha256
from harmonrank.worlds import SCHEMA, world
from harmonrank_lab.paper_tables._table import FIGURES
from harmonrank_lab.worlds import WORLDS, logs_of

_PAPER = FIGURES["worlds"]
_WORDS = {"train": "training", "valid": "validation", "test": "test"}
_FILES = tuple(f"{name}.parquet" for name in _WORDS)


class _Failed(TypedDict):
    """The result of a cell that the data or settings do not allow."""

    error: str


class StudyCell(ABC):
    """One experiment with its own file of results.

    Attributes:
        result: The type of what `run` returns, as JSON parts.
    """

    result: ClassVar[Any]

    @property
    @abstractmethod
    def name(self) -> str:
        """A short name for people, unlike that of most other cells."""

    @abstractmethod
    def identity(self) -> dict[str, Any]:
        """Return all that decides the result, as JSON parts."""

    @abstractmethod
    def run(self, on_event: OnEvent, checkpoint: Path) -> dict[str, Any]:
        """Do the experiment; return numbers as JSON parts."""

    def decoded(self, content: Any) -> dict[str, Any]:
        """Return a stored result, which may be the error that the cell ended with."""
        failed = isinstance(content, dict) and "error" in content
        return dict(decode(content, _Failed if failed else self.result, self.name))

    @property
    def key(self) -> str:
        """The name of its file: unlike that of any other cell."""
        slug = "".join(c if c.isalnum() or c in "-._" else "-" for c in self.name)
        return f"{slug[:100]}-{self.digest[:10]}"

    @property
    def digest(self) -> str:
        """A checksum of all that decides the result."""
        return digest(self.identity())

    @property
    def place(self) -> tuple[Any, ...]:
        """Cells in this order share their rows with the one before, where they can."""
        return (self.name,)


class Logs(NamedTuple):
    """Rows to learn from, to select by and to measure on."""

    train: Log
    valid: Log
    test: Log


class _Data:
    """Where rows come from.

    Attributes:
        name: As the command line has it.
        objectives: All of them.
        paper: The paper's data set that this one stands in for, if any.
        fixed_rows: Whether every seed sees the same rows.
    """

    name: str
    objectives: tuple[str, ...]
    paper: str | None
    fixed_rows: bool

    @property
    def three(self) -> tuple[str, ...] | None:
        """The objectives of the paper's smaller setting, or the first three; None of few."""
        for known in _PAPER.values():
            if set(known["three"]) < set(self.objectives):
                return tuple(known["three"])
        return self.objectives[:3] if len(self.objectives) > 3 else None

    def latent_correlation(self) -> np.ndarray | None:
        """Return how the latent logits of the objectives correlate, which only a world knows."""
        return None


class WorldData(_Data):
    """A world: seeds draw other rows, and the best possible result is known."""

    fixed_rows = False

    def __init__(self, name: str, rows: int) -> None:
        self._world, self._rows = world(name), rows
        self.name, self.objectives = name, self._world.objectives
        self.paper = name if name in _PAPER else None

    def words(self) -> str:
        """Say which world, its name before a comma."""
        stands = _PAPER[self.name]["stands"] if self.paper else ""
        half = self._rows // 2
        return (
            f"simulated world ‘{self.name}’{stands}, {self._rows:,} training, "
            f"{half:,} validation and {half:,} test rows, other rows for every seed"
        )

    def identity(self) -> dict[str, Any]:
        """Return world and rows."""
        return {"world": self.name, "rows": self._rows}

    def logs(self, seed: int, objectives: tuple[str, ...]) -> Logs:
        """Draw the rows; those last drawn are kept."""
        return _drawn(self.name, self._rows, seed, objectives)

    def latent_correlation(self) -> np.ndarray:
        """Return Σ_mn/√(Σ_mm Σ_nn) with Σ = ΛΛᵀ + diag σ²."""
        covariance = self._world.covariance
        spread = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / np.outer(spread, spread))


@lru_cache(maxsize=1)
def _drawn(name: str, rows: int, seed: int, objectives: tuple[str, ...]) -> Logs:
    return Logs(*logs_of(world(name).subset(objectives), rows, seed))


class _Ceiling(msgspec.Struct):
    """What a simulation says of itself, as far as it is read again."""

    world: str | None = None


class FolderData(_Data):
    """A folder with schema.toml and train, valid and test as parquet: the same rows always."""

    fixed_rows = True

    def __init__(self, path: Path, rows: int | None) -> None:
        missing = [n for n in (SCHEMA, *_FILES) if not (path / n).is_file()]
        if missing:
            raise DataError(
                f"The folder '{path}' has no {' and no '.join(missing)}; expected {SCHEMA}, "
                f"{', '.join(_FILES)}, as `harmonrank simulate` writes them."
            )
        self._path, self._rows = path, rows
        self._schema = Schema.read(path / SCHEMA)
        self.name, self.objectives = str(path), self._schema.names
        ceiling = path / "ceiling.json"
        self._simulated = read_json(ceiling, _Ceiling).world if ceiling.is_file() else None
        alike = (n for n, known in _PAPER.items() if set(known["five"]) == set(self.objectives))
        stands = self._simulated or next(alike, None)
        self.paper = stands if stands in _PAPER else None
        if len(self.objectives) < 2:
            raise DataError(f"'{path / SCHEMA}' names one objective; expected at least two.")
        wanted = (*self._schema.names, *self._schema.score_columns, *self._schema.context)
        for file in (path / name for name in _FILES):
            check_columns(file, column_names(file), wanted)

    def words(self) -> str:
        """Say which folder, its name before a comma."""
        about = f", a simulation of the world ‘{self._simulated}’" if self._simulated else ""
        counts = _limited([count_rows(self._path / name) for name in _FILES], self._rows)
        told = [f"{n:,} {word}" for n, word in zip(counts, _WORDS.values(), strict=True)]
        rows = f"{told[0]}, {told[1]} and {told[2]} rows"
        return f"folder ‘{self._path.name}’{about}, {rows}, the same for every seed"

    def identity(self) -> dict[str, Any]:
        """Return checksums of the files."""
        return {"folder": self._sums, "rows": self._rows}

    @cached_property
    def _sums(self) -> dict[str, str]:
        return {name: sha256(self._path / name) for name in (SCHEMA, *_FILES)}

    def logs(self, seed: int, objectives: tuple[str, ...]) -> Logs:  # noqa: ARG002
        """Read the rows; those last read are kept."""
        return _read(self._path, objectives, self._rows)


Data = WorldData | FolderData


def _limited(counts: Sequence[int], rows: int | None) -> list[int]:
    """Return how many rows of each part are taken: so many to train, half as many of the others."""
    if rows is None:
        return list(counts)
    return [min(both) for both in zip(counts, (rows, rows // 2, rows // 2), strict=True)]


@lru_cache(maxsize=1)
def _read(path: Path, objectives: tuple[str, ...], rows: int | None) -> Logs:
    whole = Schema.read(path / SCHEMA)
    schema = whole.subset(objectives)
    if objectives != whole.names:
        # True probabilities are given all scores; with fewer scores they are no ceiling.
        schema = replace(schema, truth={})
    parts = [read_log(path / name, schema) for name in _FILES]
    counts = _limited([log.rows for log in parts], rows)
    logs = Logs(*(log.take(np.arange(n)) for log, n in zip(parts, counts, strict=True)))
    logs.train.require_both_classes("training")
    logs.test.require_both_classes("test")
    return logs


def data_of(name: str, rows: int | None) -> Data:
    """Return the world or the folder of this name."""
    if name in WORLDS:
        return WorldData(name, rows or 1_000_000)
    path = Path(name)
    if path.is_dir():
        return FolderData(path, rows)
    if path.exists():
        raise UsageError(
            f"'{name}' is a file; expected a world ({', '.join(WORLDS)}) or a folder with "
            f"{SCHEMA} and train, valid and test parquet files."
        )
    raise UsageError(f"There is no world or folder '{name}'. {did_you_mean(name, WORLDS)}")
