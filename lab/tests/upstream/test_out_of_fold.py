import dataclasses

import polars as pl
import pytest

from harmonrank_lab.upstream import FULL, PredictorConfig, fit_predictor, fusion_schema
from harmonrank_lab.upstream.scoring import score_frame

# No shrinkage and large steps: a network that learns its rows by heart, as large ones do.
BY_HEART = PredictorConfig(
    epochs=2,
    batch_rows=64,
    embedding=32,
    expert_width=16,
    tower_width=8,
    dropout=0.0,
    shrinkage=0.0,
    learning_rate=1e-2,
    table_rate=0.5,
    refits=1,
)
NAMES = ("is_click", "long_view", "is_like")


@pytest.fixture(scope="module")
def scored(log, tmp_path_factory):
    """Return tables by how they were scored, and their schema."""
    path = tmp_path_factory.mktemp("oof") / "model"
    predictor = fit_predictor(log, path, BY_HEART, folds=4, seed=1)
    schema = dataclasses.replace(fusion_schema(log)[0].subset(NAMES), context=())
    numbers = [log.columns.objectives.index(name) for name in NAMES]

    def table(part, *, out_of_fold=False):
        frame = pl.concat(log.batches(part))
        if part == "train" and not out_of_fold:
            p = predictor.members[FULL].score(predictor.encoder.rows(frame))
        else:
            p = score_frame(predictor, frame, own=part)
        frame = frame.drop(log.columns.truth.values()) if part == "train" else frame
        columns = zip(schema.score_columns, numbers, strict=True)
        return frame.with_columns(pl.Series(name, p[:, m]) for name, m in columns)

    tables = {part: table(part) for part in ("train", "valid", "test")}
    return tables | {"out of fold": table("train", out_of_fold=True)}, schema


def test_scores_that_saw_their_labels_promise_what_test_rows_do_not_keep(scored):
    from harmonrank.metrics import auc

    tables, _ = scored

    def likes(name):
        return float(auc(tables[name]["p_is_like"].to_numpy(), tables[name]["is_like"].to_numpy()))

    assert likes("train") > likes("test") + 0.05
    assert likes("out of fold") < likes("test") + 0.05
