"""User and video features in the official columns of KuaiRand."""

from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl

from harmonrank_lab.worlds.raw._truth import choose, draw_vectors, log_normal, official, zipf

_WIDTH = 4


KUAIRAND = official("kuairand")


def _with_range(name: str, values: np.ndarray) -> dict[str, Any]:
    """Return a column of numbers, and that of their ranges."""
    ends, names = KUAIRAND["ranges"][name].values()
    ranges = pl.Series(names).gather(np.searchsorted(ends, values, side="left"))
    return {name: values, f"{name}_range": ranges}


def _weights(name: str) -> tuple[pl.Series, np.ndarray]:
    """Return the values of a column, and how often each comes."""
    return pl.Series(list(KUAIRAND[name])), np.array(list(KUAIRAND[name].values()))


def draw_users(rng: np.random.Generator, users: int) -> tuple[np.ndarray, pl.DataFrame]:
    """Return user vectors and the 31 official columns; features explain 85 % of a vector."""
    onehot = [choose(rng, zipf(values, 0.8), users) for values in KUAIRAND["onehot"]]
    degrees, weights = _weights("active")
    active = choose(rng, weights, users)
    telling = {f"onehot_feat{k}": (onehot[int(k)], w) for k, w in KUAIRAND["telling"].items()}
    vectors = draw_vectors(rng, {"active": (active, 1.0), **telling}, 0.85, _WIDTH)
    # The numbers depend on two axes: those who engage have followers, others have been here long.
    fans = log_normal(rng, vectors[:, 0], middle=60, spread=1.8, told=0.5).astype(np.int64)
    follows = log_normal(rng, vectors[:, 0], middle=120, spread=1.2, told=0.3).astype(np.int64)
    friends = (np.minimum(fans, follows) * rng.random(users)).astype(np.int64)
    days = log_normal(rng, vectors[:, 1], middle=1100, spread=0.8, told=0.5)
    days = np.clip(days, 15, 3624).astype(np.int64)
    unknown = rng.random(users) < 0.026
    columns = {
        "user_id": np.arange(users),
        "user_active_degree": degrees.gather(active),
        "is_lowactive_period": np.zeros(users, np.int64),
        "is_live_streamer": np.where(rng.random(users) < 0.22, 1, -124),
        "is_video_author": (rng.random(users) < 0.82).astype(np.int64),
        **_with_range("follow_user_num", follows),
        **_with_range("fans_user_num", fans),
        **_with_range("friend_user_num", friends),
        **_with_range("register_days", days),
        **{f"onehot_feat{k}": _onehot(k, onehot[k], unknown) for k in range(18)},
    }
    return vectors, pl.DataFrame(columns)


def _onehot(k: int, category: np.ndarray, unknown: np.ndarray) -> pl.Series:
    # The official file has these with nulls, and therefore as 3.0 instead of 3.
    if k not in (4, *range(12, 18)):
        return pl.Series(category)
    return pl.Series(np.where(unknown, np.nan, category)).fill_nan(None)


def draw_videos(rng: np.random.Generator, videos: int) -> tuple[np.ndarray, pl.DataFrame]:
    """Return video vectors and the 12 official columns; features explain 70 % of a vector."""
    authors = max(1, videos // 4)
    author = choose(rng, zipf(authors, 0.5), videos)
    tag = choose(rng, zipf(68, 0.9), videos)
    kinds, weights = _weights("uploads")
    upload = choose(rng, weights, videos)
    features = {"tag": (tag, 2.0), "author": (author, 1.5), "upload": (upload, 0.5)}
    vectors = draw_vectors(rng, features, 0.7, _WIDTH)
    duration = np.clip(rng.lognormal(np.log(28_000), 0.9, videos), 5_000, 1_200_000)
    second = (rng.integers(1, 68, videos) + tag) % 68 + 1
    tags = pl.DataFrame({"a": tag + 1, "b": second, "two": rng.random(videos) < 0.24})
    days = [(date(2022, 4, 9) + timedelta(d)).isoformat() for d in range(3)]
    columns = {
        "video_id": np.arange(videos),
        "author_id": author,
        "video_type": pl.Series(["NORMAL", "AD"]).gather(rng.random(videos) < 0.01),
        "upload_dt": pl.Series(days).gather(choose(rng, np.array([37, 45, 18]), videos)),
        "upload_type": kinds.gather(upload),
        "visible_status": np.zeros(videos),
        "video_duration": np.floor(duration),
        "server_width": np.where(rng.random(videos) < 0.8, 720.0, 1080.0),
        "server_height": np.where(rng.random(videos) < 0.8, 1280.0, 960.0),
        "music_id": rng.integers(10**9, 10**10, max(1, videos // 2))[
            rng.integers(0, max(1, videos // 2), videos)
        ],
        "music_type": rng.choice([9.0, 4.0, 8.0], videos, p=[0.9, 0.09, 0.01]),
        "tag": tags.select(
            pl.when("two").then(pl.format("{},{}", "a", "b")).otherwise(pl.format("{}", "a"))
        ).to_series(),
    }
    return vectors, pl.DataFrame(columns)
