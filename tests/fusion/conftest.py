import pytest

import harmonrank as hr
from harmonrank.worlds import world_schema
from upstream import NEW, OLD, log_of


@pytest.fixture(scope="session")
def conflict_model():
    """The default, fitted before an upstream change."""
    return hr.HarmonRank().fit(log_of(OLD, 50_000, 1), world_schema(OLD))


@pytest.fixture(scope="session")
def usual():
    """Rows from before the change."""
    return log_of(OLD, 40_000, 2)


@pytest.fixture(scope="session")
def moved():
    """Rows from after the change."""
    return log_of(NEW, 40_000, 2)


@pytest.fixture(scope="session")
def many():
    """Very many rows from before the change."""
    return log_of(OLD, 250_000, 3)
