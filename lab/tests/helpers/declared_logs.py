"""A made-up log with column names of its own, and the declaration of it."""

import numpy as np
import polars as pl

DECLARATION = """
kind = "shop"
files = ["events-*.csv"]
user = "visitor"
item = "sku"
time = "shown_at"
labels = ["clicked", "bought", "engaged"]
categorical = ["country", "hour", "weekday", "slot"]
codes = ["slot"]
numeric = ["price"]
feedback = ["dwell"]
utc_offset = 1

[columns]
hour = { transform = "hour" }
weekday = { transform = "weekday" }
engaged = { from = "dwell", missing = 0, at_least = 30 }
price = { transform = "positive" }

[users]
file = "visitors.csv"
id = "who"
categorical = ["plan"]
numeric = ["orders"]

[items]
file = "products.parquet"
id = "sku"
categorical = ["brand"]
multi = ["tags"]
numeric = ["listed"]

[joins.regions]
file = "regions.csv"
id = "code"
on = "country"
categorical = ["currency"]
numeric = ["people"]

[items.columns]
tags = { separator = "|", keep = 2 }
listed = { transform = "day" }
"""

TAGS = ["new|sale", "sale", "", "new|home|garden", "home"]


def write_shop(folder, rows=3000, seed=0, users=60, items=40):
    """Write two files of events, two tables and their declaration; return the events."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    user, item = rng.integers(0, users, rows), rng.integers(0, items, rows)
    taste, appeal = rng.normal(0, 1, users), rng.normal(0, 1, items)
    p = 1 / (1 + np.exp(-(taste[user] + appeal[item])))
    clicked = rng.random(rows) < p
    minute = np.arange(rows) * 7
    start = np.datetime64("2026-11-01T00:00:00")
    shown_at = [f"{t}+01:00" for t in (start + minute.astype("timedelta64[m]")).astype(str)]
    frame = pl.DataFrame(
        {
            "visitor": [f"v-{u}" for u in user],
            "sku": item + 1000,
            "shown_at": shown_at,
            "country": rng.choice(["de", "fr", None], rows).tolist(),
            "slot": [f"{k}.0" if k else None for k in rng.integers(0, 4, rows)],
            "price": np.where(rng.random(rows) < 0.1, 0, rng.exponential(20, rows)).round(2),
            "clicked": np.where(clicked, "true", "false"),
            "bought": (clicked & (rng.random(rows) < 0.3)).astype(int),
            "dwell": np.where(clicked, rng.exponential(40, rows).round(1), np.nan),
        }
    ).with_columns(pl.col("dwell").fill_nan(None))
    frame[: rows // 2].write_csv(folder / "events-1.csv")
    frame[rows // 2 :].write_csv(folder / "events-2.csv")
    plans = ["free", "pro", None]
    who = pl.DataFrame(
        {
            "who": [f"v-{u}" for u in range(users)],
            "plan": [plans[u % 3] for u in range(users)],
            "orders": [None if u % 7 == 0 else u for u in range(users)],
        }
    )
    who.write_csv(folder / "visitors.csv")
    products = pl.DataFrame(
        {
            "sku": np.arange(items) + 1000,
            "brand": [f"b{k % 5}" for k in range(items)],
            "tags": [TAGS[k % 5] for k in range(items)],
            "listed": [f"2026-01-{1 + k % 28:02}" for k in range(items)],
            "ignored": 1.5,
        }
    )
    products.write_parquet(folder / "products.parquet")
    regions = "code,currency,people\nde,EUR,83.5\nfr,EUR,\nfr,XXX,1\nuk,GBP,67\n"
    (folder / "regions.csv").write_text(regions, encoding="utf-8")
    (folder / "declaration.toml").write_text(DECLARATION, encoding="utf-8")
    return frame
