"""The ensemble network of the paper: scores and context in, one fused score out."""

__all__ = ["Network"]

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from harmonrank.paper.buckets import fit_knots
from harmonrank.paper.config import NetworkConfig
from harmonrank.support.errors import UsageError, shown


class Network(nn.Module):
    """Fuses scores by a relation-aware path and two relation-agnostic ones: s = s1 + s2 + s3.

    The whole is eq. 4 of docs/network.md.

    Args:
        config: Size and switches.
        generator: Draws the first weights, so that a seed decides them.
        scores: Training scores, (rows, objectives), on which the buckets are fitted; not needed
            for the raw scale.
        knots: Buckets that were fitted before, in place of `scores`; see
            `harmonrank.paper.buckets`.
    """

    def __init__(
        self,
        config: NetworkConfig,
        generator: torch.Generator | None = None,
        *,
        scores: Tensor | NDArray[Any] | None = None,
        knots: NDArray[np.float32] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(config, NetworkConfig):
            raise UsageError(
                "`config` must be a NetworkConfig, such as NetworkConfig(objectives=5). "
                f"Got {shown(config)}."
            )
        self.config = config
        M, d = config.objectives, config.width
        self.scores = ScoreEmbedding(config, _knots(config, scores) if knots is None else knots)
        self.context = ContextEmbedding(config.context_slots if config.personalised else ())
        self.relation_aware = RelationAware(config)
        self.gated = Gated(M, d) if config.gate else None
        self.linear = nn.Linear(M * d, 1) if config.linear else None
        self._reset(generator)

    def forward(self, scores: Tensor, context: Tensor) -> Tensor:
        """Fuse (rows, objectives) scores given (rows, features) context codes."""
        return self.paths(scores, context).fused  # (rows,)

    def paths(self, scores: Tensor, context: Tensor) -> "Paths":
        """Return what each path adds to the fused score, and the attentions."""
        x = self.scores(scores)  # (rows, objectives, width)
        P = self.context(context)  # (rows, features)
        s1, A_r, A_p = self.relation_aware(x, P)  # (rows,)
        s2 = None if self.gated is None else self.gated(x)  # (rows,)
        s3 = None if self.linear is None else _scalar(self.linear, x.flatten(1))  # (rows,)
        return Paths(s1, s2, s3, A_r, A_p)

    @torch.no_grad()
    def _reset(self, generator: torch.Generator | None) -> None:
        for name, parameter in self.named_parameters():
            if parameter.ndim < 2:
                parameter.zero_()
            elif name.endswith("table"):
                parameter.normal_(0.0, 1.0, generator=generator)
            else:
                bound = 1 / sqrt(parameter.shape[-1])
                parameter.uniform_(-bound, bound, generator=generator)


class Paths(NamedTuple):
    """The parts of fused scores; None for a part that is switched off."""

    relation_aware: Tensor  # s1, (rows,)
    gated: Tensor | None  # s2, (rows,)
    linear: Tensor | None  # s3, (rows,)
    A_r: Tensor | None  # attention between objectives, (rows, objectives, objectives)
    A_p: Tensor | None  # attention of the context to objectives, (rows, 1, objectives)

    @property
    def fused(self) -> Tensor:
        """S = s1 + s2 + s3, (rows,)."""
        others = (s for s in (self.gated, self.linear) if s is not None)
        return sum(others, self.relation_aware)


class ScoreEmbedding(nn.Module):
    """One embedding row per objective and bucket, or the interpolation of two neighbours."""

    first: Tensor
    knots: Tensor

    def __init__(self, config: NetworkConfig, knots: NDArray[np.float32]) -> None:
        super().__init__()
        rows = config.buckets or 1
        self.buckets, self.interpolate = config.buckets, config.interpolate
        self.table = nn.Parameter(torch.empty(config.objectives * rows, config.width))
        self.register_buffer("knots", torch.from_numpy(knots.copy()))
        self.register_buffer("first", torch.arange(config.objectives) * rows, persistent=False)

    def forward(self, scores: Tensor) -> Tensor:
        if self.buckets is None:
            return scores.to(self.table.dtype).unsqueeze(2) * self.table  # (rows, M, width)
        s = scores.to(self.knots.dtype).T.contiguous()  # (M, rows)
        inner = self.knots[:, 1:-1].contiguous() if self.interpolate else self.knots
        below = torch.searchsorted(inner, s, right=True)  # (M, rows)
        row = below.T + self.first  # (rows, M)
        x = nn.functional.embedding(row, self.table)  # (rows, M, width)
        if not self.interpolate:
            return x
        low, high = self.knots.gather(1, below), self.knots.gather(1, below + 1)  # (M, rows)
        share = ((s - low) / (high - low)).clamp(0, 1).T.unsqueeze(2)  # (rows, M, 1)
        return torch.lerp(x, nn.functional.embedding(row + 1, self.table), share)


class ContextEmbedding(nn.Module):
    """One learned number per context value, so that codes need no order."""

    first: Tensor

    def __init__(self, slots: tuple[int, ...]) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(sum(slots), 1))
        first = torch.tensor([sum(slots[:i]) for i in range(len(slots))], dtype=torch.long)
        self.register_buffer("first", first, persistent=False)

    def forward(self, context: Tensor) -> Tensor:
        if len(self.first) == 0:
            return self.table.new_empty(len(context), 0)
        return nn.functional.embedding(context + self.first, self.table).squeeze(2)


class RelationAware(nn.Module):
    """Aligns the objectives by self-attention, then weighs them by the context's attention."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        M, d, k, C = config.objectives, config.width, config.key_width, config.context_features
        self.scale = sqrt(k)
        self.self_attention, self.cross_attention = config.self_attention, config.cross_attention
        if config.self_attention:
            self.query = nn.Linear(d, k, bias=False)
            self.key = nn.Linear(d, k, bias=False)
        self.value = nn.Linear(d, k, bias=False)
        if config.cross_attention:
            # Without context features the query is one learned vector.
            self.context_query = nn.Linear(max(C, 1), k, bias=False)
            self.context_key = nn.Linear(k, k, bias=False)
            self.context_value = nn.Linear(k, k, bias=False)
        self.output = nn.Linear(k if config.cross_attention else M * k + C, 1)

    def forward(self, x: Tensor, P: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        # eq. 1 of docs/network.md
        A_r = self.attend(x) if self.self_attention else None  # (n, M, M)
        x_r = self.value(x) if A_r is None else A_r @ self.value(x)  # (n, M, k)
        if not self.cross_attention:
            both = torch.cat([x_r.flatten(1), P], dim=1)  # (n, M·k + C)
            return _scalar(self.output, both), A_r, None  # (n,)
        if P.shape[1] == 0:
            P = P.new_ones(len(P), 1)  # (n, 1)
        # eq. 2 of docs/network.md
        Q_p = self.context_query(P).unsqueeze(1)  # (n, 1, k)
        K_p, V_p = self.context_key(x_r), self.context_value(x_r)  # (n, M, k)
        A_p = torch.softmax(Q_p @ K_p.mT / self.scale, dim=2)  # (n, 1, M)
        return _scalar(self.output, (A_p @ V_p).squeeze(1)), A_r, A_p  # (n,)

    def attend(self, x: Tensor) -> Tensor:
        """Return A_r, the attention of each objective to each other, (rows, M, M)."""
        return torch.softmax(self.query(x) @ self.key(x).mT / self.scale, dim=2)


class Gated(nn.Module):
    """Keeps a share g of each embedding: s2 = w2ᵀ(g ⊙ x) + b2, eq. 3 of docs/network.md."""

    def __init__(self, objectives: int, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1)
        self.output = nn.Linear(objectives * width, 1)

    def forward(self, x: Tensor) -> Tensor:
        g = torch.sigmoid(self.gate(x))  # (rows, objectives, 1)
        return _scalar(self.output, (g * x).flatten(1))  # (rows,)


def _knots(config: NetworkConfig, scores: Tensor | NDArray[Any] | None) -> NDArray[np.float32]:
    M = config.objectives
    if config.buckets is None:
        return np.empty((M, 0), np.float32)
    if scores is None and config.scale != "raw":
        raise UsageError(
            f"Buckets on the '{config.scale}' scale are fitted on scores; pass training scores "
            "to the network as `scores`, or use the 'raw' scale."
        )
    seen = scores.detach().cpu().numpy() if isinstance(scores, Tensor) else scores
    seen = None if seen is None else np.asarray(seen)
    if seen is not None and (seen.ndim != 2 or seen.shape[1] != M):
        raise UsageError(f"`scores` must be (rows, {M}). Got {tuple(seen.shape)}.")
    return fit_knots(seen, M, config.buckets, config.scale, interpolate=config.interpolate)


def _scalar(linear: nn.Linear, x: Tensor) -> Tensor:
    return nn.functional.linear(x, linear.weight, linear.bias).squeeze(1)
