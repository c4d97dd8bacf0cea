import pytest
from service import application

import harmonrank as hr
from harmonrank.registry import Guardrails, Registry
from logs import small_table


@pytest.fixture(scope="session")
def models():
    schema = {
        "objectives": {"buy": "p_buy", "like": "p_like"},
        "context": ["hour", "age"],
        "request": "request_id",
    }
    return [hr.ClosedForm().fit(small_table(2000, seed), schema) for seed in range(2)]


@pytest.fixture(scope="session")
def default_model(models):
    return hr.HarmonRank().fit(small_table(3000, 3), models[0].schema)


@pytest.fixture
def registry(tmp_path, models):
    result = Registry.create(
        tmp_path / "registry", Guardrails(tolerance=0.1, calibration=None, shift=None, scale=None)
    )
    result.publish(models[0])
    return result


@pytest.fixture
def app(default_model, tmp_path):
    default_model.save(tmp_path / "model")
    points = {"sales": {"buy": 3.0, "like": 0.5}}
    return application(tmp_path / "model", tmp_path / "state", points=points)
