"""Places are undone in blocks as in memory: the same curve, and weights to their last digits."""

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import read_log
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.engine import LocalEngine, using
from harmonrank.fusion import method_class
from harmonrank.fusion.position import corrected, corrected_blocks
from harmonrank.fusion.quality.position_quality import PositionCorrection
from harmonrank.worlds import as_frame, world, world_schema
from harmonrank_lab.worlds import POSITION, with_places

WORLD = world("qkvideo")
PLACED = hr.Schema.from_dict(
    {k: v for k, v in world_schema(WORLD).to_dict().items() if k != "truth"}
    | {"position": POSITION}
)
BLOCK = 3000


class TwoWorkers(LocalEngine):
    name, workers = "two", 2


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in ("model.fit_rows", "data.rows.log_blocks"):
        monkeypatch.setattr(f"harmonrank.{module}.BLOCK_ROWS", BLOCK)
    # Fewer rows are drawn than there are, as of a log that does not fit.
    monkeypatch.setattr("harmonrank.fusion.position.DRAWN", (8000, 5000))


def shown(rows, start, *, unshown):
    sample = WORLD.sample(rows, seed=1, start=start)
    frame = with_places(as_frame(WORLD, sample), WORLD, sample, 1.0, seed=start)
    if not unshown:
        return frame
    quiet = pl.sum_horizontal(*PLACED.names) == 0
    left = quiet & (pl.int_range(rows) % 7 == 0)
    return frame.with_columns(pl.when(left).then(None).otherwise(pl.col(POSITION)).alias(POSITION))


@pytest.fixture(scope="module", params=[False, True], ids=["all shown", "some not shown"])
def tables(request):
    return [shown(n, start, unshown=request.param) for n, start in ((12_000, 0), (6000, 12_000))]


@pytest.mark.parametrize("engine", [LocalEngine(), TwoWorkers()], ids=["one", "workers"])
def test_blocks_have_the_curve_and_the_weights_of_memory(tables, engine, tmp_path):
    tables[0].write_parquet(tmp_path / "train.parquet")
    known = corrected(read_log(tables[0], PLACED))
    with using(engine):
        blocks = corrected_blocks(FileBlocks(tmp_path / "train.parquet", PLACED))
    assert blocks.schema.examination == known.schema.examination
    weight = np.concatenate([blocks[k].sample_weight for k in range(len(blocks))])
    np.testing.assert_allclose(weight, known.sample_weight, rtol=1e-10)
    assert ((weight == 0) == (known.position < 0)).all()


@pytest.mark.parametrize("name", ["harmonrank", "logistic", "closed-form", "formula-cem"])
def test_the_model_is_that_of_memory(tables, name, tmp_path):
    train, valid = tables
    train.write_parquet(tmp_path / "train.parquet")
    options = {"trials": 20} if name.startswith("formula") else {}
    one = method_class(name)(**options).fit(train, PLACED, valid=valid)
    two = method_class(name)(**options)
    blocks = FileBlocks(tmp_path / "train.parquet", PLACED)
    two.fit(blocks, PLACED, valid=valid)
    assert two.training.rows == train[POSITION].is_not_null().sum()
    assert two.schema == one.schema
    np.testing.assert_allclose(two.prevalence, one.prevalence, rtol=1e-10)
    np.testing.assert_allclose(two.score(valid), one.score(valid), rtol=1e-5, atol=1e-6)
    told = two.training.position
    known = PositionCorrection.of(corrected(read_log(train, PLACED).counted()))
    assert told.positives == known.positives
    assert told.effective_positives == pytest.approx(known.effective_positives, rel=1e-10)
