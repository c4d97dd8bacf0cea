"""Unpacking: public logs in which a line is a whole request become a line per item shown."""

from collections.abc import Callable
from pathlib import Path

import polars as pl

_TRIVAGO_ACTIONS = ("image", "info", "rating", "deals")
_PLACES = 40


def _mind(folder: Path) -> dict[str, pl.DataFrame]:
    """MIND: `N1-1 N2-0` are the news of an impression, and whether each was clicked."""
    names = ["impression", "user", "time", "history", "shown"]
    files = sorted(folder.glob("**/behaviors.tsv"))
    lists = pl.concat([_tsv(file, names) for file in files])
    # Each file numbers its impressions from 1.
    rows = lists.with_row_index("request").select(
        pl.col("request").cast(pl.Int64),
        "user",
        pl.col("time").str.to_datetime("%m/%d/%Y %I:%M:%S %p").dt.epoch("ms"),
        read_before=pl.col("history").fill_null("").str.count_matches(r"\S+"),
        shown=pl.col("shown").str.split(" "),
    )
    rows = rows.with_columns(length=pl.col("shown").list.len()).explode("shown")
    parts = pl.col("shown").str.split("-").list
    rows = rows.with_columns(item=parts.first(), click=parts.last().cast(pl.Int64)).drop("shown")
    columns = ["item", "category", "subcategory", "title", "abstract"]
    news = pl.concat([_tsv(file, columns) for file in sorted(folder.glob("**/news.tsv"))])
    title = pl.col("title").fill_null("").str.len_chars().alias("title_length")
    items = news.select("item", "category", "subcategory", title).unique("item", keep="first")
    return {"rows": rows, "items": items}


def _tsv(path: Path, names: list[str]) -> pl.DataFrame:
    """Read the first columns of a file that does not name them and quotes nothing."""
    table = pl.read_csv(path, separator="\t", has_header=False, quote_char=None, infer_schema=False)
    return table[:, : len(names)].rename(dict(zip(table.columns, names, strict=False)))


def _ebnerd(folder: Path) -> dict[str, pl.DataFrame]:
    """EB-NeRD: an impression has the articles in view, those clicked, and how the next was read."""
    files = sorted(folder.glob("**/behaviors.parquet"))
    lists = pl.concat([pl.read_parquet(file) for file in files], how="diagonal_relaxed")
    rows = lists.select(
        request=pl.int_range(pl.len()),
        user=pl.col("user_id").cast(pl.Int64),
        time=pl.col("impression_time").dt.epoch("ms"),
        device_type="device_type",
        is_subscriber=pl.col("is_subscriber").cast(pl.Int64),
        is_sso_user=pl.col("is_sso_user").cast(pl.Int64),
        length=pl.col("article_ids_inview").list.len(),
        item=pl.col("article_ids_inview"),
        clicked=pl.col("article_ids_clicked"),
        seconds=pl.col("next_read_time").fill_null(0),
        scrolled=pl.col("next_scroll_percentage").fill_null(0),
    ).explode("item")
    click = pl.col("clicked").list.contains(pl.col("item"))
    rows = rows.with_columns(
        click=click.cast(pl.Int64),
        long_read=(click & (pl.col("seconds") >= 30)).cast(pl.Int64),
        full_scroll=(click & (pl.col("scrolled") >= 90)).cast(pl.Int64),
    ).drop("clicked", "seconds", "scrolled")
    articles = pl.read_parquet(next(folder.glob("**/articles.parquet")))
    born = articles.select(item="article_id", born=pl.col("published_time").dt.epoch("ms"))
    rows = rows.join(born, on="item", how="left", maintain_order="left")
    age = (pl.col("time") - pl.col("born")) / 3_600_000
    items = articles.select(
        pl.col("article_type", "sentiment_label").cast(pl.String),
        pl.col("category", "premium").cast(pl.Int64),
        item="article_id",
    )
    return {"rows": rows.with_columns(age_hours=age).drop("born"), "items": items}


def _trivago(folder: Path) -> dict[str, pl.DataFrame]:
    """Trivago's challenge of 2019: the last list of a session that was clicked out of."""
    steps = pl.scan_csv(folder / "train.csv", infer_schema=False)
    keys = ["user_id", "session_id"]
    lists = steps.filter(pl.col("action_type") == "clickout item").collect()
    lists = lists.unique(keys, keep="last", maintain_order=True).with_row_index("request")
    rows = lists.select(
        *keys,
        *("platform", "device", "city"),
        request=pl.col("request").cast(pl.Int64),
        time=pl.col("timestamp").cast(pl.Int64) * 1000,
        filters=pl.col("current_filters").fill_null("").str.count_matches(r"[^|]+"),
        clicked="reference",
        item=pl.col("impressions").str.split("|"),
        price=pl.col("prices").str.split("|"),
    ).with_columns(place=pl.int_ranges(1, pl.col("item").list.len() + 1))
    rows = rows.explode("item", "price", "place").with_columns(
        pl.col("price").cast(pl.Float64), clickout=(pl.col("item") == pl.col("clicked")).cast(int)
    )
    for action in _TRIVAGO_ACTIONS:
        done = steps.filter(pl.col("action_type") == f"interaction item {action}")
        pairs = done.select(*keys, item="reference").unique().collect()
        marked, on = pairs.with_columns(pl.lit(1).alias(action)), [*keys, "item"]
        rows = rows.join(marked, on=on, how="left", maintain_order="left")
        rows = rows.with_columns(pl.col(action).fill_null(0))
    rows = rows.drop("session_id", "clicked").with_columns(pl.col("item").cast(pl.Int64))
    hotels = pl.read_csv(folder / "item_metadata.csv")
    said = pl.col("properties").str.split("|")
    stars = said.list.eval(pl.element().filter(pl.element().str.contains("^[1-5] Star$")))
    items = hotels.select(
        item="item_id", stars=stars.list.first(), properties_count=said.list.len()
    )
    return {"rows": rows, "items": items}


def _hillstrom(folder: Path) -> dict[str, pl.DataFrame]:
    """Hillstrom's mails: every customer was sent one of two, or none."""
    table = pl.read_csv(next(folder.glob("*Hillstrom*.csv")))
    rows = table.with_row_index("user").rename({"segment": "item"})
    return {"rows": rows.with_columns(pl.col("user").cast(pl.Int64)).drop("spend")}


def _kuairand_earlier(folder: Path) -> dict[str, pl.DataFrame]:
    """The last rows of each user before KuaiRand-Pure's newest: places in place of a clock."""
    rows = pl.read_parquet(next(folder.glob("earlier_*.parquet")))
    last = pl.col("place_in_history").max().over("user_id")
    back = (last - pl.col("place_in_history")).cast(pl.Int64)
    many = pl.len().over("user_id") >= _PLACES
    rows = rows.filter(many, back < _PLACES).with_columns(time_ms=1000 * (_PLACES - back))
    tables = {"users": "user_features*.parquet", "items": "video_features*.parquet"}
    features = {part: pl.read_parquet(folder / pattern) for part, pattern in tables.items()}
    return {"rows": rows.drop("place_in_history"), **features}


_Unpack = Callable[[Path], dict[str, pl.DataFrame]]
UNPACK: dict[str, _Unpack] = {"mind": _mind, "ebnerd": _ebnerd, "trivago": _trivago}
UNPACK |= {"hillstrom": _hillstrom, "kuairand-earlier": _kuairand_earlier}
"""The tables `rows` and, where there are any, `users` and `items` of each format."""
