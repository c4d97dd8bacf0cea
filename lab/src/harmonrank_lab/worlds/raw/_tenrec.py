"""A world in the format of Tenrec's video files."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from harmonrank_lab.upstream.logs import TENREC_FILES
from harmonrank_lab.worlds.raw import _truth as of_truth
from harmonrank_lab.worlds.raw._truth import Block, BlockUsers, Objective, RawWorld, choose

_TENREC = of_truth.official("tenrec")
_HISTORY, _CANDIDATES = 10, 40


class TenrecWorld(RawWorld):
    """Users and videos with one file of showings; there is no clock and no scenario.

    Age and gender explain 30 % of a user's vector, the category a tenth of a video's. Videos
    are shown by a popularity of rank^(−0.7). `watching_times` is 2 or more where the view is
    long.

    Args:
        users: How many users; their activity is log-normal.
        items: How many videos.
        redraw: Another draw of users, videos and their truth.
        file: Which of the official files; `ctr_data_1M.csv` has ten earlier items of each user.
    """

    name = "tenrec"
    objectives = Objective.named(_TENREC)

    def __init__(
        self, users: int, items: int, *, redraw: int = 0, file: str = TENREC_FILES[0]
    ) -> None:
        rng = np.random.default_rng([redraw, 2, users, items])
        self.file = file
        self._age, self._gender, self._category = (
            choose(rng, np.array(_TENREC[name]), count)
            for name, count in (("ages", users), ("genders", users), ("categories", items))
        )
        known = {"age": (self._age, 2.0), "gender": (self._gender, 1.0)}
        of_items = {"category": (self._category, 1.0)}
        vectors = [of_truth.draw_vectors(rng, known, 0.3, 4)]
        vectors.append(of_truth.draw_vectors(rng, of_items, 0.1, 4))
        self._draw_traffic(rng, users, items)
        truth = of_truth.draw_truth(rng, self.objectives, *vectors)
        self.truth = self._truth_with_rates(rng, truth, None, None)

    def tables(self) -> dict[str, pl.DataFrame]:
        """Return no feature files: features stand in the rows."""
        return {}

    def blocks(self, rows: int, seed: int) -> Iterator[Block]:
        """Yield a log of so many rows, by user."""
        counts = np.random.default_rng([seed, 6]).multinomial(rows, self._activity)
        for part in of_truth.blocks(of_truth.LogFile(self.file, counts, 0), seed):
            yield self._block(part)

    def _block(self, part: BlockUsers) -> Block:
        user, rng, n = part.user, part.rng, len(part.user)
        item, nothing = choose(rng, self._popularity, n), np.zeros(n, np.int64)
        z = self.truth.logits(user, item, nothing, nothing)
        labels = of_truth.feedback(rng, z)
        click, long_view, like, follow, share = labels.T.astype(np.int64)
        once = click | (rng.random(n, dtype=np.float32) < 0.4)
        category = pl.Series(["0", "1", "\\N"])
        columns = {
            # Official ids begin with 1.
            "user_id": user + 1,
            "item_id": item + 1,
            "click": click,
            "follow": follow,
            "like": like,
            "share": share,
            "video_category": category.gather(self._category[item]),
            "watching_times": np.where(long_view, 1 + rng.geometric(0.8, n), once),
            "gender": self._gender[user],
            "age": self._age[user],
            **(self._history(user, rng) if self.file == "ctr_data_1M.csv" else {}),
        }
        return Block(part.file, pl.DataFrame(columns), z, labels)

    def _history(self, user: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return ten items that a user is likely to have clicked, the same in all his rows."""
        first, last = user[0], user[-1] + 1
        people = np.repeat(np.arange(first, last), _CANDIDATES)
        shown = choose(rng, self._popularity, len(people))
        nothing = np.zeros(len(people), np.int64)
        z = self.truth.logits(people, shown, nothing, nothing)[:, 0] + rng.gumbel(size=len(people))
        best = np.argsort(-z.reshape(-1, _CANDIDATES), axis=1)[:, :_HISTORY]
        history = np.take_along_axis(shown.reshape(-1, _CANDIDATES), best, 1) + 1
        # A user seen for the first time has fewer; 0 stands for none.
        known = rng.integers(0, 60, len(history))
        history[np.arange(_HISTORY) >= known[:, None]] = 0
        return {f"hist_{k + 1}": history[user - first, k] for k in range(_HISTORY)}
