"""Any raw log, understood by a declaration of its columns."""

from datetime import datetime

import numpy as np
import polars as pl
import pytest

from declared_logs import DECLARATION, write_shop
from harmonrank.support import DataError
from harmonrank_lab.upstream.logs import ImportedLog, find_declared, import_log
from harmonrank_lab.upstream.logs._declared import shipped
from raw_logs import read_part


def _write(folder, text):
    (folder / "declaration.toml").write_text(text, encoding="utf-8")
    return folder / "declaration.toml"


def _import(folder, out, text=DECLARATION):
    return import_log(find_declared(folder, _write(folder, text)), out)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("declared") / "raw"
    events = write_shop(folder)
    _import(folder, folder.parent / "log")
    return events, ImportedLog.open(folder.parent / "log")


def test_every_row_arrives_once_with_its_values(shop):
    events, log = shop
    rows = read_part(log.folder).sort("row")
    assert rows.height == events.height
    assert rows["sku"].to_list() == events["sku"].to_list()
    assert rows["clicked"].to_list() == [int(x == "true") for x in events["clicked"]]
    assert rows["bought"].to_list() == events["bought"].to_list()
    assert rows["engaged"].to_list() == [int((d or 0) >= 30) for d in events["dwell"]]
    assert rows["country"].to_list() == events["country"].to_list()
    assert rows["slot"].to_list() == [None if s is None else int(s[0]) for s in events["slot"]]
    assert rows["price"].to_list() == [p if p > 0 else None for p in events["price"]]
    times = [datetime.fromisoformat(t) for t in events["shown_at"]]
    assert rows["shown_at"].to_list() == [round(t.timestamp() * 1000) for t in times]
    assert rows["hour"].to_list() == [t.hour for t in times]
    assert rows["weekday"].to_list() == [t.weekday() for t in times]


def test_ids_of_text_are_numbers_that_join_and_never_meet_plain_ones(shop):
    events, log = shop
    rows = read_part(log.folder).sort("row")
    pairs = set(zip(events["visitor"], rows["visitor"], strict=True))
    assert len(pairs) == len({name for name, _ in pairs}) == len({code for _, code in pairs})
    assert min(code for _, code in pairs) >= 2**62
    users = dict(log.users().select("visitor", "orders").iter_rows())
    for name, code in pairs:
        number = int(name.removeprefix("v-"))
        assert users[code] == (None if number % 7 == 0 else number)
    # The hash is part of the format: it must be the same in every version.
    assert dict(pairs)["v-51"] == 8729883516518660576


def test_columns_with_many_values_become_the_first_few(shop):
    items = shop[1].items().sort("sku")
    assert items["tags"].to_list()[:5] == ["new", "sale", None, "new", "home"]
    assert items["tags_2"].to_list()[:5] == ["sale", None, None, "home", None]
    assert items["listed"][0] == (datetime(2026, 1, 1) - datetime(1970, 1, 1)).days
    assert "ignored" not in items.columns


def test_other_tables_are_joined_to_the_rows(shop):
    events, log = shop
    rows = read_part(log.folder).sort("row")
    known = {"de": ("EUR", 83.5), "fr": ("EUR", None), None: (None, None)}
    joined = zip(rows["currency"], rows["people"], strict=True)
    assert list(joined) == [known[country] for country in events["country"]]
    assert log.columns.categorical == ("country", "hour", "weekday", "slot", "currency")
    assert log.columns.numeric == ("price", "people")


def test_the_split_goes_by_time_and_requests_are_hours_of_a_user(shop):
    _, log = shop
    parts = [read_part(log.folder, part) for part in ("train", "valid", "test")]
    assert [p.height for p in parts] == [1500, 750, 750]
    assert parts[0]["shown_at"].max() < parts[1]["shown_at"].min()
    rows = pl.concat(parts)
    hours = rows.select("visitor", pl.col("shown_at") // 3_600_000)
    assert rows["request"].n_unique() == hours.unique().height
    assert log.manifest["oddities"]["price is 0: null"] == 306
    assert log.manifest["oddities"]["country missing: null"] == 1000


@pytest.mark.parametrize(
    ("written", "rule", "utc"),
    [
        ("2026-11-01T12:30:15Z", "", "2026-11-01T12:30:15"),
        ("2026-11-01 12:30:15.250", "", "2026-11-01T10:30:15.250"),
        ("2026-11-01T12:30-0330", "", "2026-11-01T16:00:00"),
        ("2026-11-01", "", "2026-10-31T22:00:00"),
        ("1793536215", 'transform = "s"', "2026-11-01T12:30:15"),
        ("1793536215250", 'transform = "ms"', "2026-11-01T12:30:15.250"),
        ("01.11.2026 12:30", 'format = "%d.%m.%Y %H:%M"', "2026-11-01T10:30:00"),
    ],
)
def test_times_are_read_in_the_forms_that_the_page_promises(tmp_path, written, rule, utc):
    days = ["2026-01-01", "2026-01-02", "2026-01-03"] if not rule else ["1000", "2000", "3000"]
    days = [f"0{d[0]}.01.2026 00:00" for d in days] if "format" in rule else days
    raw = tmp_path / "raw"
    raw.mkdir()
    times = [*days, written]
    frame = pl.DataFrame({"u": [1] * 4, "i": [1] * 4, "t": times, "y": [0, 1, 0, 1]})
    frame.write_csv(raw / "log.csv")
    text = 'kind = "x"\nfiles = ["log.csv"]\nuser = "u"\nitem = "i"\ntime = "t"\nlabels = ["y"]\n'
    _import(raw, tmp_path / "out", f"{text}utc_offset = 2\n[columns.t]\n{rule}\n")
    time = read_part(tmp_path / "out", "test")["t"][0]
    assert np.datetime64(time, "ms") == np.datetime64(utc, "ms")


def test_parquet_with_its_own_types_gives_the_same_rows(shop, tmp_path):
    events, log = shop
    raw = tmp_path / "raw"
    write_shop(raw)
    for file in raw.glob("events-*.csv"):
        file.unlink()
    events.with_columns(
        pl.col("shown_at").str.to_datetime("%Y-%m-%dT%H:%M:%S%z").dt.replace_time_zone(None),
        pl.col("clicked") == "true",
    ).write_parquet(raw / "events-1.parquet")
    products = pl.read_parquet(raw / "products.parquet")
    products.with_columns(pl.col("tags").str.split("|")).write_parquet(raw / "products.parquet")
    text = DECLARATION.replace('"events-*.csv"', '"events-*.parquet"').replace(
        'separator = "|", ', ""
    )
    # These times are in UTC, as the type of the column says.
    text = text.replace("utc_offset = 1", "utc_offset = 0")
    _import(raw, tmp_path / "out", text)
    other = ImportedLog.open(tmp_path / "out")
    drop = ["hour", "weekday"]
    assert (
        read_part(tmp_path / "out")
        .sort("row")
        .drop(drop)
        .equals(read_part(log.folder).sort("row").drop(drop))
    )
    assert other.items().equals(log.items())


def test_without_a_clock_users_are_kept_whole(tmp_path):
    raw = tmp_path / "raw"
    write_shop(raw)
    text = DECLARATION.replace('time = "shown_at"', "").replace('"hour", "weekday", ', "")
    text = text.replace('hour = { transform = "hour" }', "")
    text = text.replace('weekday = { transform = "weekday" }', "")
    _import(raw, tmp_path / "out", text)
    parts = [read_part(tmp_path / "out", p)["visitor"].unique() for p in ("train", "valid", "test")]
    assert sum(map(len, parts)) == len(pl.concat(parts).unique()) == 60
    assert ImportedLog.open(tmp_path / "out").columns.request == "visitor"


WRONG = {
    "key": ("numeric =", "numerics =", "unknown key 'numerics'. Did you mean 'numeric'"),
    "key of a table": ("multi =", "many =", r"unknown key 'many' in \[items\]"),
    "key of a rule": ("at_least", "atleast", r"'atleast' in \[columns.engaged\]. Did you mean 'at"),
    "type": ('numeric = ["price"]', "numeric = 3", "`numeric`: expected `array`, got `int`"),
    "number": ("keep = 2", "keep = 0", "`items.columns.tags.keep`: expected `int` >= 1"),
    "transform": (
        '"weekday" }',
        '"weekdya" }',
        "`columns.weekday.transform` is 'weekdya'. Did you mean 'weekday'",
    ),
    "type of a rule": (
        'price = { transform = "positive" }',
        "price = { keep = 1.5 }",
        "`columns.price.keep`: expected `int`, got `float`",
    ),
    "no rule": (
        'price = { transform = "positive" }',
        'price = "positive"',
        "`columns.price`: expected `object`, got `str`",
    ),
    "role": ('user = "visitor"', "", "missing required field `user`"),
    "twice": ('numeric = ["price"]', 'numeric = ["dwell"]', "column 'dwell' is named twice"),
    "row": ('"country"', '"row"', "no column may be called 'row'"),
    "rule": (
        "price = {",
        "prize = {",
        "rule for 'prize', which no role names. Did you mean 'price",
    ),
    "code": (
        'codes = ["slot"]',
        'codes = ["slut"]',
        "`codes` must name categorical columns. Got 's",
    ),
    "clock": ('time = "shown_at"', 'split = "time"', 'split = "time" needs `time`'),
    "column": (
        '"country"',
        '"cuontry"',
        "no column 'cuontry', which the declaration names. Did you",
    ),
    "column of a table": ('"brand"', '"brant"', "products.parquet' has no column 'brant'"),
    "file": (
        '"events-*.csv"',
        '"event.csv"',
        "holds no files of the log 'shop': expected event.csv",
    ),
    "table": ('"visitors.csv"', '"visitor.csv"', "expected visitor.csv in it, as its declaration"),
    "ending": ('"events-*.csv"', '"declaration.toml"', "must be a csv or parquet file"),
    "transform of another role": (
        'price = { transform = "positive" }',
        'price = { transform = "hour" }',
        "`columns.price.transform` of this role must be one of number, positive, day. Got 'hour'",
    ),
    "clock in a table": (
        "listed = {",
        'brand = { transform = "weekday" }\nlisted = {',
        "`items.columns.brand.transform` of this role must be one of text, code, not_negative",
    ),
    "outside": ('"events-*.csv"', '"../events-*.csv"', "must be within the folder of the log"),
    "version": ("utc_offset = 1", 'one_version = "(a"', "`one_version` is no pattern"),
    "group": ("utc_offset = 1", 'one_version = "a"', "`one_version` must have a group"),
    "format": (
        "[columns]",
        '[columns]\nshown_at = { format = "%Q" }',
        "Time column 'shown_at' must|The declared columns cannot be made",
    ),
    "fill": (
        "missing = 0, at_least = 30 }",
        'missing = "none", at_least = 30, transform = "label" }',
        "The declared columns cannot be made|Label column",
    ),
    "whole and text": (
        "missing = 0, at_least = 30 }",
        'missing = 0, at_least = 30, type = "uint8" }',
        "'dwell' is declared as a whole number for 'engaged' and as text for another column",
    ),
    "key of a join": (
        'on = "country"',
        'onn = "country"',
        r"'onn' in \[joins.regions\]. Did",
    ),
    "column of a join": ('on = "country"', 'on = "land"', "events-1.csv' has no column 'land'"),
    "rule of a join": (
        "[columns]",
        "[columns]\ncurrency = { missing = 0 }",
        "rule for 'currency', which no role names",
    ),
    "joined twice": ('["currency"]', '["slot"]', "column 'slot' is named twice"),
    "request": ('["currency"]', '["request"]', "declare it as `request`, or rename it"),
    "toml": ("kind =", "kind", "cannot be read as a TOML declaration"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_declaration_is_one_sentence(tmp_path, case):
    old, new, sentence = WRONG[case]
    write_shop(tmp_path / "raw", rows=40)
    assert old in DECLARATION
    with pytest.raises(DataError, match=sentence):
        _import(tmp_path / "raw", tmp_path / "out", DECLARATION.replace(old, new, 1))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        (
            "clicked",
            "perhaps",
            "Label column 'clicked' must be 0 or 1, or true or false. Got 'perh",
        ),
        ("bought", 3, "Label column 'bought' of .* must be 0 or 1. Got 3"),
        (
            "shown_at",
            "yesterday",
            "Time column 'shown_at' must hold ISO 8601 text. Got 'yesterday'",
        ),
        ("shown_at", None, "Column 'shown_at' of .* has 1 missing values; drop those rows"),
        ("visitor", None, "User column 'visitor' has 1 missing values; drop those rows"),
    ],
)
def test_a_wrong_value_is_named(tmp_path, column, value, sentence):
    events = write_shop(tmp_path / "raw", rows=40)
    values = [value, *events[column].to_list()[1:20]]
    bad = events[:20].with_columns(pl.Series(column, values, strict=False))
    bad.write_csv(tmp_path / "raw" / "events-1.csv")
    with pytest.raises(DataError, match=sentence):
        _import(tmp_path / "raw", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_public_logs_are_declared_in_the_same_form():
    assert shipped("kuairand").kind == "kuairand"
    assert shipped("tenrec").labels[0] == "click"
