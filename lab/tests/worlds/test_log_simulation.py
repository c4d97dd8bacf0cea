import json

import numpy as np
import polars as pl
import pytest

from harmonrank.metrics import auc
from harmonrank.support import UsageError
from harmonrank_lab.upstream.logs import (
    TENREC_FILES,
    ImportedLog,
    find_kuairand,
    find_tenrec,
    import_log,
)
from harmonrank_lab.worlds.raw import KuaiRandWorld, TenrecWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log
from raw_logs import LOG_COLUMNS, TENREC_COLUMNS, USER_COLUMNS, VIDEO_COLUMNS, read_part

ROWS = 120_000
LOGS = (
    "data/log_standard_4_08_to_4_21_pure.csv",
    "data/log_standard_4_22_to_5_08_pure.csv",
    "data/log_random_4_22_to_5_08_pure.csv",
)


@pytest.fixture(scope="module")
def kuairand(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "kuairand"
    simulate_log(KuaiRandWorld(1500, 400), ROWS, path, seed=3)
    return path


@pytest.fixture(scope="module")
def tenrec(tmp_path_factory):
    path = tmp_path_factory.mktemp("log") / "tenrec"
    simulate_log(TenrecWorld(1500, 400, file="ctr_data_1M.csv"), ROWS, path, seed=3)
    return path


def read_logs(path):
    return pl.concat(pl.read_csv(path / name) for name in LOGS)


def test_kuairand_files_have_the_official_columns(kuairand):
    headers = {
        **dict.fromkeys(LOGS, LOG_COLUMNS),
        "data/user_features_pure.csv": USER_COLUMNS,
        "data/video_features_basic_pure.csv": VIDEO_COLUMNS,
    }
    for name, header in headers.items():
        with (kuairand / name).open() as stream:
            assert stream.readline().rstrip("\n") == header
    log = read_logs(kuairand)
    assert len(log) == ROWS
    assert set(log.dtypes) == {pl.Int64}


def test_tenrec_files_have_the_official_columns(tmp_path):
    for name in TENREC_FILES:
        simulate_log(TenrecWorld(20, 9, file=name), 200, tmp_path / name)
        header = (tmp_path / name / name).read_text().splitlines()[0]
        history = ",".join(["", *(f"hist_{k}" for k in range(1, 11))])
        assert header == TENREC_COLUMNS + (history if name == "ctr_data_1M.csv" else "")


def test_time_is_that_of_the_file_and_ascends_within_a_user(kuairand):
    first, second, random = (pl.read_csv(kuairand / name) for name in LOGS)
    assert first["date"].is_between(20220408, 20220421).all()
    assert second["date"].is_between(20220422, 20220508).all()
    for log in (first, second, random):
        china = pl.from_epoch("time_ms", "ms").dt.offset_by("8h")
        written = log.select(
            date=china.dt.strftime("%Y%m%d").cast(pl.Int64), hour=china.dt.hour().cast(pl.Int64)
        )
        assert (written["date"] == log["date"]).all()
        assert (written["hour"] * 100 == log["hourmin"]).all()
        assert log.select("user_id", "time_ms").equals(
            log.select("user_id", "time_ms").sort("user_id", "time_ms")
        )
    assert set(first["is_rand"]) == set(second["is_rand"]) == {0}
    assert set(random["is_rand"]) == {1}


def test_a_long_view_is_one_by_the_official_rule(kuairand):
    log = read_logs(kuairand)
    enough = pl.min_horizontal("duration_ms", pl.lit(18_000))
    assert log.select(
        ((pl.col("play_time_ms") >= enough) == (pl.col("long_view") == 1)).all()
    ).item()
    assert (log["play_time_ms"] >= 0).all()


@pytest.mark.parametrize("world", [KuaiRandWorld, TenrecWorld])
def test_rates_are_those_of_the_objectives(world, tmp_path):
    place = world(1500, 400)
    summary = simulate_log(place, ROWS, tmp_path / "log", seed=5)
    truth = pl.read_parquet(tmp_path / "log" / "truth.parquet")
    for objective in place.objectives:
        p = truth[f"true_{objective.name}"].to_numpy().astype(np.float64)
        error = np.sqrt((p * (1 - p)).sum())
        assert abs(summary["positives"][objective.name] - p.sum()) < 4.5 * error
        # The rate is set on other draws of users and items, so these add their own error.
        assert abs(p.mean() / objective.rate - 1) < 0.06


def test_the_truth_follows_the_rows_through_an_import(kuairand, tmp_path):
    import_log(find_kuairand(kuairand), tmp_path / "out", chunk_bytes=1 << 20)
    log = ImportedLog.open(tmp_path / "out")
    rows, raw = read_part(log.folder), read_logs(kuairand)
    assert rows.select(log.columns.objectives).equals(
        raw.select(pl.col(log.columns.objectives).cast(pl.UInt8))
    )
    assert rows.select("user_id", "video_id", "time_ms").equals(
        raw.select("user_id", "video_id", "time_ms")
    )
    truth = pl.read_parquet(kuairand / "truth.parquet")
    assert rows.select(log.columns.truth.values()).equals(truth)
    assert log.columns.users is not None
    assert len(log.users()) == 1500
    assert len(log.items()) == 400


def test_long_views_of_tenrec_survive_an_import(tenrec, tmp_path):
    import_log(find_tenrec(tenrec), tmp_path / "out")
    log = ImportedLog.open(tmp_path / "out")
    said = json.loads((tenrec / "truth.json").read_text())["positives"]
    for name in log.columns.objectives:
        assert said[name] == sum(p[name] for p in log.manifest["positives"].values())
    history = read_part(log.folder).group_by("user_id").agg(pl.col("hist_1").n_unique())
    assert (history["hist_1"] == 1).all(), "the same in all rows of a user"


def test_the_auc_that_is_told_is_the_exact_one(kuairand):
    truth = pl.read_parquet(kuairand / "truth.parquet").to_numpy().astype(np.float64)
    said = json.loads((kuairand / "truth.json").read_text())
    labels = read_logs(kuairand).select(list(said["auc"])).to_numpy()
    for m, name in enumerate(said["auc"]):
        p = np.ascontiguousarray(truth[:, m])
        assert auc(p, p[:, None])[0] == pytest.approx(said["auc"][name], abs=1e-4)
        assert auc(p, labels[:, [m]])[0] == pytest.approx(said["auc_on_labels"][name], abs=1e-4)


def test_no_single_column_ranks_as_well_as_the_truth(kuairand):
    log = read_logs(kuairand)
    users = pl.read_csv(kuairand / "data/user_features_pure.csv")
    videos = pl.read_csv(kuairand / "data/video_features_basic_pure.csv")
    wide = log.join(users, on="user_id").join(videos, on="video_id")
    half = np.random.default_rng(0).random(len(wide)) < 0.5
    learn, test = wide.filter(half), wide.filter(~half)
    said = json.loads((kuairand / "truth.json").read_text())
    seen = ["user_id", "video_id", "hourmin", "tab", *users.columns[1:], *videos.columns[1:]]
    best = 0.0
    for name in seen:
        known = learn.group_by(name).agg(pl.col("is_click").mean().alias("score"))
        score = test.select(name).join(known, on=name, how="left", maintain_order="left")["score"]
        labels = test.select("is_click").to_numpy()
        best = max(best, auc(score.fill_null(0.46).to_numpy().copy(), labels)[0])
    assert 0.55 < best < said["auc_on_labels"]["is_click"] - 0.03


def test_features_tell_of_users_and_popularity_is_uneven(kuairand):
    log = read_logs(kuairand)
    users = pl.read_csv(kuairand / "data/user_features_pure.csv")
    rates = log.group_by("user_id").agg(pl.col("is_click").mean()).join(users, on="user_id")
    groups = rates.group_by("onehot_feat1").agg(pl.col("is_click").mean(), pl.len())
    assert groups.filter(pl.col("len") > 50)["is_click"].std() > 0.02
    shown = log["video_id"].value_counts()["count"].sort(descending=True)
    assert shown[:40].sum() > 3 * shown[-200:-160].sum()


def test_a_seed_draws_rows_and_a_redraw_draws_the_world(tmp_path):
    def files(name, redraw, seed):
        simulate_log(KuaiRandWorld(50, 20, redraw=redraw), 400, tmp_path / name, seed=seed)
        log, users = (tmp_path / name / f for f in (LOGS[0], "data/user_features_pure.csv"))
        return log.read_bytes(), users.read_bytes()

    plain, same, seeded, redrawn = (
        files(*options) for options in (("a", 0, 0), ("b", 0, 0), ("c", 0, 1), ("d", 1, 0))
    )
    assert plain == same
    assert plain[0] != seeded[0]
    assert plain[1] == seeded[1]
    assert plain[1] != redrawn[1]


def test_a_log_of_one_row_can_be_written(tmp_path):
    assert simulate_log(KuaiRandWorld(1, 1), 1, tmp_path / "one")["rows"] == 1
    with pytest.raises(UsageError, match="`rows` must be at least 1. Got 0"):
        simulate_log(KuaiRandWorld(1, 1), 0, tmp_path / "none")
