"""PredictorNetwork: embeddings below, MMoE, PLE or ESMM above."""

__all__ = ["PredictorNetwork"]

from itertools import combinations

import numpy as np
import torch
from torch import Tensor, nn

from harmonrank.prediction.config import PredictorConfig
from harmonrank.prediction.embedding import Embedding, Layout, Rows
from harmonrank.prediction.pieces import Pieces
from harmonrank.prediction.tops import ESMM, PLE, MMoE, chained

_KINDS = {"mmoe": MMoE, "ple": PLE, "esmm": ESMM}
_SCORED_ROWS = 4096


class PredictorNetwork(nn.Module):
    """The logit of every objective for the rows of a log.

    x = [user, item, context, user⊙item, user⊙context, item⊙context], each the sum of its fields'
    vectors; logit_m = top_m(x) + Σ_fields first-order logit. The products give the top what a
    dot product of user and item needs, which relu layers learn only slowly from the two alone.
    """

    def __init__(
        self,
        layout: Layout,
        prevalence: np.ndarray,
        config: PredictorConfig,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        objectives = len(prevalence)
        self._products, self._chained = config.products, config.network == "esmm"
        self.embedding = Embedding(
            layout,
            config.embedding,
            objectives if config.first_order else 0,
            shrinkage=config.shrinkage,
            rate=config.table_rate,
            generator=generator,
        )
        sides = self.embedding.sides
        pairs = sides * (sides - 1) // 2 if config.products else 0
        self.top = _KINDS[config.network](
            (sides + pairs) * config.embedding, objectives, config, generator
        )
        p = np.clip(prevalence, 1e-6, 1 - 1e-6)
        if self._chained:
            p = np.concatenate([p[:1], np.minimum(p[1:] / p[:1], 1 - 1e-6)])
        bias = self.top.get_parameter("towers.bias")
        bias.data = torch.from_numpy(np.log(p / (1 - p)).astype(np.float32))

    def logits(self, pooled: Tensor, wide: Tensor) -> Tensor:
        """Return logits, (rows, objectives), of what the embedding gave."""
        if self._products:
            sides = pooled.chunk(self.embedding.sides, dim=1)  # (rows, width) each
            pooled = torch.cat([pooled, *(a * b for a, b in combinations(sides, 2))], dim=1)
        logits: Tensor = self.top(pooled)  # (rows, objectives)
        if wide.shape[1]:
            logits = logits + wide
        return chained(logits) if self._chained else logits

    def forward(self, rows: Rows) -> Tensor:
        """Return logits, (rows, objectives)."""
        return self.logits(*self.embedding(rows))

    def score(self, rows: Rows) -> np.ndarray:
        """Return probabilities, (rows, objectives) float32, in pieces that fit the cache."""
        self.eval()
        with Pieces() as pieces:
            found = pieces.map(self._score, rows.pieces(_SCORED_ROWS))
        return np.concatenate(found) if found else np.empty((0, 0), np.float32)

    @torch.no_grad()
    def _score(self, rows: Rows) -> np.ndarray:
        return np.asarray(torch.sigmoid(self(rows)).numpy())
