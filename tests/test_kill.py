"""A command that was killed at any moment and is repeated ends well, with the same bytes."""

import random
import re
import shutil
import subprocess
import sys
import time

import pytest

from logs import SCHEMA_TOML, small_table

# A record's checksum covers the seconds in it; a report draws them.
TIMES = re.compile(r'"(?:\w*seconds|checksum)": [^,\n]+')


def commands(place):
    """Return each verb's arguments and the outputs that are compared."""
    table = ("--schema", place / "schema.toml", "-q")
    train, valid = place / "train.parquet", place / "valid.parquet"
    small = ("--epochs", "2", "--folds", "2", "--set", "refits=1", "--set", "embedding=4")
    return {
        "score": (("score", place / "model", train, "-q"), "out.parquet"),
        "fit": (
            ("fit", "--train", train, "--valid", valid, "--method", "closed-form", *table),
            "m",
        ),
        "compare": (
            (
                "compare",
                "--train",
                train,
                "--test",
                valid,
                "--methods",
                "closed-form,logistic",
                *table,
            ),
            "runs",
        ),
        "predict": (("predict", "fit", place / "log", *small, "-q"), "predictor"),
        "pipeline": (
            (
                "pipeline",
                place / "raw",
                *small,
                "--methods",
                "closed-form,prevalence-weights",
                "-q",
            ),
            "all",
        ),
    }


def started(place, verb, folder):
    """Start a verb whose output is in a folder."""
    arguments, name = commands(place)[verb]
    where = ("--runs", folder / name) if verb == "compare" else ("-o", folder / name)
    command = [sys.executable, "-m", "harmonrank", *map(str, arguments), *map(str, where)]
    with (place / "stderr").open("w") as errors:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors)


def content(folder):
    """Return all files but for what measures time; a hidden one has no business there."""
    found = {}
    for file in sorted(folder.rglob("*")):
        assert not file.name.startswith("."), file
        if file.is_file() and file.suffix != ".html" and "steps" not in file.parts:
            raw = file.read_bytes()
            text = raw if file.suffix != ".json" else TIMES.sub("", raw.decode()).encode()
            found[file.relative_to(folder).as_posix()] = text
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    import harmonrank as hr

    place = tmp_path_factory.mktemp("kill")
    for seed, name in enumerate(("train", "valid")):
        small_table(seed=seed).write_parquet(place / f"{name}.parquet")
    (place / "schema.toml").write_text(SCHEMA_TOML, encoding="utf-8")
    schema = hr.Schema.read(place / "schema.toml")
    hr.ClosedForm().fit(place / "train.parquet", schema).save(place / "model")
    return place


@pytest.fixture(scope="module")
def place_with_log(place):
    from harmonrank.data.log_worlds import KuaiRandWorld
    from harmonrank.data.logs import find_kuairand, import_log
    from harmonrank.evaluation.log_simulation import simulate_log

    simulate_log(KuaiRandWorld(users=60, items=30), 4_000, place / "raw", seed=3)
    import_log(find_kuairand(place / "raw"), place / "log")
    return place


def hold(place, tmp_path, verb, kills, seed):
    """Kill a verb at random moments; each time, its repetition must end as one left alone."""
    rng = random.Random(f"{verb} {seed}")
    whole = tmp_path / "whole"
    begun = time.monotonic()
    done = started(place, verb, whole)
    assert done.wait() == 0, (place / "stderr").read_text()
    seconds, expected = time.monotonic() - begun, content(whole)
    for k in range(kills):
        folder = tmp_path / str(k)
        process = started(place, verb, folder)
        try:
            # Most of it is the start of Python; what comes after is more interesting.
            process.wait(timeout=seconds * rng.uniform(0.4, 1.0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # Killed after the end, it has left what would not be replaced without --overwrite.
        if verb in ("score", "fit", "predict") and any(folder.glob("[!.]*")):
            shutil.rmtree(folder)
        again = started(place, verb, folder)
        assert again.wait() == 0, (place / "stderr").read_text()
        assert content(folder) == expected


@pytest.mark.parametrize("verb", ["score", "fit"])
def test_a_verb_that_was_killed_ends_in_the_same_bytes(place, tmp_path, verb):
    hold(place, tmp_path, verb, kills=2, seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("verb", ["score", "fit", "compare", "predict", "pipeline"])
def test_200_kills_end_in_the_same_bytes(place_with_log, tmp_path, verb, seed):
    hold(place_with_log, tmp_path, verb, kills=10, seed=seed)
