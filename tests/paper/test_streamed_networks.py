"""A network that is trained from a small buffer is as good as one trained in memory."""

import pytest

pytest.importorskip("torch")

from harmonrank.fusion.fitting.block_fit import fit_in_blocks

from harmonrank.data.rows import blocks as training
from harmonrank.data.rows.log_blocks import LogBlocks
from harmonrank.fusion import method_class
from harmonrank.fusion.fitting import row_blocks
from harmonrank.paper.training import buffer
from harmonrank.worlds import as_frame, world_schema
from upstream import OLD, log_of


def frame(rows, seed):
    return as_frame(OLD, OLD.sample(rows, seed=seed))


@pytest.mark.slow
@pytest.mark.parametrize("method", ["harmonrank-paper", "harmonrank-network"])
def test_regret_is_that_of_memory_within_noise(method, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "BUFFER_ROWS", 10_000)
    monkeypatch.setattr(buffer, "_PIECE_ROWS", 200)
    monkeypatch.setattr(row_blocks, "EXAM_ROWS", 10_000)
    schema = world_schema(OLD)
    train, valid, test = frame(80_000, 1), log_of(OLD, 20_000, 2), log_of(OLD, 200_000, 3)
    # As a log might be: sorted by what labels depend on.
    train = train.sort("p_like")
    train.write_parquet(tmp_path / "train.parquet")
    options = {"steps": 600, "batch_rows": 1_000} if method == "harmonrank-paper" else {}

    def regret(model):
        quality = model.evaluate(test)
        return quality.ceiling - quality.exact_auc_sum

    kind = method_class(method)
    alone = [kind(**options).fit(train, schema, valid=valid, seed=seed) for seed in range(2)]
    streamed = kind(**options)
    blocks = LogBlocks(tmp_path / "train.parquet", schema, size=15_000)
    fitted = fit_in_blocks(streamed, blocks, most_rows=1, valid=valid)
    assert fitted.rows == 80_000
    known = [regret(model) for model in alone]
    assert regret(streamed) < max(known) + 0.01, (regret(streamed), known)
