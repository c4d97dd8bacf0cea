"""The examples run as they are."""

import runpy
from pathlib import Path

EXAMPLES = Path(__file__).parent.parent / "examples"


def test_the_network_and_the_loss_work_in_a_plain_pytorch_loop(capsys):
    found = runpy.run_path(str(EXAMPLES / "plain_pytorch.py"))
    assert found["loss"].item() < 0.6  # 2 − Σ AUC, which is 1 for a random order
    assert capsys.readouterr().out.startswith("AUC [0.")
