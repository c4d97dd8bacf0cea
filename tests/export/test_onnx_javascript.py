"""An exported model runs in another language: JavaScript gives what the model gives."""

import json
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from harmonrank.export import export_onnx

ROOT = Path(__file__).parents[2]
EXAMPLE, DOCS = ROOT / "examples" / "fuse.mjs", ROOT / "docs" / "export.md"
PACKAGE = "onnxruntime-web"
CANDIDATES = {
    "p_buy": [0.02, 0.01, 0.0, 1.0, 0.3],
    "p_like": [0.20, 0.35, 1.0, 0.0, 0.3],
    "hour": [21, 21, 10**12, -5, 3],
    "age": ["young", "never seen", "", "old", "Ω"],
}


def fused(folder, *arguments):
    done = subprocess.run(
        ["node", str(folder / EXAMPLE.name), *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def hold(model, folder):
    """The example beside an installed package scores strings, unknown values and other weights."""
    shutil.copy(EXAMPLE, folder)
    model.save(folder / "model")
    rows = pl.DataFrame(CANDIDATES)
    (folder / "candidates.json").write_text(json.dumps(CANDIDATES))
    export_onnx(folder / "model", folder / "model.onnx")
    result = fused(folder, folder / "model.onnx", folder / "candidates.json")
    assert list(result) == ["fused", "buy", "like"]
    assert result["fused"] == pytest.approx(model.score(rows).tolist(), rel=1e-5, abs=1e-5)
    chances = model.probabilities(rows)
    assert result["buy"] == pytest.approx(chances[:, 0].tolist(), abs=1e-5)
    weighed = folder / "weighed.json"
    weighed.write_text(json.dumps(CANDIDATES | {"weights": [2.0, 0.5]}))
    export_onnx(folder / "model", folder / "model.onnx", require_weights=True, overwrite=True)
    result = fused(folder, folder / "model.onnx", weighed)
    wanted = model.score(rows, weights={"buy": 2.0, "like": 0.5}).tolist()
    assert result["fused"] == pytest.approx(wanted, rel=1e-5, abs=1e-5)


@pytest.fixture
def node():
    if shutil.which("node") is None:
        pytest.skip("node is not installed")


def test_the_example_gives_what_the_model_gives(node, default_model, tmp_path):
    installed = ROOT / "node_modules"
    if not (installed / PACKAGE).is_dir():
        pytest.skip(f"`npm install {PACKAGE}` in the repository lets this run")
    (tmp_path / "node_modules").symlink_to(installed)
    hold(default_model, tmp_path)


@pytest.mark.slow
def test_the_example_gives_what_the_model_gives_with_a_package_of_its_own(
    node, default_model, tmp_path
):
    command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), PACKAGE]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"npm cannot install {PACKAGE}: {done.stderr.strip()[-200:]}")
    hold(default_model, tmp_path)


def test_the_page_shows_the_example_as_it_is():
    code = EXAMPLE.read_text(encoding="utf-8").partition("\nimport ")[2]
    assert f"```js\nimport {code}```" in DOCS.read_text(encoding="utf-8")
