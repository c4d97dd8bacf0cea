"""Checkpoints that were altered are refused in one sentence."""

import json

import pytest
from safetensors.numpy import load_file, save_file

from fuzzing import checkpoint
from harmonrank.paper.training import Progress
from harmonrank.support import ModelFileError
from harmonrank.support.storage.arrays import array_header, digest


@pytest.mark.parametrize("of", ["optimizer/0/", "optimizer/"])
def test_an_optimiser_that_lacks_its_step_is_refused(tmp_path, of):
    path = tmp_path / "checkpoint"
    checkpoint().save(path, Progress(epoch=1), "x")
    texts = {key: array_header(path)[key] for key in ("progress", "fingerprint")}
    arrays = {n: a for n, a in load_file(path).items() if not (n.startswith(of) and "step" in n)}
    assert len(arrays) < len(load_file(path))
    save_file(arrays, path, metadata=texts | {"sha256": digest(arrays, texts)})
    with pytest.raises(ModelFileError, match="step"):
        checkpoint().load(path, "x")


def test_a_progress_with_other_parts_is_refused(tmp_path):
    path = tmp_path / "checkpoint"
    checkpoint().save(path, Progress(epoch=1), "x")
    texts = {key: array_header(path)[key] for key in ("progress", "fingerprint")}
    progress = json.loads(texts["progress"])
    arrays = load_file(path)
    for changed in ({**progress, "more": 1}, {"epoch": 1}, {**progress, "step": -1}):
        texts["progress"] = json.dumps(changed)
        save_file(arrays, path, metadata=texts | {"sha256": digest(arrays, texts)})
        with pytest.raises(ModelFileError, match="its progress"):
            checkpoint().load(path, "x")
