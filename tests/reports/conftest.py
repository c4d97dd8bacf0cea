"""Facts of a small world, which every test of a page or picture shares."""

import pytest

from browser import open_page, requests, screenshot

METHODS = ("harmonrank", "closed-form", "harmonrank-paper")


@pytest.fixture(scope="session")
def compared(world_folder):
    """Return a comparison in a world."""
    from harmonrank import Schema, compare

    return compare(
        world_folder / "train.parquet",
        Schema.read(world_folder / "schema.toml"),
        METHODS,
        test=world_folder / "test.parquet",
        valid=world_folder / "valid.parquet",
        options={"harmonrank-paper": {"epochs": 2, "buckets": 16}},
    )


@pytest.fixture(scope="session")
def logs(compared):
    return compared.train, compared.test


@pytest.fixture(scope="session")
def models(compared):
    return compared.models


@pytest.fixture(scope="session")
def facts(compared):
    from harmonrank.reports import collect, run_of

    run = run_of("harmonrank compare --methods 'a,b' <x>", 7)
    rows = {"test": compared.test, "train": compared.train}
    return collect("A small world", run, compared.board, compared.models, **rows)


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
