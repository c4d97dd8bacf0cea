import json

import numpy as np
import polars as pl
import pytest

from harmonrank_lab.experiments.ab import analyse

ARMS = ["base", "new", "rl"]


def _keys(text):
    return f"[lab.ab.analyse]\n{text}"


@pytest.fixture
def log(tmp_path):
    """Return the path of a log in which the new arm sells twice as much."""
    rng = np.random.default_rng(0)
    user = rng.integers(0, 900, 30_000)
    rate = np.array([0.1, 0.2, 0.1])[user % 3]
    frame = pl.DataFrame(
        {
            "user_id": user,
            "arm": np.array(ARMS)[user % 3],
            "buy": (rng.random(30_000) < rate).astype(int),
            "long_view_seconds_watched": rng.exponential(10, 30_000),
        }
    )
    frame.write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def test_the_table_fits_80_columns_and_says_what_was_found(run, log):
    done = run(
        "lab", "ab", "analyse", log, "--outcomes", "buy,long_view_seconds_watched", "--aa", "rl"
    )
    assert done.code == 0, done
    assert max(map(len, done.out.splitlines())) <= 80
    assert "+9" in done.out or "+10" in done.out
    assert "Sample ratio: as intended" in done.out
    assert "'rl' is the same as the control" in done.out
    assert done.out.startswith("new against base: 1 better (buy), 1 unclear (long_view_seconds_w")
    new = next(line for line in done.out.splitlines() if line.split()[:2] == ["new", "buy"])
    assert "*" in new
    assert any("<.0001" in line and "better" in line for line in done.out.splitlines())


def test_json_holds_the_numbers_of_the_analysis(run, log, tmp_path):
    done = run(
        *("lab", "ab", "analyse", log, "--outcomes", "buy", "--split", "base=1,new=1,rl=1"),
        *("--control", "rl", "--json", tmp_path / "out.json", "--quiet"),
        settings=_keys('per = "user"'),
    )
    assert done.code == 0, done
    assert done.out == ""
    expected = analyse(log, outcomes=["buy"], control="rl", per="user").to_dict()
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(json.dumps(expected))


def test_other_names_csv_and_a_row_per_user_give_the_same(run, log, tmp_path):
    sums = pl.col("buy").sum(), pl.len().alias("shown")
    users = pl.read_parquet(log).group_by(who="user_id", group="arm").agg(sums)
    users.write_csv(tmp_path / "users.csv")
    columns = ("--user", "who", "--arm", "group", "--impressions", "shown")
    one = run("lab", "ab", "analyse", log, "--outcomes", "buy", "--json", "-", "-q")
    other = run(
        *("lab", "ab", "analyse", tmp_path / "users.csv", "--outcomes", "buy"),
        *columns,
        "--json",
        "-",
        "-q",
    )
    first, second = (json.loads(done.out) for done in (one, other))
    assert [x["lift"] for x in first["lifts"]] == pytest.approx(
        [x["lift"] for x in second["lifts"]]
    )
    assert first["rows"] == 30_000
    assert second["rows"] == 900


def test_markdown_is_a_table(run, log):
    done = run("lab", "ab", "analyse", log, "--outcomes", "buy", settings=_keys('format = "md"'))
    assert done.out.startswith(
        "new against base: 1 better (buy). rl against base: 1 unclear (buy).\n\n"
        "| arm | outcome | control | mean | lift % | 95 % interval | p | p (Holm) | detects | verd"
    )


def test_a_rise_of_what_is_unwanted_is_worse(run, log, tmp_path):
    wanted = run("lab", "ab", "analyse", log, "--outcomes", "buy", "--json", "-")
    page = tmp_path / "page.html"
    options = ("--unwanted", "buy", "--report", page, "--json", "-")
    unwanted = run(
        "lab",
        "ab",
        "analyse",
        log,
        "--outcomes",
        "buy",
        *options,
        settings=_keys("common-axis = true"),
    )
    first, second = (json.loads(done.out) for done in (wanted, unwanted))
    assert [lift["verdict"] for lift in first["lifts"]] == ["better", "unclear"]
    assert [lift["verdict"] for lift in second["lifts"]] == ["worse", "unclear"]
    assert second["unwanted"] == ["buy"]
    assert "new against base: 1 worse (buy)." in unwanted.err
    assert "↓: less is better (buy)." in unwanted.err
    text = page.read_text(encoding="utf-8")
    assert "0 better, 1 worse" in text
    assert "<tr class=red><td>new</td><td>buy<i>&nbsp;↓</i></td>" in text
    assert 'data-figure="lift-all-outcomes' in text


def test_the_absolute_scale_shows_changes_in_the_unit_of_the_outcome(run, log):
    name = "long_view_seconds_watched"
    done = run(
        *("lab", "ab", "analyse", log, "--outcomes", name, "--json", "-"),
        settings=_keys('scale = "absolute"'),
    )
    lift = json.loads(done.out)["lifts"][0]
    frame = pl.read_parquet(log)
    means = {arm: part[name].mean() for (arm,), part in frame.group_by("arm")}
    assert lift["change"] == pytest.approx(means["new"] - means["base"])
    assert f"{lift['change']:+.3g}" in done.err
    assert f"{means['base']:.4g}" in done.err
    assert "change" in done.err.splitlines()[2]


def test_a_split_that_was_not_meant_is_an_alarm(run, log):
    done = run("lab", "ab", "analyse", log, "--outcomes", "buy", "--split", "base=2,new=1,rl=1")
    assert done.code == 0
    assert "users are not split as intended" in done.out


def test_the_report_is_one_page_with_a_chart_per_outcome(run, log, tmp_path):
    page = tmp_path / "page.html"
    outcomes = "buy,long_view_seconds_watched"
    done = run("lab", "ab", "analyse", log, "--outcomes", outcomes, "--report", page)
    assert done.code == 0, done
    text = page.read_text(encoding="utf-8")
    assert "new, rl against base" in text
    for name in outcomes.split(","):
        assert f'data-figure="lift-{name}"' in text
    assert "harmonrank lab ab analyse" in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--outcomes", "bey"), "has no column 'bey'. Did you mean 'buy'?"),
        (("--outcomes", "zzz"), "Known: user_id, arm, buy, long_view_seconds_watched."),
        (("--outcomes", "buy", "--split", "base"), "--split takes pairs"),
        (("--outcomes", "buy", "--unwanted", "bye"), "`unwanted` must name outcomes. Got 'bye'"),
        (("--outcomes", "arm", "--arm", "buy"), "'arm' must be a number or true/false"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(run, log, tmp_path, options, sentence):
    page = tmp_path / "page.html"
    done = run("lab", "ab", "analyse", log, *options, "--report", page)
    assert done.code == 2
    assert sentence in done.err
    assert done.out == ""
    assert not page.exists()
