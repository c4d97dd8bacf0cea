"""Facts of a small world, which every test of a page or picture shares."""

import pytest

from browser import open_page, requests, screenshot

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


@pytest.fixture
def seen(driver, pytestconfig):
    """Return a function that looks at a page, which must fit, ask nobody and draw every chart."""
    artefacts = pytestconfig.rootpath / "artefacts"
    artefacts.mkdir(exist_ok=True)

    def look(path, width=1280, scheme="light"):
        open_page(driver, path, width, scheme)
        assert driver.get_log("browser") == []
        assert all(url.startswith(("file:", "data:", "blob:")) for url in requests(driver))
        widths = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert widths == [width, width]
        drawn = driver.execute_script(
            "return [...document.querySelectorAll('.chart')].map(c => c.querySelectorAll("
            "'.trace, .point, .heatmaplayer image, .hm').length)"
        )
        assert min(drawn) > 0
        screenshot(driver, artefacts / f"{path.stem}-{width}-{scheme}.png")
        return len(drawn)

    return look
