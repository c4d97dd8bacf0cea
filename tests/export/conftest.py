import pytest

import harmonrank as hr
from logs import small_table


@pytest.fixture(scope="session")
def default_model():
    schema = hr.Schema({"buy": "p_buy", "like": "p_like"}, context=["hour", "age"])
    return hr.HarmonRank().fit(small_table(3000, 3), schema)
