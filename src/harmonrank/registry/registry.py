"""Registry: a folder of immutable versions and an atomic pointer to the current one.

A version is made in a hidden folder and appears by a rename, complete. The pointer is a small file
that is replaced by a rename. So readers never lock: whatever they find is whole. Writers take a
lock for the moment in which they number a version and move the pointer.
"""

__all__ = ["CURRENT", "SETTINGS", "VERSIONS", "Move", "Registry", "now"]

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta

import harmonrank
from harmonrank.data import Log, Source, read_log
from harmonrank.data.reading.tables import column_names
from harmonrank.fusion import Method, load
from harmonrank.fusion.position import corrected
from harmonrank.registry.diff import Diff, diff_of
from harmonrank.registry.guardrails import Guardrails, checks_of
from harmonrank.registry.version import (
    GOLDEN,
    MODEL_FOLDER,
    Check,
    Version,
    check_contents,
    contents,
    golden_of,
    golden_rows,
    read_version,
    write_version,
)
from harmonrank.support.errors import DataError, ModelFileError, OutputError, UsageError
from harmonrank.support.options import checked_options
from harmonrank.support.storage.files import flush, new_file, numbered, read_json, write_json
from harmonrank.support.storage.staging import held, replace, staged, swept

FORMAT = 1
SETTINGS, CURRENT, VERSIONS = "registry.json", "current.json", "versions"
_MOST_MOVES = 1000
_LOCK_SECONDS = 10.0


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    format: int
    guardrails: dict[str, Any]


class Move(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a version became the current one, and by what: 'publish' or 'rollback'."""

    version: Annotated[int, Meta(ge=1)]
    at: str
    by: str


class _Pointer(msgspec.Struct, forbid_unknown_fields=True):
    history: Annotated[list[Move], Meta(min_length=1)]


class Registry:
    """Versions of one model, of which one is current.

    Args:
        path: A folder that `Registry.create` made.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not (self.path / SETTINGS).is_file():
            raise DataError(
                f"'{self.path}' is not a registry: it has no {SETTINGS}; make one with "
                f"`harmonrank registry init {self.path}`."
            )
        settings = read_json(self.path / SETTINGS, _Settings)
        if settings.format != FORMAT:
            raise DataError(
                f"'{self.path}' has registry format {settings.format}; harmonrank "
                f"{harmonrank.__version__} reads format {FORMAT}, so use the release that made it."
            )
        options = checked_options("a registry", Guardrails, settings.guardrails)
        self.guardrails = Guardrails(**options)

    @classmethod
    def create(
        cls, path: str | Path, guardrails: Guardrails | None = None, *, overwrite: bool = False
    ) -> Self:
        """Make an empty registry; with `overwrite`, give an existing one other guardrails."""
        path = Path(path)
        # What a killed run has left of a registry is hidden, or a folder for versions without any.
        there = [p for p in path.iterdir() if p.name[0] != "."] if path.is_dir() else []
        empty = all(p.name == VERSIONS and not any(p.iterdir()) for p in there)
        if not empty and not (path / SETTINGS).is_file():
            raise OutputError(f"'{path}' is a folder of something else; choose another name.")
        settings = {"format": FORMAT, "guardrails": asdict(guardrails or Guardrails())}
        with new_file(path / SETTINGS, overwrite=overwrite) as made:
            write_json(made, settings)
        return cls(path)

    def history(self) -> list[Move]:
        """Return which versions were current, the present one last; empty before the first."""
        pointer = self.path / CURRENT
        return read_json(pointer, _Pointer).history if pointer.is_file() else []

    def current(self) -> int | None:
        """Return the number of the current version; None before the first."""
        history = self.history()
        return history[-1].version if history else None

    def numbers(self) -> list[int]:
        """Return the numbers of all versions, in order."""
        return numbered(self.path / VERSIONS)

    def folder(self, number: int) -> Path:
        """Return where a version is."""
        return self.path / VERSIONS / str(number)

    def version(self, number: int | None = None) -> Version:
        """Return the record of a version, by default of the current one."""
        number = self._known(number)
        if not self.folder(number).is_dir():
            there = ", ".join(map(str, self.numbers())) or "none"
            raise UsageError(f"There is no version {number} in '{self.path}'. There are: {there}.")
        return read_version(self.folder(number))

    def versions(self) -> list[Version]:
        """Return the records of all versions, in order."""
        return [read_version(self.folder(number)) for number in self.numbers()]

    def load(self, number: int | None = None) -> Method:
        """Return the model of a version, by default of the current one, after its self-test.

        Raises:
            ModelFileError: A file does not match its checksum, or the model scores its golden rows
                otherwise than when it was published.
        """
        number = self._known(number)
        version, folder = self.version(number), self.folder(number)
        check_contents(folder, version)
        model = load(folder / MODEL_FOLDER)
        if (refusal := golden_of(folder).refusal(model)) is not None:
            raise ModelFileError(refusal)
        return model

    def _known(self, number: int | None) -> int:
        known = self.current() if number is None else number
        if known is None:
            raise UsageError(
                f"'{self.path}' has no current version; publish one with `harmonrank registry "
                f"publish {self.path} MODEL`."
            )
        return known

    def publish(
        self,
        model: Method | str | Path,
        data: Source | None = None,
        *,
        window: str = "",
        note: str = "",
        recalibrated: bool = False,
    ) -> Version:
        """Add a version, and make it current if it passes the guardrails.

        A refused version is kept, with the reason in its record; `refused` of what is returned
        says so.

        Args:
            model: A fitted method, or the folder of a saved one.
            data: Rows to hold it to; with labels, AUCs are compared with the current version.
            window: The data it was fitted on, in your words, such as '2026-01-01/2026-01-07'.
            note: Anything that a reader of the history should know.
            recalibrated: Whether it is the current version, recalibrated.
        """
        fitted = model if isinstance(model, Method) else load(model)
        with staged(self.path / VERSIONS / "new") as hidden:
            made = hidden / "version"
            made.mkdir()
            version = self._written(made, fitted, None if data is None else _rows(data, fitted))
            checks = version.checks
            with self.alone():
                # The guardrails may take minutes, in which another may have become current.
                if self.current() != version.parent:
                    checks = (*checks, _overtaken(self.current()))
                failed = [f"{c.name}: {c.sentence}" for c in checks if c.passed is False]
                version = msgspec.structs.replace(
                    version,
                    number=max(self.numbers(), default=0) + 1,
                    window=window,
                    note=note,
                    recalibrated=recalibrated,
                    refused="; ".join(failed) or None,
                    checks=checks,
                )
                write_version(made, version)
                flush(made)
                replace(made, self.folder(version.number))
                if version.refused is None:
                    self.point(version.number, "publish")
        return version

    def _written(self, made: Path, fitted: Method, log: Log | None) -> Version:
        """Write a model into a folder; return what can be said of it before it has a number."""
        fitted.save(made / MODEL_FOLDER)
        golden = golden_rows(fitted)
        write_json(made / GOLDEN, msgspec.to_builtins(golden))
        parent, model = self.current(), load(made / MODEL_FOLDER)
        present, before = None, None
        if parent is not None:
            present, before = self.load(parent), self.version(parent).fused
        checks, fused = checks_of(self.guardrails, model, present, log, before)
        refusal, scored = golden.refusal(model), f"{len(golden.fused)} rows score as they did"
        said = f"{scored} before saving" if refusal is None else refusal.rstrip(".")
        tested = Check("golden rows", refusal is None, said)
        labelled = log is not None and log.labels is not None and fused is not None
        return Version(
            parent=parent,
            created=now(),
            method=model.name,
            harmonrank=harmonrank.__version__,
            checks=(tested, *checks),
            metrics=model.evaluate(log).to_dict() if labelled and log is not None else None,
            fused=fused,
            checksums=contents(made),
        )

    def rollback(self, to: int | None = None) -> Version:
        """Make an earlier version current, by default the one before the current one."""
        history = self.history()
        if to is None:
            to = next((m.version for m in history[::-1] if m.version != history[-1].version), None)
            if to is None:
                raise UsageError(f"'{self.path}' never had another current version to go back to.")
        version = self.version(to)
        if version.refused is not None:
            raise UsageError(
                f"Version {to} was refused ({version.refused}), so it cannot become current; "
                "choose another."
            )
        self.load(to)
        with self.alone():
            if not self.folder(to).is_dir():
                raise UsageError(f"Version {to} was pruned meanwhile; choose another.")
            if self.current() != to:
                self.point(to, "rollback")
        return version

    def diff(self, first: int, second: int, data: Source | None = None) -> Diff:
        """Compare two versions; with data, also how they rank it."""
        versions = self.version(first), self.version(second)
        return diff_of(versions, (self.load(first), self.load(second)), data)

    def prune(self, keep: int = 10) -> list[int]:
        """Remove all but the newest versions; the current one and its predecessor stay too.

        The newest version always stays, so that no number is used twice.
        """
        if keep < 1:
            raise UsageError(f"`keep` must be a whole number from 1 up. Got {keep}.")
        with self.alone(), staged(self.path / VERSIONS / "new") as hidden:
            recent = [move.version for move in self.history()]
            present = recent[-1:]
            needed = {*present, *[n for n in recent if n not in present][-1:]}
            removed = [n for n in self.numbers()[:-keep] if n not in needed]
            for number in removed:
                # First out of sight, so that no reader meets a part of it.
                self.folder(number).rename(hidden / str(number))
        return removed

    def point(self, number: int, by: str) -> None:
        """Make a version current; call it within `alone`."""
        history = [*self.history(), Move(number, now(), by)][-_MOST_MOVES:]
        with new_file(self.path / CURRENT, overwrite=True) as made:
            write_json(made, {"history": msgspec.to_builtins(history)})

    def sweep(self) -> None:
        """Remove what killed writers have left."""
        (self.path / VERSIONS).mkdir(exist_ok=True)
        for written in (self.path / CURRENT, self.path / VERSIONS / "new"):
            swept(written)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other writers out; they need it for a moment only, so this one waits."""
        deadline = time.monotonic() + _LOCK_SECONDS
        while True:
            with held(self.path) as mine:
                if mine:
                    self.sweep()
                    yield
                    return
            if time.monotonic() > deadline:
                raise OutputError(
                    f"Another process has been writing to '{self.path}' for {_LOCK_SECONDS:g} "
                    "seconds; try again when it has ended."
                )
            time.sleep(0.01)


def _overtaken(number: int | None) -> Check:
    what = f"version {number} became current while this one was checked; publish it again"
    return Check("publication", False, what)


def _rows(data: Source, model: Method) -> Log:
    """Return the rows that a model is held to, with labels if there are any."""
    if isinstance(data, Log):
        return data
    labelled = set(model.schema.names) <= set(column_names(data))
    log = corrected(read_log(data, model.schema, labels=labelled))
    if labelled:
        log.require_both_classes("guardrail")
    return log.counted()


def now() -> str:
    """Return the time in UTC, as records write it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
