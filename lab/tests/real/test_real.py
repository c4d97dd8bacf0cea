"""Real logs as a benchmark: what upstream models may see, and how methods are judged."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.data import Schema
from harmonrank.metrics import grouped_auc
from harmonrank_lab.real import (
    LEAST_POSITIVES,
    LOGS,
    differences_table,
    judged,
    prepare,
    real_log,
    tally_table,
    within_requests,
)
from harmonrank_lab.worlds.raw import KuaiRandWorld
from harmonrank_lab.worlds.raw_simulation import simulate_log

DATA = Path(__file__).parents[4] / "shared" / "data"
MANY = 2_000_000
SHOP = """
title = "Shop"
folder = "shop"
context = ["age"]

[declaration]
files = ["shop.csv"]
user = "u"
item = "i"
labels = ["buy"]
request = "u"
categorical = ["age"]
"""


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Return a folder of KuaiRand-Pure's official files, simulated."""
    folder = tmp_path_factory.mktemp("real") / "kuairand-pure"
    simulate_log(KuaiRandWorld(users=300, items=80), 12_000, folder, seed=1)
    return folder


@pytest.fixture(scope="module")
def rows(raw):
    return real_log("kuairand-pure").read(raw.parent, MANY)


@pytest.fixture
def fused():
    """Return labels, requests, users, and two scores of which the first knows more."""
    rng = np.random.default_rng(0)
    requests = rng.integers(0, 150, 900)
    labels = (rng.random((900, 2)) < 0.4).astype(np.int64)
    scores = {"good": labels.sum(axis=1) + rng.normal(size=900), "poor": rng.normal(size=900)}
    return scores, labels, requests, requests // 3


def test_auc_within_requests_is_that_of_the_product(fused):
    scores, labels, requests, _ = fused
    tied = np.round(scores["good"])
    area, say, first = within_requests(tied, labels, requests)
    expected = grouped_auc(tied, labels, requests)
    np.testing.assert_allclose((area * say).sum(axis=0) / say.sum(axis=0), expected, atol=1e-12)
    assert sorted(requests[first]) == sorted(set(requests))


def test_a_method_is_ahead_of_a_poorer_one_and_ties_with_itself(fused):
    scores, labels, requests, users = fused
    scores |= {"same": scores["good"]}
    areas, (poor, same) = judged(scores, labels, np.array([1.0, 2.0]), requests, users, 0)
    for k, measure in enumerate(("within_requests", "all_rows")):
        gap = (areas["good"][k] - areas["poor"][k]) @ [1, 2]
        assert poor[measure]["estimate"] == pytest.approx(gap)
        assert 0 < poor[measure]["low"] < gap < poor[measure]["high"]
        assert (same[measure]["low"], same[measure]["high"]) == (0, 0)


def test_requests_of_one_row_have_no_difference_within(fused):
    scores, labels, _, users = fused
    _, (poor,) = judged(scores, labels, np.ones(2), np.arange(900), users, 0)
    assert poor["within_requests"] is None
    assert poor["all_rows"]["low"] > 0


def test_a_user_day_is_a_request_and_later_rows_are_the_test(rows):
    days = rows.frame.group_by("part").agg(low=pl.col("day").min(), high=pl.col("day").max())
    days = days.sort("part")
    assert (days["high"][:-1] < days["low"][1:]).all()
    each = rows.frame.group_by("request_id").agg(pl.col("user_id", "day").n_unique())
    assert each.select(pl.col("user_id", "day").max()).row(0) == (1, 1)


@pytest.mark.parametrize("name", ["kuairand-pure", "kuairand-pure-daily"])
def test_scores_do_not_see_labels_of_their_own_or_later_days(raw, name):
    import msgspec

    rows = real_log(name).read(raw.parent, MANY)
    last = pl.col("day") == pl.col("day").max()
    changed = rows.frame.with_columns(
        pl.when(last).then(1 - pl.col("is_click")).otherwise("is_click").alias("is_click")
    )
    before, after = (
        prepare(some, 0) for some in (rows, msgspec.structs.replace(rows, frame=changed))
    )
    assert before.test["p_is_click"].equals(after.test["p_is_click"])
    assert not before.test["is_click"].equals(after.test["is_click"])
    assert before.train.equals(after.train)


def test_an_objective_needs_positives_in_every_part(rows):
    prepared = prepare(rows, 0)
    facts = prepared.facts()
    assert prepared.schema.names[:2] == ("is_click", "long_view")
    assert all(min(counts) >= LEAST_POSITIVES for counts in facts["positives"].values())
    assert "is_forward" in facts["too_few"]
    assert set(prepared.schema.context) < set(prepared.with_items.context)
    assert prepared.schema.time == "time_ms"
    assert prepared.train["time_ms"].is_sorted()


def test_the_verb_judges_a_log_in_official_files(run, raw, tmp_path):
    command = ("lab", "real", "kuairand-pure", "--data", raw.parent)
    keys = '[lab.real]\nitems = "no"\nformat = "md"'
    methods = ("--methods", "harmonrank,closed-form")
    done = run(*command, *methods, "--json", "-", "-o", tmp_path / "out", settings=keys)
    assert done.code == 0, done
    numbers = json.loads(done.out)
    (log,) = numbers["logs"]
    assert [method["name"] for method in log["methods"]] == ["harmonrank", "closed-form"]
    (difference,) = log["differences"]
    assert difference["method"] == "closed-form"
    assert "| KuaiRand-Pure | closed-form |" in done.err
    assert set(numbers["code"]) == {"commit", "version"}
    folder = tmp_path / "out" / "kuairand-pure"
    model = hr.ClosedForm().fit(folder / "train.parquet", Schema.read(folder / "schema.toml"))
    quality = model.evaluate(folder / "test.parquet")
    sums = [m["auc_sum"] for m in log["methods"] if m["name"] == "closed-form"]
    assert sums == [pytest.approx(quality.auc_sum.estimate)]


@pytest.mark.parametrize("name", ["kuairand-pure", "mind", "ebnerd", "trivago", "hillstrom"])
def test_missing_files_get_one_sentence(run, tmp_path, name):
    done = run("lab", "real", name, "--data", tmp_path)
    assert done.code == 2
    said = " ".join(done.err.split())
    files = real_log(name).expects or ["log_standard_*.csv"]
    assert all(file in said for file in files)
    assert "nothing is downloaded for you." in said


def test_an_unknown_log_or_an_empty_folder_gets_a_sentence(run, tmp_path):
    said = " ".join(run("lab", "real", "kuairand-pur", "--data", tmp_path).err.split())
    assert "There is no real log 'kuairand-pur'. Did you mean 'kuairand-pure'?" in said
    said = " ".join(run("lab", "real", "--data", tmp_path).err.split())
    assert "holds no folder of a known log; expected some of ebnerd, hillstrom" in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("title =", "titel ="), "tells no real log: Object contains unknown field `titel`."),
        (('user = "u"', "user = 3"), "The declaration of Shop is none: Expected `str`, got `int`"),
        (("context =", 'rates = "daily"\ncontext ='), "Shop needs a clock; declare `time`"),
        (('["age"]', '["aeg"]'), "Shop has no column 'aeg'. Did you mean 'age'?"),
        (("context =", "context ="), "Shop needs a label with 40 positives and negatives"),
    ],
)
def test_a_log_of_ones_own_is_read_or_refused_in_a_sentence(run, tmp_path, change, sentence):
    (tmp_path / "shop.toml").write_text(SHOP.replace(*change, 1))
    lines = [f"{k % 9},{k % 4},{k % 2},{k % 3}" for k in range(60)]
    (tmp_path / "shop.csv").write_text("\n".join(["u,i,buy,age", *lines]) + "\n")
    done = run("lab", "real", tmp_path / "shop.toml", "--data", tmp_path)
    assert done.code == 2, done
    assert sentence in " ".join(done.err.split())


@pytest.mark.parametrize("name", LOGS)
def test_every_known_log_is_declared_well(name):
    log = real_log(name)
    declared = log.declared()
    assert set(log.unwanted) <= set(declared.labels)
    assert log.begins == sorted(log.begins)


def test_a_line_of_mind_becomes_a_row_per_news(tmp_path):
    (tmp_path / "MINDsmall_train").mkdir()
    lines = [
        "1\tU1\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0",
        "2\tU2\t11/12/2019 6:05:58 PM\t\tN3-0",
        "3\tU1\t11/13/2019 12:05:58 AM\tN1\tN4-1",
    ]
    (tmp_path / "MINDsmall_train" / "behaviors.tsv").write_text("\n".join(lines) + "\n")
    news = 'N3\tnews\tworld\tA "title\tText\turl\t[]\t[]\nN4\tsports\tgolf\tB\t\turl\t[]\t[]\n'
    (tmp_path / "MINDsmall_train" / "news.tsv").write_text(news)
    frame = real_log("mind").read(tmp_path, MANY).frame
    assert frame["click"].to_list() == [1, 0, 0, 1]
    assert frame["request"].to_list() == [0, 0, 1, 2]
    assert frame["read_before"].to_list() == [2, 2, 0, 1]
    assert frame["hour"].to_list() == [9, 9, 18, 0]
    assert frame["category"].to_list() == ["news", "sports", "news", "sports"]


def test_a_line_of_ebnerd_becomes_a_row_per_article(tmp_path):
    from datetime import datetime

    lists = pl.DataFrame(
        {
            "user_id": [7, 8, 7],
            "impression_time": [datetime(2023, 5, day, 7) for day in (18, 19, 20)],
            "device_type": [1, 2, 1],
            "is_subscriber": [True, False, True],
            "is_sso_user": [True, False, True],
            "article_ids_inview": [[10, 11], [11, 10], [10]],
            "article_ids_clicked": [[11], [11], []],
            "next_read_time": [40.0, None, 40.0],
            "next_scroll_percentage": [50.0, 100.0, 100.0],
        }
    )
    articles = pl.DataFrame(
        {
            "article_id": [10, 11],
            "published_time": [datetime(2023, 5, 18, 6), datetime(2023, 5, 18, 5)],
            "article_type": ["a", "b"],
            "sentiment_label": ["Neutral", "Positive"],
            "category": [1, 2],
            "premium": [False, True],
        }
    )
    (tmp_path / "train").mkdir()
    lists.write_parquet(tmp_path / "train" / "behaviors.parquet")
    articles.write_parquet(tmp_path / "articles.parquet")
    frame = real_log("ebnerd").read(tmp_path, MANY).frame
    assert frame["click"].to_list() == [0, 1, 1, 0, 0]
    assert frame["long_read"].to_list() == [0, 1, 0, 0, 0]
    assert frame["full_scroll"].to_list() == [0, 0, 1, 0, 0]
    assert frame["age_hours"].to_list() == pytest.approx([1, 2, 26, 25, 49])
    assert frame["premium"].to_list() == ["0", "1", "1", "0", "0"]


def test_a_session_of_trivago_becomes_a_row_per_hotel(tmp_path):
    head = "user_id,session_id,timestamp,step,action_type,reference,platform,city,device,"
    lines = [
        head + "current_filters,impressions,prices",
        "U,s,1541037460,1,interaction item image,20,AU,Sydney,mobile,,,",
        "U,s,1541037470,2,clickout item,10,AU,Sydney,mobile,,10|20|30,90|80|70",
        "U,s,1541037480,3,clickout item,20,AU,Sydney,mobile,Spa|Pool,10|20|30,90|80|70",
        "V,t,1541037490,1,clickout item,30,US,Austin,desktop,,30|10,60|50",
        "V,u,1541037590,1,clickout item,10,US,Austin,desktop,,10,50",
    ]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "item_metadata.csv").write_text("item_id,properties\n10,Spa|4 Star\n20,Pool\n")
    frame = real_log("trivago").read(tmp_path, MANY).frame
    assert frame["clickout"].to_list() == [0, 1, 0, 1, 0, 1]
    assert frame["image"].to_list() == [0, 1, 0, 0, 0, 0]
    assert frame["price"].to_list() == [90, 80, 70, 60, 50, 50]
    assert frame["place"].to_list() == [1, 2, 3, 1, 2, 1]
    assert frame["filters"].to_list() == [2, 2, 2, 0, 0, 0]
    assert frame["stars"].to_list() == ["4 Star", None, None, None, "4 Star", "4 Star"]


def test_a_customer_of_hillstrom_is_a_request(tmp_path):
    head = "recency,history_segment,history,mens,womens,zip_code,newbie,channel,segment,visit,"
    lines = [head + "conversion,spend"]
    lines += [f"{k},2) $100,142.5,1,0,Urban,0,Phone,Mens E-Mail,{k % 2},0,0" for k in range(8)]
    (tmp_path / "Kevin_Hillstrom_MineThatData.csv").write_text("\n".join(lines) + "\n")
    frame = real_log("hillstrom").read(tmp_path, MANY).frame
    assert frame["visit"].sum() == 4
    assert frame["request_id"].n_unique() == 8
    assert frame["item_name"].unique().to_list() == ["Mens E-Mail"]


def test_a_larger_log_keeps_some_users_whole(raw, rows):
    some = real_log("kuairand-pure").read(raw.parent, 4000).frame
    assert 2000 < len(some) < 6000
    same = rows.frame.join(some.select("user_id").unique(), on="user_id", how="semi")
    assert len(same) == len(some)


def test_wins_and_losses_are_counted_by_their_intervals():
    interval = {"estimate": 0.01, "low": 0.002, "high": 0.02}
    lost = {"estimate": -0.02, "low": -0.03, "high": -0.01}
    about = {"title": "T", "rows": {"train": 9, "test": 8}, "positives": {"a": 1}, "errors": {}}
    logs = [
        {**about, "items": items, "differences": [
            {"method": "other", "within_requests": within, "all_rows": interval}
        ]}
        for items, within in ((False, None), (True, lost))
    ]  # fmt: skip
    assert tally_table(logs).rows == (("other", "0 · 0 · 1", "−.0200", "2 · 0 · 0", "+.0100"),)
    (first, second) = differences_table(logs).rows
    assert first == ("T", "other", "–", "+.0100 [+.0020, +.0200] ▲")
    assert second[0] == "T, items"
    assert second[2] == "−.0200 [−.0300, −.0100] ▼"


@pytest.mark.skipif(not (DATA / "kuairand27k-slice").is_dir(), reason="no real log here")
def test_the_real_slice_is_prepared(tmp_path):
    prepared = prepare(real_log("kuairand27k").read(DATA, MANY), 0)
    assert prepared.facts()["rows"] == {"train": 9280, "test": 7979}
    assert len(prepared.schema.names) == 7
