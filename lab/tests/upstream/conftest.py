"""A small imported log, simulated once."""

import pytest


@pytest.fixture(scope="session")
def log_folder(tmp_path_factory):
    """Return the folder of an imported log of 12,000 simulated rows."""
    from harmonrank_lab.upstream.logs import find_kuairand, import_log
    from harmonrank_lab.worlds.raw import KuaiRandWorld
    from harmonrank_lab.worlds.raw_simulation import simulate_log

    base = tmp_path_factory.mktemp("logs")
    simulate_log(KuaiRandWorld(users=150, items=60), 12_000, base / "raw", seed=3)
    import_log(find_kuairand(base / "raw"), base / "log")
    return base / "log"


@pytest.fixture(scope="session")
def log(log_folder):
    from harmonrank_lab.upstream.logs import ImportedLog

    return ImportedLog.open(log_folder)
