"""What docs/security.md says was tried is what the slow suite has counted."""

import json
from pathlib import Path

from tally import table_rows

ROOT = Path(__file__).parents[2]


def test_the_table_of_what_was_tried_is_of_the_stored_run():
    stored = json.loads((ROOT / "benchmarks/results/torture.json").read_text("utf-8"))
    page = (ROOT / "docs/security.md").read_text("utf-8")
    for row in table_rows(stored):
        assert row in page, "run `python tests/helpers/tally.py benchmarks/results/torture.json`"
