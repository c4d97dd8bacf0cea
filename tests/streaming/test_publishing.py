"""A stream's candidates become versions, each once, whatever happens between two steps."""

from datetime import UTC, datetime

import pytest
from batches import SCHEMA, batch

from harmonrank.fusion import method_class
from harmonrank.registry import Guardrails, Registry
from harmonrank.streaming.publishing import Publisher, open_registry

ROOMY = Guardrails(tolerance=0.2, calibration=None, shift=None, scale=None)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def models():
    return [method_class("closed-form")().fit(batch(seed), SCHEMA) for seed in range(3)]


@pytest.fixture
def registry(tmp_path):
    return Registry.create(tmp_path / "registry", ROOMY)


def test_a_registry_is_made_with_default_guardrails_if_none_is_there(tmp_path):
    assert open_registry(tmp_path / "new").guardrails == Guardrails()
    Registry.create(tmp_path / "mine", ROOMY)
    assert open_registry(tmp_path / "mine").guardrails == ROOMY


def test_a_candidate_is_published_once_however_often_it_comes(registry, models):
    rows = batch(9)
    for _ in range(3):
        # A publisher that was killed before it committed has seen nothing.
        publisher = Publisher(registry, "abcd", seen=0)
        made = publisher.publish(models[0], rows, publisher.note(NOON), "w")
        assert (made.version, made.refused, publisher.seen) == (1, None, 1)
    assert registry.numbers() == [1]
    assert registry.version().note == "stream abcd, learned to 2026-01-01T12:00:00"


def test_candidates_of_other_streams_intervals_and_kinds_are_others(registry, models):
    rows = batch(9)
    notes = [
        Publisher(registry, "abcd").note(NOON),
        Publisher(registry, "efgh").note(NOON),
        Publisher(registry, "abcd").note(NOON.replace(hour=13)),
        Publisher(registry, "abcd").note(NOON, recalibrated=True),
    ]
    numbers = [Publisher(registry, "abcd").publish(models[0], rows, n, "").version for n in notes]
    assert numbers == [1, 2, 3, 4]


def test_a_refused_candidate_is_not_offered_again(tmp_path, models):
    strict = Registry.create(tmp_path / "strict", Guardrails(shift=1e-9))
    rows = batch(9)
    first = Publisher(strict, "abcd")
    assert first.publish(models[0], rows, first.note(NOON), "").refused is None
    later = NOON.replace(hour=13)
    outcomes = []
    for _ in range(2):
        publisher = Publisher(strict, "abcd", seen=1)
        outcomes.append(publisher.publish(models[1], rows, publisher.note(later), ""))
    assert outcomes[0] == outcomes[1]
    assert "fused median" in outcomes[0].refused
    assert strict.numbers() == [1, 2]


def test_a_version_whose_publisher_was_killed_before_it_became_current_becomes_so(registry, models):
    publisher = Publisher(registry, "abcd")
    publisher.publish(models[0], batch(9), publisher.note(NOON), "")
    before = (registry.path / "current.json").read_bytes()
    later = publisher.note(NOON.replace(hour=13))
    publisher.publish(models[1], batch(9), later, "")
    (registry.path / "current.json").write_bytes(before)
    assert registry.current() == 1
    again = Publisher(registry, "abcd", seen=1).publish(models[1], batch(9), later, "")
    assert (again.version, again.refused) == (2, None)
    assert [move.version for move in registry.history()] == [1, 2]


def test_a_version_that_was_rolled_back_meanwhile_stays_so(registry, models):
    publisher = Publisher(registry, "abcd")
    publisher.publish(models[0], batch(9), publisher.note(NOON), "")
    later = publisher.note(NOON.replace(hour=13))
    publisher.publish(models[1], batch(9), later, "")
    registry.rollback()
    again = Publisher(registry, "abcd", seen=1).publish(models[1], batch(9), later, "")
    assert (again.version, again.refused) == (2, None)
    assert registry.current() == 1


def test_who_was_overtaken_by_another_publisher_is_told(registry, models):
    publisher = Publisher(registry, "abcd")
    publisher.publish(models[0], batch(9), publisher.note(NOON), "")
    before = (registry.path / "current.json").read_bytes()
    later = publisher.note(NOON.replace(hour=13))
    publisher.publish(models[1], batch(9), later, "")
    (registry.path / "current.json").write_bytes(before)
    registry.publish(models[2])
    again = Publisher(registry, "abcd", seen=1).publish(models[1], batch(9), later, "")
    assert again.refused == "version 3 became current before this one could"
    assert registry.current() == 3


def test_a_registry_that_was_made_afresh_is_searched_from_its_beginning(registry, models):
    publisher = Publisher(registry, "abcd", seen=57)
    publisher.publish(models[0], batch(9), publisher.note(NOON), "")
    again = Publisher(registry, "abcd", seen=57)
    assert again.publish(models[0], batch(9), again.note(NOON), "").version == 1


def test_what_was_current_before_a_candidate_is_found_after_it_too(registry, models):
    publisher = Publisher(registry, "abcd")
    assert publisher.before(publisher.note(NOON)) is None
    publisher.publish(models[0], batch(9), publisher.note(NOON), "a window")
    note = publisher.note(NOON, recalibrated=True)
    version, _ = publisher.before(note)
    assert (version.number, version.window) == (1, "a window")
    publisher.publish(models[1], batch(9), note, "", recalibrated=True)
    assert Publisher(registry, "abcd", seen=1).before(note)[0].number == 1
    assert publisher.before(publisher.note(NOON.replace(hour=13)))[0].number == 2


def test_a_version_has_the_operating_points_of_the_one_before(registry, models):
    publisher = Publisher(registry, "abcd")
    first = models[0].with_point("sales", {"buy": 3}).with_point("likes", {"like": 2})
    publisher.publish(first, batch(1), publisher.note(NOON), "")
    newer = models[1].with_point("likes", {"like": 9})
    note = publisher.note(NOON.replace(hour=13))
    made = publisher.publish(newer, batch(2), note, "")
    assert made.refused is None
    points = registry.load(made.version).points
    assert points == {**first.points, "likes": newer.points["likes"]}
    # Repeated after a kill, it is the same version.
    again = Publisher(registry, "abcd", seen=1).publish(newer, batch(2), note, "")
    assert again.version == made.version
