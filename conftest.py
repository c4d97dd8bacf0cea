"""Small logs and the command line, for every package."""

import sys
from dataclasses import dataclass

import pytest

from browser import browsing
from logs import SCHEMA_TOML, small_table
from tally import pytest_addoption, pytest_runtest_logreport, pytest_sessionfinish  # noqa: F401


@dataclass(frozen=True)
class Finished:
    """What a command left: its exit code and what it printed."""

    code: int
    out: str
    err: str


@pytest.fixture
def table():
    return small_table()


@pytest.fixture
def schema():
    from harmonrank import Schema

    return Schema({"buy": "p_buy", "like": "p_like"}, context=["hour", "age"], request="request_id")


@pytest.fixture
def folder(tmp_path, table):
    """Return a folder with train, valid and test tables and their schema."""
    for seed, name in enumerate(("train", "valid", "test")):
        small_table(seed=seed).write_parquet(tmp_path / f"{name}.parquet")
    (tmp_path / "schema.toml").write_text(SCHEMA_TOML, encoding="utf-8")
    return tmp_path


@pytest.fixture
def run(monkeypatch, capsys, tmp_path_factory):
    """Return a function that runs the command line in this process, as `main` does.

    `settings` is the text of a settings file.
    """
    from harmonrank.cli import main

    monkeypatch.setenv("COLUMNS", "80")

    def command(*arguments, settings=""):
        if settings:
            file = tmp_path_factory.mktemp("settings") / "settings.toml"
            file.write_text(settings, encoding="utf-8")
            arguments = (*arguments, "--settings", file)
        monkeypatch.setattr(sys, "argv", ["harmonrank", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        printed = capsys.readouterr()
        return Finished(code, printed.out, printed.err)

    return command


@pytest.fixture(scope="session")
def world_folder(tmp_path_factory):
    """Return the files of a small world."""
    from harmonrank.worlds import simulate, world

    path = tmp_path_factory.mktemp("world") / "elive"
    simulate(world("elive"), 8000, path, seed=1)
    return path


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as browser:
        yield browser
