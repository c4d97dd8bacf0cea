"""PredictorNetwork: embeddings below, MMoE, PLE or ESMM above, and how it is built and trained.

Each of these maps what the embeddings gave to a logit per objective, and begins with all
objectives alike.
"""

__all__ = ["ESMM", "NETWORKS", "PLE", "MMoE", "Pieces", "PredictorConfig", "PredictorNetwork"]

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal, Self, TypeVar

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from harmonrank.support import UsageError, thread_count
from harmonrank.support.options import Count, Nonnegative, Rate, Seconds, Share, Width, check_fields
from harmonrank_lab.upstream.embedding import Embedding, Layout, Rows
from harmonrank_lab.upstream.experts import Draws, GroupedLinear, Thinned, Towers, mix

NETWORKS = ("mmoe", "ple", "esmm")
"""What can stand on the embeddings."""

_MOST_WEIGHTS = 1 << 26
_MOST_ROWS, _FEWEST_ROWS, _FEWEST_STEPS = 8192, 256, 64

Given = TypeVar("Given")
Made = TypeVar("Made")

SCORED_ROWS = 4096
"""How many rows are scored at a time."""


@dataclass(frozen=True)
class PredictorConfig:
    """All options of the prediction stage.

    Attributes:
        network: 'mmoe', 'ple' or 'esmm'.
        embedding: Width of an embedding.
        experts: Shared experts; ESMM has none.
        levels: Extractions of PLE.
        shrinkage: Pull of every embedding row towards 0, in rows' worth of evidence.
        id_rows: Most rows of an ID column of its own; the rarer IDs are hashed to a quarter of it.
        learning_rate: Of AdamW on experts, gates and towers.
        table_rate: Of row-wise Adagrad on embeddings.
        batch_rows: Rows per step; 8,192 if left out, fewer where an epoch would have less than 64
            steps.
        pool_rows: Rows that are shuffled in memory at a time.
        patience: Epochs without a better validation AUC after which training stops.
        refits: Networks that in the end learn from training and validation rows alike, for as many
            epochs as validation chose; new rows are scored by their mean. With 0 they are scored
            by the mean of the networks that validation chose.
        valid_rows: At most this many validation rows decide when to stop.
        checkpoint_seconds: About this much work is lost when the process is killed.
    """

    network: Literal["mmoe", "ple", "esmm"] = "mmoe"
    embedding: Width = 16
    experts: Annotated[int, Meta(ge=1, le=256)] = 4
    expert_width: Width = 64
    tower_width: Width = 32
    levels: Annotated[int, Meta(ge=1, le=16)] = 2
    dropout: Share = 0.1
    shrinkage: Nonnegative = 10.0
    id_rows: Count = 1 << 20
    learning_rate: Rate = 3e-3
    table_rate: Rate = 0.1
    weight_decay: Nonnegative = 1e-4
    batch_rows: Count | None = None
    pool_rows: Count = 1 << 20
    epochs: Count = 10
    patience: Count = 2
    refits: Annotated[int, Meta(ge=0, le=500)] = 3
    valid_rows: Count = 500_000
    checkpoint_seconds: Seconds = 20.0

    def __post_init__(self) -> None:
        check_fields("predict", self)
        weights = (
            self.experts * self.levels * self.expert_width * (self.embedding + self.tower_width)
        )
        if weights > _MOST_WEIGHTS:
            raise UsageError(
                f"A network of about {weights:,} weights is too large, at most {_MOST_WEIGHTS:,}; "
                "lower `experts`, `expert_width` or `embedding`."
            )

    def step_rows(self, rows: int) -> int:
        """Return how many rows a step takes where an epoch has `rows`.

        A short log would be over in a few steps; those of a long one are as large as pays.

        >>> PredictorConfig().step_rows(1_000_000), PredictorConfig().step_rows(64_000)
        (8192, 1000)
        """
        if self.batch_rows is not None:
            return self.batch_rows
        return min(_MOST_ROWS, max(_FEWEST_ROWS, rows // _FEWEST_STEPS))


class Pieces:
    """Threads for pieces of work, `thread_count` of them, each of which keeps PyTorch to itself.

    A step has a dozen operations of a millisecond each. PyTorch would divide every one of them
    among its threads, and its threads and those of our own loops would wait for each other; a
    thread that takes a piece of the rows through all of them waits once.

    >>> with Pieces() as pieces:
    ...     pieces.map(lambda row: row * row, [1, 2, 3])
    [1, 4, 9]
    """

    def __enter__(self) -> Self:
        self._pool = ThreadPoolExecutor(
            thread_count(), initializer=lambda: torch.set_num_threads(1)
        )
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.shutdown()

    def map(self, work: Callable[[Given], Made], given: Iterable[Given]) -> list[Made]:
        """Return what the work makes of each, in order."""
        return list(self._pool.map(work, given))


class MMoE(nn.Module):
    """Multi-gate mixture of experts (Ma et al., KDD 2018).

    h_e = relu(x W_e); f_m = Σ_e softmax(x G_m)_e h_e; logit_m = tower_m(f_m).
    """

    def __init__(self, inputs: int, M: int, config: PredictorConfig, generator: Draws) -> None:
        super().__init__()
        E = config.experts
        self._shape = (E, config.expert_width)
        self._gates = (M, E)
        # All experts see the same x, and all gates too: one product each.
        self.experts = GroupedLinear(1, inputs, E * config.expert_width, generator)
        self.gates = GroupedLinear(1, inputs, M * E, generator)
        # Gates begin alike, as towers do, so that all objectives start from one function.
        self.gates.weight.data = self.gates.weight.data[:, :, :E].repeat(1, 1, M)
        self.thinned = Thinned(config.dropout)
        self.towers = Towers(M, config.expert_width, config.tower_width, config.dropout, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, inputs) to logits, (rows, objectives)."""
        x = x.unsqueeze(0)
        h = self.thinned(self.experts(x))  # (1, rows, experts·width)
        g = self.gates(x)  # (1, rows, objectives·experts)
        f = mix(g.view(-1, *self._gates), h.view(-1, *self._shape))  # (objectives, rows, width)
        logits: Tensor = self.towers(f)  # (rows, objectives)
        return logits


class PLE(nn.Module):
    """Progressive layered extraction (Tang et al., RecSys 2020).

    Every level has one expert per objective and `experts` shared ones. The gate of an objective
    blends its own expert with the shared ones; the shared gate, which the last level does not
    need, blends all. Towers stand on the last level. All objectives begin alike.
    """

    def __init__(self, inputs: int, M: int, config: PredictorConfig, generator: Draws) -> None:
        super().__init__()
        self._groups = M + 1
        widths = [inputs] + [config.expert_width] * (config.levels - 1)
        self.levels = nn.ModuleList(
            _Level(width, M, config, generator, last=i == config.levels - 1)
            for i, width in enumerate(widths)
        )
        self.towers = Towers(M, config.expert_width, config.tower_width, config.dropout, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, inputs) to logits, (rows, objectives)."""
        h = x.unsqueeze(0).expand(self._groups, -1, -1)  # (objectives + shared, rows, inputs)
        for level in self.levels:
            h = level(h)
        logits: Tensor = self.towers(h)  # (rows, objectives)
        return logits


class _Level(nn.Module):
    """One extraction: experts and the gates that blend them."""

    def __init__(
        self, inputs: int, M: int, config: PredictorConfig, generator: Draws, *, last: bool
    ) -> None:
        super().__init__()
        E, H = config.experts, config.expert_width
        self._M, self._E, self._H = M, E, H
        self.own = GroupedLinear(M, inputs, H, generator).alike()
        self.shared = GroupedLinear(1, inputs, E * H, generator)
        self.gates = GroupedLinear(M, inputs, 1 + E, generator).alike()
        self.shared_gate = None if last else GroupedLinear(1, inputs, M + E, generator)
        self.thinned = Thinned(config.dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map (objectives + 1, rows, inputs) to (objectives [+ 1], rows, width)."""
        M, E, H = self._M, self._E, self._H
        own = self.thinned(self.own(x[:M]))  # (M, rows, H)
        shared = self.thinned(self.shared(x[M:])).view(-1, E, H)  # (rows, E, H)
        g = torch.softmax(self.gates(x[:M]), dim=2)  # (M, rows, 1 + E)
        common = torch.bmm(g[:, :, 1:].transpose(0, 1), shared).transpose(0, 1)  # (M, rows, H)
        f: Tensor = g[:, :, :1] * own + common  # (M, rows, H)
        if self.shared_gate is None:
            return f
        every = torch.cat([own.transpose(0, 1), shared], dim=1)  # (rows, M + E, H)
        blend = mix(self.shared_gate(x[M:]).transpose(0, 1), every)  # (1, rows, H)
        return torch.cat([f, blend])


class ESMM(nn.Module):
    """Entire space multi-task model (Ma et al., SIGIR 2018).

    p_0 = σ(a_0) and p_m = σ(a_0)·σ(a_m): the first objective, a click, opens the way to the
    others, and all are trained on all rows. Towers share the embeddings and nothing else. A label
    that comes without a click is allowed, and simply counts against the product.
    """

    def __init__(self, inputs: int, M: int, config: PredictorConfig, generator: Draws) -> None:
        super().__init__()
        self._M = M
        self.hidden = GroupedLinear(M, inputs, config.expert_width, generator).alike()
        self.thinned = Thinned(config.dropout)
        self.towers = Towers(M, config.expert_width, config.tower_width, config.dropout, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, inputs) to the factors' logits a, (rows, objectives)."""
        x = x.unsqueeze(0).expand(self._M, -1, -1)  # (objectives, rows, inputs)
        h = self.thinned(self.hidden(x))  # (objectives, rows, width)
        logits: Tensor = self.towers(h)  # (rows, objectives)
        return logits


def chained(factors: Tensor) -> Tensor:
    """Return the logits of p_0 and of the products p_0·σ(a_m).

    log p = log σ(a_0) + log σ(a_m) and log(1 − p) = log(−expm1(log p)), which stay finite where
    the product itself would round to 0.

    >>> p = torch.sigmoid(chained(torch.tensor([[0.0, 0.0]])))
    >>> p.tolist()
    [[0.5, 0.25]]
    """
    first, others = factors[:, :1], factors[:, 1:]
    log_p = nn.functional.logsigmoid(first) + nn.functional.logsigmoid(others)
    log_p = log_p.clamp(max=-1e-6)
    return torch.cat([first, log_p - torch.log(-torch.expm1(log_p))], dim=1)


_KINDS = {"mmoe": MMoE, "ple": PLE, "esmm": ESMM}


class PredictorNetwork(nn.Module):
    """The logit of every objective for the rows of a log.

    x = [user, item, context, user⊙item, user⊙context, item⊙context], each the sum of its fields'
    vectors. The products give the top what a dot product of user and item needs, which relu layers
    learn only slowly from the two alone.
    """

    def __init__(
        self,
        layout: Layout,
        prevalence: np.ndarray,
        config: PredictorConfig,
        generator: Draws = None,
    ) -> None:
        super().__init__()
        objectives = len(prevalence)
        self._chained = config.network == "esmm"
        about = {"shrinkage": config.shrinkage, "rate": config.table_rate}
        self.embedding = Embedding(layout, config.embedding, generator=generator, **about)
        sides = self.embedding.sides
        inputs = (sides + sides * (sides - 1) // 2) * config.embedding
        self.top = _KINDS[config.network](inputs, objectives, config, generator)
        p = np.clip(prevalence, 1e-6, 1 - 1e-6)
        if self._chained:
            p = np.concatenate([p[:1], np.minimum(p[1:] / p[:1], 1 - 1e-6)])
        bias = self.top.get_parameter("towers.bias")
        bias.data = torch.from_numpy(np.log(p / (1 - p)).astype(np.float32))

    def logits(self, pooled: Tensor) -> Tensor:
        """Return logits, (rows, objectives), of what the embedding gave."""
        sides = pooled.chunk(self.embedding.sides, dim=1)  # (rows, width) each
        x = torch.cat([pooled, *(a * b for a, b in combinations(sides, 2))], dim=1)
        logits: Tensor = self.top(x)  # (rows, objectives)
        return chained(logits) if self._chained else logits

    def forward(self, rows: Rows) -> Tensor:
        """Return logits, (rows, objectives)."""
        return self.logits(self.embedding(rows))

    def score(self, rows: Rows) -> np.ndarray:
        """Return probabilities, (rows, objectives) float32, in pieces that fit the cache."""
        self.eval()
        with Pieces() as pieces:
            scores = pieces.map(self._score, rows.pieces(SCORED_ROWS))
        return np.concatenate(scores) if scores else np.empty((0, 0), np.float32)

    @torch.no_grad()
    def _score(self, rows: Rows) -> np.ndarray:
        return np.asarray(torch.sigmoid(self(rows)).numpy())
