"""Facts of a small world, which every test of a page or picture shares."""

import pytest

METHODS = ("harmonrank", "closed-form", "harmonrank-paper")


@pytest.fixture(scope="session")
def board(world_folder, tmp_path_factory):
    """Return a leaderboard and the folder of its models."""
    from harmonrank import Schema, compare

    runs = tmp_path_factory.mktemp("runs")
    found = compare(
        world_folder / "train.parquet",
        Schema.read(world_folder / "schema.toml"),
        METHODS,
        test=world_folder / "test.parquet",
        valid=world_folder / "valid.parquet",
        options={"harmonrank-paper": {"epochs": 2, "buckets": 16}},
        runs=runs,
    )
    return found.board, runs


@pytest.fixture(scope="session")
def logs(world_folder):
    from harmonrank import Schema
    from harmonrank.data import read_log

    schema = Schema.read(world_folder / "schema.toml")
    return tuple(read_log(world_folder / f"{name}.parquet", schema) for name in ("train", "test"))


@pytest.fixture(scope="session")
def models(board):
    from harmonrank import load

    return {name: load(board[1] / name) for name in METHODS}


@pytest.fixture(scope="session")
def facts(board, models, logs):
    from harmonrank.reports import collect, run_of

    train, test = logs
    run = run_of("harmonrank compare --methods 'a,b' <x>", 7)
    return collect("A small world", run, board[0], models, test, train=train)
