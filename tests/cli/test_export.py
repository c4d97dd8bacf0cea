import json

import pytest

from check_method import quick

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def test_a_model_becomes_a_file_with_its_difference_reported(run, tmp_path):
    quick("closed-form").save(tmp_path / "model")
    done = run("export", tmp_path / "model", "--onnx", tmp_path / "m.onnx", "--json", "-")
    assert done.code == 0, done.err
    numbers = json.loads(done.out)
    assert numbers["bytes"] == (tmp_path / "m.onnx").stat().st_size
    assert max(numbers["largest_difference"].values()) < 1e-5
    assert set(numbers["largest_difference"]) == {"fused", "buy", "like"}
    assert "Exported closed-form to" in done.err


def test_an_existing_file_is_kept(run, tmp_path):
    quick("closed-form").save(tmp_path / "model")
    (tmp_path / "m.onnx").write_text("mine")
    done = run("export", tmp_path / "model", "--onnx", tmp_path / "m.onnx")
    assert done.code == 2
    assert "exists already" in done.err
    assert (tmp_path / "m.onnx").read_text() == "mine"
    flags = ("--overwrite", "--float32", "--quiet")
    assert run("export", tmp_path / "model", "--onnx", tmp_path / "m.onnx", *flags).code == 0
