"""Writers that meet, and writers that are killed."""

import random
import subprocess
import sys
import time

import pytest

from harmonrank.registry import Registry
from nursery import Nursery

PUBLISH = """
import sys
from harmonrank.registry import Registry
registry = Registry(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[3])):
    print(registry.publish(sys.argv[2]).refused, flush=True)
"""


def test_a_registry_whose_maker_was_killed_is_made_again(tmp_path):
    for left in ("versions", ".registry.json.0123abcd.partial"):
        (tmp_path / left).mkdir()
    registry = Registry.create(tmp_path)
    assert (registry.numbers(), registry.current()) == ([], None)
    (tmp_path / "versions").rmdir()
    assert Registry(tmp_path).numbers() == []


def test_a_folder_that_no_number_names_is_no_version(registry, fitted):
    registry.publish(fitted[0])
    for name in ("²", "٣", "-1", "two"):
        (registry.path / "versions" / name).mkdir()
    assert registry.numbers() == [1]
    assert registry.publish(fitted[0]).number == 2


def test_what_a_killed_rollback_has_left_is_gone_when_it_is_repeated(registry, fitted):
    for model in fitted[:2]:
        registry.publish(model)
    registry.rollback(1)
    left = registry.path / ".current.json.0123abcd.partial"
    left.mkdir()
    registry.rollback(1)
    assert not left.exists()
    assert registry.current() == 1


def publisher(registry, model, times=1):
    command = [sys.executable, "-c", PUBLISH, str(registry.path), str(model), str(times)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def saved(fitted, tmp_path):
    fitted[0].save(tmp_path / "model")
    return tmp_path / "model"


def whole(registry):
    """Every version that is there is complete, and the current one among them."""
    for number in registry.numbers():
        registry.load(number)
        assert registry.version(number).number == number
    current = registry.current()
    assert current is None or registry.version(current).refused is None


def test_who_was_overtaken_is_told_and_kept(registry, fitted, monkeypatch):
    from harmonrank.registry import registry as publishing

    registry.publish(fitted[0])
    plain = publishing.checks_of

    def meanwhile(*arguments):
        monkeypatch.setattr(publishing, "checks_of", plain)
        registry.publish(fitted[1])
        return plain(*arguments)

    monkeypatch.setattr(publishing, "checks_of", meanwhile)
    loser = registry.publish(fitted[2])
    assert loser.number == 3
    assert loser.refused == (
        "publication: version 2 became current while this one was checked; publish it again"
    )
    assert registry.current() == 2
    whole(registry)


def test_two_publishers_at_once_get_different_numbers_and_no_one_is_lost(registry, saved):
    registry.publish(saved)
    two = [publisher(registry, saved, times=5) for _ in range(2)]
    for one in two:
        assert one.stdout.readline() == "ready\n", one.stderr.read()
    for one in two:
        one.stdin.write("go\n")
        one.stdin.flush()
    refusals = []
    while any(one.poll() is None for one in two):
        assert registry.load().name == "closed-form"  # Reading takes no lock.
    for one in two:
        out, err = one.communicate()
        assert one.returncode == 0, err
        refusals += out.splitlines()
    assert len(refusals) == 10
    assert registry.numbers() == list(range(1, 12))
    states = [registry.version(n).refused for n in range(2, 12)]
    assert sorted(map(str, states)) == sorted(refusals)
    moves = [move.version for move in registry.history()]
    assert moves == [v.number for v in registry.versions() if v.refused is None]
    whole(registry)


def kill_publisher(registry, saved, rng):
    """Kill a process that publishes all the time."""
    one = publisher(registry, saved, times=1000)
    assert one.stdout.readline() == "ready\n", one.stderr.read()
    one.stdin.write("go\n")
    one.stdin.flush()
    time.sleep(rng.uniform(0.005, 0.15))  # a random moment is the point
    one.kill()
    one.communicate()


def kill_publishers(registry, saved, kills, seed, kill=kill_publisher):
    rng = random.Random(seed)
    registry.publish(saved)
    for _ in range(kills):
        before, current = set(registry.numbers()), registry.current()
        kill(registry, saved, rng)
        registry = Registry(registry.path)
        assert before <= set(registry.numbers())
        assert registry.current() >= current
        whole(registry)
    registry.publish(saved)
    hidden = [p.name for p in (registry.path / "versions").iterdir() if p.name.startswith(".")]
    assert hidden == []
    assert registry.current() == registry.numbers()[-1]


def test_a_killed_publisher_loses_nothing(registry, saved):
    kill_publishers(registry, saved, kills=3, seed=0)


@pytest.mark.slow
def test_100_killed_publishers_lose_nothing(registry, saved, tmp_path, record_property):
    command = ("registry", "publish", registry.path, saved, "-q")
    with Nursery(tmp_path) as nursery:
        nursery.run(*command)  # which waits until all is imported
        begun = time.monotonic()
        assert nursery.run(*command) == (0, "")
        seconds = time.monotonic() - begun

        def kill(_, __, rng):
            one = nursery.start(*command)
            time.sleep(seconds * rng.uniform(0.0, 1.1))
            one.kill()
            one.wait()

        kill_publishers(registry, saved, kills=100, seed=1, kill=kill)
    record_property("kills", 100)
