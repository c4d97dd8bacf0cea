"""Verbs that write, for tests that disturb them: their arguments, outputs and what those hold."""

import re

from logs import SCHEMA_TOML, small_table

# A record's checksum covers the seconds in it; a report draws them.
TIMES = re.compile(r'"(?:\w*seconds|checksum)": [^,\n]+')
SMALL = ("--epochs", "2", "--folds", "2", "--set", "refits=1", "--set", "embedding=4")
ONCE = ("score", "rank", "init", "fit", "import", "predict")
"""Those whose output must not be there yet; the others go on where it is."""


def prepare(place):
    """Write tables and a model."""
    import harmonrank as hr

    for seed, name in enumerate(("train", "valid")):
        small_table(seed=seed).write_parquet(place / f"{name}.parquet")
    (place / "schema.toml").write_text(SCHEMA_TOML, encoding="utf-8")
    schema = hr.Schema.read(place / "schema.toml")
    hr.ClosedForm().fit(place / "train.parquet", schema).save(place / "model")


def prepare_log(place):
    """Write raw files and import them."""
    from harmonrank_lab.upstream.logs import find_kuairand, import_log
    from harmonrank_lab.worlds.raw import KuaiRandWorld
    from harmonrank_lab.worlds.raw_simulation import simulate_log

    simulate_log(KuaiRandWorld(users=60, items=30), 4_000, place / "raw", seed=3)
    import_log(find_kuairand(place / "raw"), place / "log")


def arguments(place, verb, folder):
    """Return the command line of a verb whose output is in a folder."""
    schema = ("--schema", place / "schema.toml", "-q")
    prior = ("--method", "closed-form")
    train, valid = place / "train.parquet", place / "valid.parquet"
    rows = ("--train", train, "--test", valid)
    methods = ("--methods", "closed-form,prevalence-weights")
    return {
        "score": ("score", place / "model", train, "-q", "-o", folder / "out.parquet"),
        "rank": ("rank", place / "model", train, "-q", "-o", folder / "best.parquet"),
        "init": ("init", train, "-q", "-o", folder / "guess.toml"),
        "fit": ("fit", *rows[:2], "--valid", valid, *prior, *schema, "-o", folder / "m"),
        "refit": (*("fit", *rows[:2], *prior, *schema, "-o", folder / "m"), "--overwrite"),
        "compare": ("compare", *rows, *methods, *schema, "--runs", folder / "runs"),
        "evaluate": ("evaluate", place / "model", valid, "--json", folder / "e.json"),
        "import": ("lab", "data", "import", "kuairand", place / "raw", "-q", "-o", folder / "log"),
        "predict": (
            "lab",
            "predict",
            "fit",
            place / "log",
            *SMALL,
            "-q",
            "-o",
            folder / "predictor",
        ),
        "pipeline": (
            "lab",
            "pipeline",
            place / "raw",
            *SMALL,
            *methods,
            "-q",
            "-o",
            folder / "all",
        ),
    }[verb]


def content(folder):
    """Return all files but for what measures time; a hidden one has no business there."""
    texts = {}
    for file in sorted(folder.rglob("*")):
        assert not file.name.startswith("."), file
        if file.is_file() and file.suffix != ".html" and "steps" not in file.parts:
            raw = file.read_bytes()
            text = raw if file.suffix != ".json" else TIMES.sub("", raw.decode()).encode()
            texts[file.relative_to(folder).as_posix()] = text
    return texts
