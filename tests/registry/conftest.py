import pytest

import harmonrank as hr
from harmonrank.registry import Guardrails, Registry
from logs import small_table

ROOMY = {"tolerance": 0.05, "calibration": 1.0}
"""Guardrails for logs of a few hundred rows."""


@pytest.fixture(scope="session")
def fitted():
    """Return models of the same columns, fitted on different rows."""
    schema = {
        "objectives": {"buy": "p_buy", "like": "p_like"},
        "context": ["hour", "age"],
        "request": "request_id",
    }
    return [hr.ClosedForm().fit(small_table(2000, seed), schema) for seed in range(3)]


@pytest.fixture
def registry(tmp_path):
    return Registry.create(tmp_path / "registry", Guardrails(**ROOMY))
