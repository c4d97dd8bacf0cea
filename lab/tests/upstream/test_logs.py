import json
from hashlib import sha256

import numpy as np
import polars as pl
import pytest

from harmonrank.support import DataError, UsageError
from harmonrank_lab.upstream.logs import (
    ImportedLog,
    LogColumns,
    find_kuairand,
    find_tenrec,
    import_log,
)
from raw_logs import (
    START,
    TENREC_COLUMNS,
    USER_COLUMNS,
    log_line,
    read_part,
    user_line,
    video_line,
    write_kuairand,
)

MISSING = "\\N"


def imported(tmp_path, **files):
    import_log(find_kuairand(write_kuairand(tmp_path / "raw", **files)), tmp_path / "out")
    return ImportedLog.open(tmp_path / "out")


def write_tenrec(folder, lines, name="QK-video.csv", header=TENREC_COLUMNS):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return folder


def test_every_row_arrives_once_with_its_values(tmp_path):
    log = imported(tmp_path)
    rows = read_part(log.folder)
    assert rows["row"].to_list() == list(range(40))
    assert rows["user_id"].to_list() == [row % 7 for row in range(40)]
    assert rows["is_click"].to_list() == [row % 2 for row in range(40)]
    assert rows["request"].to_list() == [
        row % 7 * 2_000_000 + START // 3_600_000 for row in range(40)
    ]


def test_types_are_those_that_the_page_promises(tmp_path):
    log = imported(tmp_path)
    schema = read_part(log.folder).schema
    small = ("hour", "tab", "is_rand", "is_hate", "is_profile_enter", *log.columns.objectives)
    assert {schema[c] for c in small} == {pl.UInt8}
    large = ("row", "user_id", "video_id", "time_ms", "request", "duration_ms", "play_time_ms")
    assert {schema[c] for c in large} == {pl.Int64}
    for table, about in ((log.users(), log.columns.users), (log.items(), log.columns.items)):
        assert set(table.columns) == {about.id, *about.categorical, *about.numeric}
        assert {table.schema[c] for c in about.numeric} == {pl.Float32}
        assert {table.schema[c] for c in about.categorical} <= {pl.Int64, pl.String}


def test_the_split_is_two_to_one_to_one_and_no_time_leaks(tmp_path):
    order = np.random.default_rng(0).permutation(4000)
    log = imported(tmp_path, lines=[log_line(i, time_ms=START + 1000 * int(i)) for i in order])
    assert log.rows == {"train": 2000, "valid": 1000, "test": 1000}
    train, valid, test = (read_part(log.folder, part)["time_ms"] for part in log.rows)
    assert train.max() < valid.min()
    assert valid.max() < test.min()


def test_rows_of_one_second_stay_together(tmp_path):
    lines = [log_line(i, time_ms=START + 1000 * (i // 9) + i % 9) for i in range(90)]
    log = imported(tmp_path, lines=lines)
    seconds = [set(read_part(log.folder, part)["time_ms"] // 1000) for part in log.rows]
    assert seconds[0].isdisjoint(seconds[1])
    assert seconds[1].isdisjoint(seconds[2])
    assert abs(log.rows["train"] - 45) <= 9


def test_wanted_rows_are_the_newest(tmp_path):
    source = find_kuairand(write_kuairand(tmp_path / "raw"))
    import_log(source, tmp_path / "out", rows=(10, 6, 4))
    parts = [read_part(tmp_path / "out", p)["row"].to_list() for p in ("train", "valid", "test")]
    assert parts == [list(range(20, 30)), list(range(30, 36)), list(range(36, 40))]
    import_log(source, tmp_path / "two", rows=(None, None, 10))
    assert ImportedLog.open(tmp_path / "two").rows == {"train": 20, "valid": 10, "test": 10}
    with pytest.raises(DataError, match="has 40 rows, fewer than the 50 that are wanted"):
        import_log(source, tmp_path / "three", rows=(50, None, None))


def test_a_log_of_one_second_cannot_be_divided(tmp_path):
    source = find_kuairand(
        write_kuairand(tmp_path / "raw", lines=[log_line(i, time_ms=START) for i in range(9)])
    )
    with pytest.raises(DataError, match="9 rows with 1 different seconds or users leave a part"):
        import_log(source, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["raw"], "nothing half-written is left"


@pytest.mark.parametrize(
    ("hourmin", "minutes_past_midnight", "hour"),
    [
        (1530, 0, 15),
        (900, 0, 9),
        (0, 0, 0),
        (5, 600, 5),
        (5, 5, 0),
        (45, 45, 0),
        (2300, 0, 23),
        (2700, 7 * 60, 7),
        ("", 7 * 60, 7),
    ],
)
def test_the_hour_is_found_with_and_without_minutes(tmp_path, hourmin, minutes_past_midnight, hour):
    time = START + 60_000 * minutes_past_midnight
    lines = [log_line(i, hourmin=hourmin, time_ms=time + i * 1000) for i in range(8)]
    log = imported(tmp_path, lines=lines)
    assert set(read_part(log.folder)["hour"]) == {hour}
    bare = log.manifest["oddities"].get("hourmin without minutes: taken as the hour", 0)
    assert bare == (8 if hour == 5 else 0)


def test_a_duration_of_nothing_is_unknown(tmp_path):
    log = imported(tmp_path, lines=[log_line(i, duration_ms=9000 * (i > 4)) for i in range(40)])
    assert read_part(log.folder)["duration_ms"].to_list() == [None] * 5 + [9000] * 35
    assert log.manifest["oddities"]["duration_ms is 0: null"] == 5


def test_odd_user_features_are_survived(tmp_path):
    users = [user_line(0, is_live_streamer=-124, onehot_feat4="", onehot_feat12="")]
    users += [user_line(1, onehot_feat4="3.0", onehot_feat12="1.0")]
    log = imported(tmp_path, users=users)
    table = log.users()
    assert table["is_live_streamer"].to_list() == [None, 1]
    assert table["onehot_feat4"].to_list() == [None, 3]
    assert table["onehot_feat12"].to_list() == [None, 1]
    assert table["fans_user_num_range"].to_list() == ["[1k,5k)"] * 2
    assert log.manifest["oddities"]["is_live_streamer below 0: null"] == 1


def test_a_renamed_column_is_known_again(tmp_path):
    header = USER_COLUMNS.replace("follow_user_num,", "follow_user_num1,", 1)
    log = imported(tmp_path, user_header=header)
    assert log.users()["follow_user_num"].to_list() == [3.0] * 7


def test_video_features_are_typed(tmp_path):
    table = imported(tmp_path, videos=[video_line(0), video_line(1, tag="7", upload_dt="")]).items()
    assert table["tag"].to_list() == [12, 7]
    assert table["tag_2"].to_list() == [65, None]
    assert table["upload_day"].to_list() == [19092.0, None]
    assert table["video_duration"].to_list() == [17200.0] * 2


def test_features_out_of_order_are_sorted_and_the_first_of_an_id_is_kept(tmp_path):
    users = [user_line(u, follow_user_num=k) for k, u in enumerate([5, 3, 9, 3, 0, 5])]
    log = imported(tmp_path, users=users)
    assert log.users()["user_id"].to_list() == [0, 3, 5, 9]
    assert log.users()["follow_user_num"].to_list() == [4, 1, 0, 2]


def test_files_saved_by_other_programs_are_read(tmp_path):
    folder = write_kuairand(tmp_path / "raw", lines=[log_line(i, is_click="1.0") for i in range(8)])
    log = folder / "log_standard_4_08_to_4_21_pure.csv"
    log.write_bytes(b"\xef\xbb\xbf" + log.read_bytes().replace(b"\n", b"\r\n"))
    import_log(find_kuairand(folder), tmp_path / "out")
    rows = read_part(tmp_path / "out")
    assert rows["is_click"].to_list() == [1] * 8
    assert rows["tab"].to_list() == [1] * 8


def test_files_in_the_folder_data_are_found_in_order(tmp_path):
    folder = write_kuairand(tmp_path / "raw" / "data")
    first = folder / "log_standard_4_08_to_4_21_pure.csv"
    for name in ("log_random_4_22_to_5_08_pure.csv", "log_standard_4_22_to_5_08_pure.csv"):
        (folder / name).write_text(first.read_text())
    names = [f.name[:13] for f in find_kuairand(tmp_path / "raw").files]
    assert names == ["log_standard_", "log_standard_", "log_random_4_"]
    assert len(find_kuairand(tmp_path / "raw", random=False).files) == 2


@pytest.mark.parametrize(
    "other", ["user_features_1k.csv", "log_standard_4_08_to_4_21_1k.csv"], ids=["features", "log"]
)
def test_files_of_two_versions_are_not_mixed(tmp_path, other):
    folder = write_kuairand(tmp_path)
    (folder / other).write_text("user_id\n")
    with pytest.raises(UsageError, match="more than one version: 1k, pure"):
        find_kuairand(folder)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    for find in (find_kuairand, find_tenrec):
        with pytest.raises(DataError, match="There is no folder .*nowhere'; check its name"):
            find(tmp_path / "nowhere")


@pytest.mark.parametrize("gone", ["log_standard", "user_features", "video_features_basic"])
def test_a_missing_file_is_named_with_its_source(tmp_path, gone):
    folder = write_kuairand(tmp_path)
    next(folder.glob(f"{gone}*")).unlink()
    with pytest.raises(
        DataError, match=rf"expected {gone}_\*.csv .* from https://kuairand.com, wh"
    ):
        find_kuairand(folder)


def test_a_file_of_another_kind_is_refused(tmp_path):
    folder = write_kuairand(tmp_path)
    (folder / "log_standard_4_08_to_4_21_pure.csv").write_text("user_id,item_id\n1,2\n")
    with pytest.raises(DataError, match="has no column 'video_id', so it is not the official file"):
        find_kuairand(folder)


def test_an_objective_that_only_one_file_lacks_is_not_dropped_in_silence(tmp_path):
    folder = write_kuairand(tmp_path)
    first = folder / "log_standard_4_08_to_4_21_pure.csv"
    second = folder / "log_standard_4_22_to_5_08_pure.csv"
    second.write_text(first.read_text().replace("is_like", "liked", 1))
    with pytest.raises(DataError, match="4_22_to_5_08_pure.csv' has no column 'is_like'"):
        find_kuairand(folder)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"is_like": 3}, "Label column 'is_like' of .* must be 0 or 1. Got 3"),
        ({"is_like": ""}, "Label column 'is_like' of .* must be 0 or 1. Got null"),
        ({"tab": "home"}, "Column 'tab' of .* must hold whole numbers of 64 bits. Got 'home'"),
        ({"user_id": "9" * 30}, "Column 'user_id' of .* of 64 bits. Got '9{30}'"),
        ({"tab": "1e400"}, "Column 'tab' of .* of 64 bits. Got '1e400'"),
        ({"time_ms": ""}, "Column 'time_ms' of .* has 1 missing values"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_left(tmp_path, changes, sentence):
    lines = [log_line(i, **(changes if i == 20 else {})) for i in range(40)]
    source = find_kuairand(write_kuairand(tmp_path / "raw", lines=lines))
    with pytest.raises(DataError, match=sentence):
        import_log(source, tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["raw"]


def test_columns_that_are_not_there_are_left_out_and_said(tmp_path):
    folder = write_kuairand(tmp_path / "raw")
    log = next(folder.glob("log_standard*"))
    pl.read_csv(log).drop("tab", "is_rand", "is_forward").write_csv(log)
    source = find_kuairand(folder)
    assert source.notes[0].startswith("The log has no is_forward, tab, is_rand: left out")
    import_log(source, tmp_path / "out")
    columns = ImportedLog.open(tmp_path / "out").columns
    assert columns.categorical == ("hour",)
    assert "is_forward" not in columns.objectives
    assert "tab" not in read_part(tmp_path / "out").columns


def test_log_toml_reads_back(tmp_path):
    columns = imported(tmp_path).columns
    (tmp_path / "log.toml").write_text(columns.to_toml())
    assert LogColumns.read(tmp_path / "log.toml") == columns
    (tmp_path / "log.toml").write_text('usr = "user_id"\n')
    with pytest.raises(DataError, match="unknown part 'usr'. Did you mean 'user'"):
        LogColumns.read(tmp_path / "log.toml")


def test_damage_is_found(tmp_path):
    log = imported(tmp_path)
    log.parts("test")[0].unlink()
    with pytest.raises(DataError, match="is missing or damaged"):
        ImportedLog.open(log.folder)
    with pytest.raises(DataError, match="is not an imported log: expected log.toml"):
        ImportedLog.open(tmp_path)


def test_batches_cover_a_part_in_order(tmp_path):
    source = find_kuairand(write_kuairand(tmp_path / "raw"))
    import_log(source, tmp_path / "out", chunk_bytes=500)
    log = ImportedLog.open(tmp_path / "out")
    assert len(log.parts("train")) > 1
    frames = list(log.batches("train", ["row"], rows=3))
    assert max(map(len, frames)) <= 3
    assert pl.concat(frames)["row"].to_list() == list(range(20))
    with pytest.raises(UsageError, match="no part 'tests'. Did you mean 'test'"):
        log.parts("tests")


def test_the_size_of_chunks_changes_no_row(tmp_path):
    source = find_kuairand(write_kuairand(tmp_path / "raw"))
    for name, size in (("one", 1 << 20), ("many", 300)):
        import_log(source, tmp_path / name, chunk_bytes=size)
    for part in ("train", "valid", "test"):
        assert read_part(tmp_path / "one", part).equals(read_part(tmp_path / "many", part))


def test_tenrec_derives_the_long_view_and_keeps_users_whole(tmp_path):
    category = {1: MISSING}
    lines = [
        f"{u},{i},1,0,0,0,{category.get(u, 0)},{i},1,{MISSING}"
        for u in range(400)
        for i in range(4)
    ]
    folder = write_tenrec(tmp_path / "raw", lines)
    import_log(find_tenrec(folder), tmp_path / "out")
    log = ImportedLog.open(tmp_path / "out")
    rows = read_part(log.folder)
    assert rows["long_view"].to_list() == [0, 0, 1, 1] * 400
    assert rows["age"].null_count() == 1600
    assert rows.filter(pl.col("video_category").is_null())["user_id"].unique().to_list() == [1]
    users = [set(read_part(log.folder, part)["user_id"]) for part in log.rows]
    assert sum(map(len, users)) == len(set.union(*users))
    assert log.rows == {"train": 800, "valid": 400, "test": 400}
    assert log.columns.request == "user_id"
    import_log(find_tenrec(folder, long_view=3), tmp_path / "three")
    assert read_part(tmp_path / "three")["long_view"].to_list() == [0, 0, 0, 1] * 400


def test_tenrec_keeps_the_history(tmp_path):
    header = TENREC_COLUMNS + "," + ",".join(f"hist_{k}" for k in range(1, 11))
    lines = [f"{u},2,0,0,0,0,0,0,1,2,9,8,7,6,5,4,3,2,0,0" for u in range(40)]
    folder = write_tenrec(tmp_path / "raw", lines, "ctr_data_1M.csv", header)
    import_log(find_tenrec(folder), tmp_path / "out")
    log = ImportedLog.open(tmp_path / "out")
    assert log.columns.history == tuple(f"hist_{k}" for k in range(1, 11))
    assert read_part(log.folder).row(0, named=True)["hist_1"] == 9
    assert read_part(log.folder)["hist_10"].null_count() == 40


def test_tenrec_files_that_overlap_must_be_chosen_from(tmp_path):
    for name in ("QK-video.csv", "ctr_data_1M.csv"):
        write_tenrec(tmp_path, ["1,2,0,0,0,0,0,0,1,2"], name)
    with pytest.raises(UsageError, match="QK-video.csv, ctr_data_1M.csv, which overlap; choose"):
        find_tenrec(tmp_path)
    assert find_tenrec(tmp_path, file="QK-video.csv").files[0].name == "QK-video.csv"
    with pytest.raises(UsageError, match="no video file 'QK-vidio.csv'. Did you mean 'QK-video.c"):
        find_tenrec(tmp_path, file="QK-vidio.csv")
    with pytest.raises(DataError, match="expected QB-video.csv in it. Download Tenrec from https"):
        find_tenrec(tmp_path, file="QB-video.csv")


def test_the_manifest_counts_what_is_there(tmp_path):
    log = imported(tmp_path)
    manifest = json.loads((log.folder / "manifest.json").read_text())
    for part, rows in manifest["rows"].items():
        frame = read_part(log.folder, part)
        assert len(frame) == rows
        assert frame["is_click"].sum() == manifest["positives"][part]["is_click"]
    assert manifest["source"] == [{"file": "log_standard_4_08_to_4_21_pure.csv", "rows": 40}]


def test_a_large_id_keeps_all_its_digits_beside_fractions(tmp_path):
    changes = {20: {"user_id": 2**53 + 1}, 21: {"user_id": "4.0"}}
    lines = [log_line(i, **changes.get(i, {})) for i in range(40)]
    source = find_kuairand(write_kuairand(tmp_path / "raw", lines=lines))
    import_log(source, tmp_path / "out")
    users = read_part(tmp_path / "out")["user_id"].to_list()
    assert users[20:22] == [2**53 + 1, 4]


def test_a_log_whose_table_holds_something_else_is_not_opened(tmp_path):
    import_log(find_kuairand(write_kuairand(tmp_path / "raw")), tmp_path / "out")
    path = next((tmp_path / "out" / "train").iterdir())
    pl.read_parquet(path).with_columns(tab=pl.lit(0.5)).write_parquet(path)
    manifest = tmp_path / "out" / "manifest.json"
    parts = json.loads(manifest.read_text())
    parts["files"][f"train/{path.name}"]["bytes"] = path.stat().st_size
    manifest.write_text(json.dumps(parts))
    with pytest.raises(DataError, match="Column 'tab' of .* must hold text or whole numbers. Got"):
        ImportedLog.open(tmp_path / "out")


def _digest(folder):
    """Return a digest of all rows, tables and facts of an import; parquet's own bytes aside."""
    log = ImportedLog.open(folder)
    frames = [read_part(folder, part) for part in ("train", "valid", "test")]
    texts = [
        f"{f.schema}{f.write_csv()}" for f in (*frames, log.users(), log.items()) if f is not None
    ]
    facts = {key: value for key, value in log.manifest.items() if key != "files"}
    texts += [json.dumps(facts, sort_keys=True), (folder / "log.toml").read_text("utf-8")]
    return sha256("\n".join(texts).encode()).hexdigest()[:16]


def test_what_an_import_writes_is_part_of_the_format(tmp_path):
    lines = [
        log_line(i, hourmin=[1200, 5, 0, 900, "", 2399][i % 6], duration_ms=9000 * (i % 3 > 0))
        for i in range(60)
    ]
    users = [user_line(u, is_live_streamer=[-124, 1][u % 2], onehot_feat3="") for u in (5, 3, 3, 1)]
    videos = [video_line(v, tag=['"1,2,3"', "7", ""][v % 3], upload_dt="") for v in range(5)]
    imported(tmp_path, lines=lines, users=users, videos=videos)
    assert _digest(tmp_path / "out") == "3db4481ffb30f86c"
    folder = tmp_path / "tenrec"
    folder.mkdir()
    rows = [f"{i % 30},{i},1,0,0,1,\\N,{i % 4},{i % 3},2" for i in range(120)]
    (folder / "QK-video.csv").write_text("\n".join([TENREC_COLUMNS, *rows]) + "\n", "utf-8")
    import_log(find_tenrec(folder, long_view=3), tmp_path / "tenrec-log")
    assert _digest(tmp_path / "tenrec-log") == "0a2500ce0a91c6d8"
