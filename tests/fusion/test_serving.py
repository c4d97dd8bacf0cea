"""What a process that only scores has to load."""

import subprocess
import sys

import pytest

import harmonrank as hr
from harmonrank.support import DataError

SCORE = """
import sys
import harmonrank as hr
from harmonrank.support.errors import DataError
from harmonrank.fusion.baselines.logistic import Logistic
fused = hr.load(sys.argv[1]).score(sys.argv[2])
assert len(fused) == 600, len(fused)
heavy = ("torch", "harmonrank.paper.losses", "harmonrank.paper.training", "harmonrank.evaluation")
print(*[name for name in heavy if name in sys.modules])
"""


@pytest.mark.parametrize(
    "method",
    [
        hr.HarmonRank(),
        hr.HarmonRankPaper(epochs=1, buckets=8),
        hr.ClosedForm(),
    ],
    ids=lambda method: method.name,
)
def test_scoring_imports_neither_pytorch_nor_training_code(method, table, schema, tmp_path):
    method.fit(table, schema).save(tmp_path / "model")
    table.write_parquet(tmp_path / "rows.parquet")
    command = [sys.executable, "-c", SCORE, tmp_path / "model", tmp_path / "rows.parquet"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_weights_of_a_request_are_those_of_a_table(table, schema):
    method = hr.HarmonRank().fit(table, schema)
    row = table.select(schema.context).row(0, named=True)
    weights = {schema.names[0]: 5.0}
    first = method.score_request(
        table.select(schema.score_columns).to_numpy()[:1], row, weights=weights
    )
    assert first[0] == method.score(table[:1], weights=weights)[0]


@pytest.mark.parametrize(
    ("scores", "context", "words"),
    [
        ([[0.1]], None, "one column for each of"),
        ([[0.1, 2.0]], None, r"must lie in \[0, 1\]. Got 0.1 to 2.0"),
        ([[0.1, float("inf")]], None, r"must lie in \[0, 1\]"),
        ([[None, 2.0]], None, r"must lie in \[0, 1\]"),
        ([[None, "x"]], None, "must be numbers"),
        ([[0.1, 0.2]], {}, "lacks"),
        ([[0.1, 0.2]], {"hour": "noon", "age": None}, "was integer in training. Got 'noon'"),
    ],
)
def test_a_bad_request_gets_one_sentence(scores, context, words, table, schema):
    method = hr.HarmonRank().fit(table, schema)
    with pytest.raises(DataError, match=words):
        method.score_request(scores, context)
