"""A command that was cut short at any moment and is repeated ends well, with the same bytes."""

import random
import shutil
import time

import pytest

from verbs import ONCE, arguments, content

KILLS = {"score": 50, "fit": 50, "compare": 40, "import": 30, "predict": 20, "pipeline": 10}
KILLS |= {"rank": 20, "init": 20}
DEATHS = {"score": 4, "fit": 9, "compare": 33, "import": 37, "predict": 105, "pipeline": 115}
DEATHS |= {"rank": 4, "init": 4}
"""How often each dies at least: before every change of a file, the last before every other."""


class Trial:
    """A verb that was left alone once, and is now disturbed."""

    def __init__(self, nursery, place, verb, folder):
        self._nursery, self._place, self._verb, self._folder = nursery, place, verb, folder
        self._alone("first")
        begun = time.monotonic()
        self._expected = self._alone("whole")
        # Of the second time: the first one may have waited for a nursery that was still importing.
        self.seconds = time.monotonic() - begun

    def _alone(self, name):
        folder = self._folder / name
        code, errors = self._nursery.run(*arguments(self._place, self._verb, folder))
        assert code == 0, errors
        return content(folder)

    def start(self, name, **options):
        folder = self._folder / str(name)
        return self._nursery.start(
            *arguments(self._place, self._verb, folder), within=folder, **options
        )

    def hold(self, name):
        """Repeat what was cut short; it must end as if nothing had been."""
        folder = self._folder / str(name)
        # Cut short after its end, it has left what would not be replaced without --overwrite.
        if self._verb in ONCE and any(folder.glob("[!.]*")):
            assert content_of_visible(folder) == self._expected
            shutil.rmtree(folder)
        code, errors = self.start(name).wait()
        assert code == 0, errors
        assert content(folder) == self._expected
        shutil.rmtree(folder)


def content_of_visible(folder):
    """Return what stands under its name; beside it a killed command may leave hidden files."""
    for left in folder.glob(".*"):
        shutil.rmtree(left)
    return content(folder)


def kill(trial, count, rng):
    """Kill a verb at random moments."""
    for k in range(count):
        process = trial.start(k)
        time.sleep(trial.seconds * rng.uniform(0.0, 1.1))
        process.kill()
        process.wait()
        trial.hold(k)


def let_die(trial, moments):
    """Let a verb die before the n-th change of a file, for every n; return how often it did."""
    deaths = 0
    for n in moments:
        code, errors = trial.start(n, die_at=n).wait()
        if code == 0:
            break
        assert code == -9, errors
        deaths += 1
        trial.hold(n)
    return deaths


@pytest.mark.parametrize("verb", ["score", "fit", "rank", "init"])
def test_a_verb_that_was_killed_ends_in_the_same_bytes(nursery, place, tmp_path, verb):
    trial = Trial(nursery, place, verb, tmp_path)
    kill(trial, 1, random.Random(verb))
    assert let_die(trial, (1, 3)) == 2


def test_a_model_is_there_whenever_the_fit_that_replaces_it_dies(nursery, place, tmp_path):
    old, new = place / "model", tmp_path / "new" / "m"
    code, errors = nursery.run(*arguments(place, "refit", new.parent))
    assert code == 0, errors
    for name in range(1, 100):
        folder = tmp_path / str(name)
        shutil.copytree(old, folder / "m")
        (folder / "m" / "extra").touch()  # by which the old one is known
        code, _ = nursery.run(*arguments(place, "refit", folder), die_at=name, within=folder)
        if code == 0:
            break
        there = content(folder / "m")
        assert there in (content(old) | {"extra": b""}, content(new))
        assert nursery.run(*arguments(place, "refit", folder))[0] == 0
        assert content(folder) == content(new.parent)
    assert name > 8


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "count"), KILLS.items())
def test_200_kills_end_in_the_same_bytes(
    nursery, place_with_log, tmp_path, verb, count, record_property
):
    trial = Trial(nursery, place_with_log, verb, tmp_path)
    kill(trial, count, random.Random(verb))
    record_property("kills", count)


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "least"), DEATHS.items())
def test_300_deaths_before_changes_of_files_end_in_the_same_bytes(
    nursery, place_with_log, tmp_path, verb, least, record_property
):
    trial = Trial(nursery, place_with_log, verb, tmp_path)
    deaths = let_die(trial, range(1, 1000, 2 if verb == "pipeline" else 1))
    record_property("deaths", deaths)
    assert deaths >= least
