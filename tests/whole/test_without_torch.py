"""What works without PyTorch and pyarrow, and what it says where it does not."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from check_method import fitted, planted
from harmonrank.fusion import METHODS, method_class

TESTS, ROOT = Path(__file__).parents[1] / "helpers", Path(__file__).parents[2]
NETWORKS = [name for name in METHODS if method_class(name).traits.needs == "torch"]
MOST_MEGABYTES = {"constraints.txt": 520, "constraints-oldest.txt": 400}

_WITHOUT = """
import sys
sys.path.insert(0, {tests!r})

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "pyarrow"):
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name.partition(".")[0])

sys.meta_path.insert(0, Absent())
"""

_MAIN_JOB = """
harmonrank fit --train train.csv --valid valid.csv --schema schema.toml -o model
harmonrank score model test.csv -o scored.csv
harmonrank evaluate model test.csv --json quality.json
harmonrank compare --train train.csv --test test.csv --schema schema.toml --json b.json --methods {}
"""


def without_torch(code, folder):
    """Run Python that can import neither PyTorch nor pyarrow; return what it printed."""
    command = [sys.executable, "-c", _WITHOUT.format(tests=str(TESTS)) + code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)


def commands(text):
    """Return Python that runs commands in one process and ends with the last exit code."""
    return f"""
from harmonrank.cli import main
for line in {text!r}.strip().splitlines():
    sys.argv = line.split()
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
"""


@pytest.fixture
def csvs(folder):
    import polars as pl

    for name in ("train", "valid", "test"):
        pl.read_parquet(folder / f"{name}.parquet").write_csv(folder / f"{name}.csv")
    return folder


def test_the_main_job_needs_no_torch_and_tells_what_was_left_out(csvs):
    # The quick methods; LightGBM and the searches have their own tests.
    code = """
from harmonrank.fusion import catalogue
slow = ("lightgbm", "formula-tpe", "formula-cem", "formula-grid")
catalogue.METHODS = tuple(name for name in catalogue.METHODS if name not in slow)
"""
    done = without_torch(code + commands(_MAIN_JOB.format("all --report page.html")), csvs)
    assert done.returncode == 0, done.stderr
    assert "Left out, as the package 'torch' is missing: harmonrank-" in done.stderr
    assert "mbce" in done.stderr
    assert "install it with `pip install 'harmonrank[torch]'`." in done.stderr
    board = json.loads((csvs / "b.json").read_text(encoding="utf-8"))
    assert {"harmonrank", "closed-form", "logistic"} <= {m["name"] for m in board["methods"]}
    assert all(m["error"] is None for m in board["methods"])
    assert (csvs / "page.html").exists()


def test_a_saved_network_scores_without_torch(tmp_path):
    test, expected = planted(500, seed=2), {}
    for name in NETWORKS:
        model = fitted(name)
        model.save(tmp_path / name)
        expected[name] = model.score(test)
    for buckets in (None, 70_000):
        method = method_class("mbce")(buckets=buckets, epochs=1, batch_rows=500)
        method.fit(planted(), fitted("closed-form").schema).save(tmp_path / f"{buckets}")
        expected[f"{buckets}"] = method.score(test)
    np.savez(tmp_path / "expected.npz", **expected)
    code = """
import numpy as np, harmonrank as hr
from check_method import planted
test = planted(500, seed=2)
for name, expected in np.load("expected.npz").items():
    model = hr.load(name)
    np.testing.assert_array_equal(model.score(test), expected)
    one = test[:3].with_columns(hour=3, age=__import__("polars").lit("old"))
    scores = one.select("p_buy", "p_like").to_numpy()
    request = model.score_request(scores, {"hour": 3, "age": "old"})
    np.testing.assert_array_equal(request, model.score(one))
"""
    done = without_torch(code, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_network_of_more_buckets_than_two_bytes_count_scores_as_torch_does():
    options = {"buckets": 70_000, "epochs": 1, "batch_rows": 500}
    model, test = method_class("mbce")(**options), planted(500, seed=2)
    model.fit(planted(), fitted("closed-form").schema)
    codes = model.fitted.encoder.encode(test.select("hour", "age"))
    scores = test.select("p_buy", "p_like").to_numpy().astype(np.float32)
    expected = model.network(torch.tensor(scores), torch.tensor(codes)).detach().numpy()
    np.testing.assert_allclose(model.score(test), expected, atol=1e-5)


def test_what_needs_torch_says_so_in_one_sentence(csvs):
    code = """
import numpy as np, harmonrank as hr
assert hr.rank(np.array([0.3, 0.1])).tolist() == [2.0, 1.0]
for name in ("soft_rank", "rank_auc_loss"):
    try:
        getattr(hr, name)
    except hr.HarmonRankError as error:
        print(error)
"""
    done = without_torch(code, csvs)
    assert done.stdout.splitlines() == [
        f"{name} needs the package 'torch'; install it with `pip install 'harmonrank[torch]'`."
        for name in ("soft_rank", "rank_auc_loss")
    ], done.stderr
    for line, who in {
        "harmonrank fit --train train.csv --schema schema.toml --method mbce -o m": "mbce",
        "harmonrank lab bench rank": "harmonrank lab bench",
    }.items():
        done = without_torch(commands(line), csvs)
        assert done.returncode == 2
        assert f"Error: {who} needs the package 'torch'; install it with" in done.stderr


def sizes_of(folder):
    """Return the megabytes of each installed package, the largest first."""
    sizes = Counter()
    for path in folder.rglob("*"):
        package = path.relative_to(folder).parts[0]
        # These come with every new environment.
        if path.is_file() and not package.startswith(("pip", "setuptools", "pkg_resources")):
            sizes[package] += path.stat().st_size
    return {name: round(size / 1e6, 1) for name, size in sizes.most_common()}


@pytest.mark.slow
@pytest.mark.parametrize("versions", MOST_MEGABYTES)
def test_the_base_wheel_alone_does_the_main_job(versions, csvs, tmp_path):
    constraints = ROOT / versions
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv" / "bin"
    pip = [programs / "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--constraint", constraints, "-w", tmp_path, ROOT]
    subprocess.run(wheel, check=True)
    built = next(tmp_path.glob("harmonrank-*.whl"))
    subprocess.run([*pip, "install", "--constraint", constraints, built], check=True)
    installed = subprocess.run([*pip, "list"], check=True, capture_output=True, text=True).stdout
    for extra in ("torch", "lightgbm", "pandas", "pyarrow", "scipy"):
        assert extra not in installed
    folder = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    largest = sizes_of(folder)
    print(f"{sum(largest.values()):.0f} MB by {versions}:", largest)  # noqa: T201
    assert sum(largest.values()) <= MOST_MEGABYTES[versions]
    for line in _MAIN_JOB.format("all").strip().splitlines():
        command = [programs / "harmonrank", *line.split()[1:]]
        # Nothing of this checkout may be found.
        done = subprocess.run(command, cwd=csvs, env={}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    board = json.loads((csvs / "b.json").read_text(encoding="utf-8"))
    assert board["methods"][0]["name"] == "harmonrank"
    assert all(method["error"] is None for method in board["methods"])
