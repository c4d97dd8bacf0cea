"""A world in the format of KuaiRand-Pure."""

from collections.abc import Iterator
from datetime import date, timedelta

import numpy as np
import polars as pl

from harmonrank_lab.worlds.raw import _kuairand_tables as tables
from harmonrank_lab.worlds.raw import _truth as of_truth
from harmonrank_lab.worlds.raw._truth import Block, BlockUsers, Objective, RawWorld, choose

_RANDOM = 0.0037
_FIRST_DAY = date(2022, 4, 8)
_MIDNIGHT_MS = 1_649_347_200_000
"""The first day's midnight in China, whose time `hourmin` and `date` are in."""

_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000
_HOURS, _TABS = (np.array(tables.KUAIRAND[name]) for name in ("hours", "tabs"))


class KuaiRandWorld(RawWorld):
    """Users and videos with the log of 31 days, 8 April to 8 May 2022.

    Features explain 85 % of a user's vector and 70 % of a video's. Videos are shown by a
    popularity of rank^(−0.7), whoever the user is; 0.37 % of rows show one at random.

    Args:
        users: How many users; their activity is log-normal.
        items: How many videos.
        redraw: Another draw of users, videos and their truth.
    """

    name = "kuairand"
    objectives = Objective.named(tables.KUAIRAND)

    def __init__(self, users: int, items: int, *, redraw: int = 0) -> None:
        rng = np.random.default_rng([redraw, 1, users, items])
        user_vectors, self._user_features = tables.draw_users(rng, users)
        item_vectors, self._item_features = tables.draw_videos(rng, items)
        self._duration = self._item_features["video_duration"].to_numpy().astype(np.int64)
        self._draw_traffic(rng, users, items)
        vectors = (user_vectors, item_vectors)
        truth = of_truth.draw_truth(rng, self.objectives, *vectors, hours=24, scenarios=15)
        # The longer a video, the more of it remains when 18 seconds are over.
        length = np.log(self._duration)
        truth.item_main[:, 1] -= 0.35 * ((length - length.mean()) / max(length.std(), 1e-9))
        self.truth = self._truth_with_rates(rng, truth, _HOURS, _TABS)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return the feature files by their path below the folder."""
        names = ("data/user_features_pure.csv", "data/video_features_basic_pure.csv")
        return dict(zip(names, (self._user_features, self._item_features), strict=True))

    def blocks(self, rows: int, seed: int) -> Iterator[Block]:
        """Yield a log of so many rows, file by file, each by user and time."""
        rng = np.random.default_rng([seed, 5])
        random = round(_RANDOM * rows)
        first = round((rows - random) * 14 / 31)
        for index, count in enumerate((first, rows - random - first, random)):
            path, begin, end = tables.KUAIRAND["files"][index]
            file = of_truth.LogFile(path, rng.multinomial(count, self._activity), index)
            for part in of_truth.blocks(file, seed):
                yield self._block(part, begin, end)

    def showings(
        self, rng: np.random.Generator, of_row: np.ndarray
    ) -> tuple[pl.DataFrame, np.ndarray]:
        """Draw requests of later days: the columns that a predictor reads, and true logits.

        Args:
            rng: Where the draws come from.
            of_row: (rows,), the request of each row, from 0; its rows share user, hour and tab.
        """
        requests = int(of_row[-1]) + 1
        user = choose(rng, self._activity, requests)[of_row]
        hour, tab = (choose(rng, shares, requests)[of_row] for shares in (_HOURS, _TABS))
        item = choose(rng, self._popularity, len(of_row))
        columns = {"user_id": user, "video_id": item, "hour": hour, "tab": tab}
        columns |= {"is_rand": np.zeros(len(user), np.int64), "duration_ms": self._duration[item]}
        return pl.DataFrame(columns), self.truth.logits(user, item, hour, tab)

    def _block(self, part: BlockUsers, begin: int, end: int) -> Block:
        user, rng, n = part.user, part.rng, len(part.user)
        at_random = part.file.index == 2
        item = rng.integers(0, self.items, n) if at_random else choose(rng, self._popularity, n)
        time = _times(rng, user, begin, end)
        hour, tab = time // _HOUR_MS % 24, choose(rng, _TABS, n)
        z = self.truth.logits(user, item, hour, tab)
        labels = of_truth.feedback(rng, z)
        duration = self._duration[item]
        click, long_view, like, comment, follow, forward = labels.T.astype(np.int64)
        enter = follow | (rng.random(n, dtype=np.float32) < 0.012)
        days = np.array([int((_FIRST_DAY + timedelta(d)).strftime("%Y%m%d")) for d in range(31)])
        columns = {
            "user_id": user,
            "video_id": item,
            "date": days[time // _DAY_MS],
            "hourmin": hour * 100,
            "time_ms": time + _MIDNIGHT_MS,
            "is_click": click,
            "is_like": like,
            "is_follow": follow,
            "is_comment": comment,
            "is_forward": forward,
            "is_hate": (rng.random(n, dtype=np.float32) < 0.0005).astype(np.int64),
            "long_view": long_view,
            "play_time_ms": _play_time(rng, click, long_view, duration),
            "duration_ms": duration,
            "profile_stay_time": enter * rng.integers(500, 30_000, n),
            "comment_stay_time": comment * rng.integers(1_000, 60_000, n),
            "is_profile_enter": enter,
            "is_rand": np.full(n, int(at_random)),
            "tab": tab,
        }
        return Block(part.file, pl.DataFrame(columns), z, labels)


def _times(rng: np.random.Generator, user: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return milliseconds since the first midnight, ascending within a user."""
    n, span = len(user), 31 * _DAY_MS
    hour = choose(rng, _HOURS, n)
    time = rng.integers(begin, end, n) * _DAY_MS + hour * _HOUR_MS + rng.integers(0, _HOUR_MS, n)
    # Users already ascend, so one sort of user and time together leaves each user in place.
    offset = (user - user[0]) * span
    return np.asarray(np.sort(offset + time) - offset)


def _play_time(
    rng: np.random.Generator, click: np.ndarray, long_view: np.ndarray, duration: np.ndarray
) -> np.ndarray:
    """Return play times that agree with the official rule of a long view.

    It is one that lasts 18 seconds, or all of a shorter video. A click without it lasts seven
    seconds where the video allows that, anything else less.
    """
    share = rng.random(len(click), dtype=np.float32)
    enough = np.minimum(duration, 18_000)
    seven = np.minimum(7_000, enough - 1)
    beyond = enough + (share * share * np.maximum(duration, 9_000)).astype(np.int64)
    below = np.where(click, seven + (share * (enough - seven)).astype(np.int64), seven * share)
    below = np.minimum(below.astype(np.int64), enough - 1)
    return np.asarray(np.where(long_view, beyond, below))
