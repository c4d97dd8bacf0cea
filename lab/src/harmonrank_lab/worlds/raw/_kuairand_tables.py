"""User and video features in the official columns of KuaiRand."""

from datetime import date, timedelta

import numpy as np
import polars as pl

from harmonrank_lab.worlds.raw._truth import choose, draw_vectors, log_normal, zipf

_WIDTH = 4


def _shares(names: str, counts: list[int]) -> dict[str, int]:
    return dict(zip(names.split(), counts, strict=True))


_ACTIVE = _shares(
    "full_active high_active middle_active 2_14_day_new low_active single_low_active UNKNOWN",
    [658, 226, 78, 23, 11, 2, 2],
)
_ONEHOT = (2, 7, 50, 1471, 15, 34, 3, 118, 454, 7, 5, 5, 2, 2, 2, 2, 2, 2)
"""How many values onehot_feat0 to onehot_feat17 have."""

_TELLING = {0: 1.0, 1: 2.0, 2: 2.0, 4: 1.0, 7: 1.0, 8: 1.0, 9: 2.0, 10: 1.5, 12: 0.5}
"""Which of them tell something of a user's vector, and how much; the others are noise."""

_FOLLOWS = (
    [0, 10, 50, 100, 150, 250, 500],
    "0 (0,10] (10,50] (50,100] (100,150] (150,250] (250,500] 500+",
)
_FANS = (
    [0, 9, 99, 999, 4999, 9999, 99999],
    "0 [1,10) [10,100) [100,1k) [1k,5k) [5k,1w) [1w,10w) [10w,100w)",
)
_FRIENDS = ([0, 4, 29, 59, 119, 249], "0 [1,5) [5,30) [30,60) [60,120) [120,250) 250+")
_DAYS = ([30, 60, 90, 180, 365, 730], "15-30 31-60 61-90 91-180 181-365 366-730 730+")

_UPLOADS = _shares(
    "LongImport Web ShortImport Kmovie LongPicture UNKNOWN PictureSet LongCamera",
    [39, 32, 12, 12, 2, 1, 1, 1],
)


def _range(values: np.ndarray, bins: tuple[list[int], str]) -> pl.Series:
    edges, names = bins
    return pl.Series(names.split()).gather(np.searchsorted(edges, values, side="left"))


def _named(category: np.ndarray, names: dict[str, int]) -> pl.Series:
    return pl.Series(list(names)).gather(category)


def draw_users(rng: np.random.Generator, users: int) -> tuple[np.ndarray, pl.DataFrame]:
    """Return user vectors and the 31 official columns; features explain 85 % of a vector."""
    onehot = [choose(rng, zipf(values, 0.8), users) for values in _ONEHOT]
    active = choose(rng, np.array(list(_ACTIVE.values())), users)
    telling = {f"onehot_feat{k}": (onehot[k], w) for k, w in _TELLING.items()}
    vectors = draw_vectors(rng, {"active": (active, 1.0), **telling}, 0.85, _WIDTH)
    # The numbers depend on two axes: those who engage have followers, others have been here long.
    fans = log_normal(rng, vectors[:, 0], middle=60, spread=1.8, told=0.5).astype(np.int64)
    follows = log_normal(rng, vectors[:, 0], middle=120, spread=1.2, told=0.3).astype(np.int64)
    friends = (np.minimum(fans, follows) * rng.random(users)).astype(np.int64)
    days = log_normal(rng, vectors[:, 1], middle=1100, spread=0.8, told=0.5)
    days = np.clip(days, 15, 3624).astype(np.int64)
    unknown = rng.random(users) < 0.026
    return vectors, pl.DataFrame(
        {
            "user_id": np.arange(users),
            "user_active_degree": _named(active, _ACTIVE),
            "is_lowactive_period": np.zeros(users, np.int64),
            "is_live_streamer": np.where(rng.random(users) < 0.22, 1, -124),
            "is_video_author": (rng.random(users) < 0.82).astype(np.int64),
            "follow_user_num": follows,
            "follow_user_num_range": _range(follows, _FOLLOWS),
            "fans_user_num": fans,
            "fans_user_num_range": _range(fans, _FANS),
            "friend_user_num": friends,
            "friend_user_num_range": _range(friends, _FRIENDS),
            "register_days": days,
            "register_days_range": _range(days, _DAYS),
            **{f"onehot_feat{k}": _onehot(k, onehot[k], unknown) for k in range(18)},
        }
    )


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
    upload = choose(rng, np.array(list(_UPLOADS.values())), videos)
    features = {"tag": (tag, 2.0), "author": (author, 1.5), "upload": (upload, 0.5)}
    vectors = draw_vectors(rng, features, 0.7, _WIDTH)
    duration = np.clip(rng.lognormal(np.log(28_000), 0.9, videos), 5_000, 1_200_000)
    second = (rng.integers(1, 68, videos) + tag) % 68 + 1
    tags = pl.DataFrame({"a": tag + 1, "b": second, "two": rng.random(videos) < 0.24})
    days = [(date(2022, 4, 9) + timedelta(d)).isoformat() for d in range(3)]
    return vectors, pl.DataFrame(
        {
            "video_id": np.arange(videos),
            "author_id": author,
            "video_type": pl.Series(["NORMAL", "AD"]).gather(rng.random(videos) < 0.01),
            "upload_dt": pl.Series(days).gather(choose(rng, np.array([37, 45, 18]), videos)),
            "upload_type": _named(upload, _UPLOADS),
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
    )
