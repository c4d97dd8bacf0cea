import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.engine import LocalEngine
from harmonrank.evaluation import partitioned_quality
from harmonrank.fusion.baselines.closed_form import PrevalenceWeights
from harmonrank.support import DataError

ROWS = 3_000


def table(digits=None, seed=0):
    rng = np.random.default_rng(seed)
    request = rng.permutation(np.arange(ROWS) // 6)  # requests are spread over all blocks
    p = rng.beta(2, 5, (ROWS, 2))
    labels = rng.random((ROWS, 2)) < p
    p = p if digits is None else p.round(digits)
    columns = {"p_a": p[:, 0], "p_b": p[:, 1], "a": labels[:, 0], "b": labels[:, 1]}
    text = pl.Series([f"r{n}" for n in request])
    more = {"w": rng.integers(0, 3, ROWS), "number": request, "text": text, "user": request % 90}
    return pl.DataFrame(columns | more)


def ends(interval):
    return [interval.estimate, interval.low, interval.high]


@pytest.mark.parametrize("digits", [None, 2, 0])
@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize(
    ("request_column", "user"),
    [(None, None), ("number", None), ("text", None), ("text", "user"), (None, "user")],
)
def test_blocks_are_measured_as_all_rows_in_memory_are(
    tmp_path, digits, weight, request_column, user
):
    rows = table(digits)
    rows.write_parquet(tmp_path / "log.parquet")
    schema = hr.Schema(
        {"a": "p_a", "b": "p_b"},
        request=request_column,
        user=user,
        sample_weight=weight,
        weights={"a": 2.0, "b": -1.0},
    )
    model = PrevalenceWeights().fit(rows, schema)
    expected = model.evaluate(rows)
    blocks = FileBlocks(tmp_path / "log.parquet", schema, size=400)
    for engine in (None, LocalEngine()):
        result = partitioned_quality(model, blocks, engine)
        assert result.rows == expected.rows
        assert result.prevalence == pytest.approx(expected.prevalence, rel=1e-12)
        assert result.effective_weights == pytest.approx(expected.effective_weights)
        pairs = [(result.auc_sum, expected.auc_sum)]
        pairs += [(result.auc[name], expected.auc[name]) for name in "ab"]
        assert (result.requests is None) == (request_column is None)
        if result.requests is not None and expected.requests is not None:
            pairs += [(result.requests.auc_sum, expected.requests.auc_sum)]
            pairs += [(result.requests.auc[n], expected.requests.auc[n]) for n in "ab"]
            assert result.request_auc == pytest.approx(expected.request_auc, rel=1e-12)
        for one, other in pairs:
            np.testing.assert_allclose(ends(one), ends(other), rtol=1e-9)
    assert list(tmp_path.iterdir()) == [tmp_path / "log.parquet"]


def test_labels_that_are_all_alike_are_refused(tmp_path):
    rows = table()
    schema = hr.Schema({"a": "p_a", "b": "p_b"})
    model = PrevalenceWeights().fit(rows, schema)
    rows.with_columns(a=pl.lit(0)).write_parquet(tmp_path / "log.parquet")
    blocks = FileBlocks(tmp_path / "log.parquet", schema, size=400)
    with pytest.raises(DataError, match="'a' has no positive label among the 3,000"):
        partitioned_quality(model, blocks)
