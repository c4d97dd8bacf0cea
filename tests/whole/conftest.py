"""What tests that disturb commands share: their inputs, and a nursery that starts them."""

import pytest

from nursery import Nursery
from verbs import prepare, prepare_log


@pytest.fixture(scope="session")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("place")
    prepare(place)
    return place


@pytest.fixture(scope="session")
def place_with_log(place):
    prepare_log(place)
    return place


@pytest.fixture(scope="session")
def nursery(tmp_path_factory):
    with Nursery(tmp_path_factory.mktemp("nursery")) as nursery:
        yield nursery
