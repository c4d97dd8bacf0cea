import pytest

from check_method import CLAIMS
from harmonrank.fusion import METHODS


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.__name__)
@pytest.mark.parametrize("name", METHODS)
def test_every_method(name, claim):
    claim(name)
