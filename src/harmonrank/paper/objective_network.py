"""The paper's network with one head per objective, each a residual on the closed form."""

__all__ = ["HeadPaths", "ObjectiveNetwork"]

from math import pi, sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from harmonrank.paper.config import FARTHEST, REACH, SMALLEST_SCORE, ObjectiveConfig
from harmonrank.paper.network import Paths


class HeadPaths(NamedTuple):
    """What each path adds to the heads, and its attention; rows are the last axis."""

    s1: Tensor  # (objectives, rows), relation-aware
    s2: Tensor  # (objectives, rows), gated
    s3: Tensor  # (objectives, rows), linear
    A_r: Tensor  # (objectives, objectives, rows), attention between scores
    A_p: Tensor  # (objectives, objectives, rows), attention of each head to each score


class ObjectiveNetwork(nn.Module):
    """Gives each objective a logit, z_m = a_m ℓ_m + b_m + t_m (s1 + s2 + s3)_m.

    This is eq. 13 of docs/network.md.

    The first part is the closed form: the logit ℓ_m of the objective's own score, calibrated. The
    paths are the paper's, with one output per objective. All outputs begin at 0, so an untrained
    network is the closed form, and t_m in [0, 1] says how much of the residual is kept.

    Inside, rows are the last axis: sums over a few objectives are then sums of long vectors.

    Args:
        config: Size.
        generator: Draws the first weights, so that a seed decides them.
    """

    share: Tensor

    def __init__(self, config: ObjectiveConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.prior = ScorePrior(config)
        self.scores = SmoothBuckets(config)
        self.context = Context(config)
        self.relation_aware = ObjectiveAttention(config)
        self.gated = ObjectiveGate(config)
        self.linear = Linear(config)
        self.register_buffer("share", torch.ones(config.objectives))
        self._reset(generator)

    def forward(self, scores: Tensor, context: Tensor) -> Tensor:
        """Return the logit of every objective given scores and context codes."""
        l = self.prior.logit(scores)  # (rows, objectives)  # noqa: E741
        paths = self._paths(l, context)
        residual = (paths.s1 + paths.s2 + paths.s3).T  # (rows, objectives)
        z: Tensor = self.prior(l) + self.share * residual  # (rows, objectives)
        return z

    def head_paths(self, scores: Tensor, context: Tensor) -> HeadPaths:
        """Return what each path adds to each head, before t."""
        return self._paths(self.prior.logit(scores), context)

    def paths(self, scores: Tensor, context: Tensor) -> Paths:
        """Return what each path adds to the sum of all heads before t, and the attentions."""
        paths = self.head_paths(scores, context)
        s1, s2, s3 = (path.sum(0) for path in (paths.s1, paths.s2, paths.s3))  # (rows,)
        A_r, A_p = (A.permute(2, 0, 1) for A in (paths.A_r, paths.A_p))  # (rows, M, M)
        return Paths(s1, s2, s3, A_r, A_p)

    def _paths(self, l: Tensor, context: Tensor) -> HeadPaths:  # noqa: E741
        M, d = self.config.objectives, self.config.width
        x = self.scores(self.prior.standardise(l).T)  # (objectives, width, rows)
        tables = [self.relation_aware.queries(self.context.table), *self.linear.tables()]
        asked = self.context(context, torch.cat(tables, dim=1))  # (columns, rows)
        q, offset, slope = asked.split([M * d, M, M * M])
        s1, A_r, A_p = self.relation_aware(x, q.view(M, d, -1))
        s3 = self.linear(x, offset, slope.view(M, M, -1))  # (objectives, rows)
        return HeadPaths(s1, self.gated(x), s3, A_r, A_p)

    def energy(self, slopes: float) -> Tensor:
        """Return the sum of squared output weights of all heads, which the ridge penalises.

        Args:
            slopes: What a slope by context counts, relative to other weights.
        """
        linear, gated = self.linear, self.gated
        common = linear.output.square().sum() + gated.output.square().sum()
        common = common + linear.offset.square().sum()
        folded = self.relation_aware.folded_output()
        total: Tensor = common + 0.1 * folded.square().sum() + slopes * linear.slope.square().sum()
        return total

    @torch.no_grad()
    def _reset(self, generator: torch.Generator | None) -> None:
        """Draw the first weights; their scale keeps the variance from layer to layer."""
        for name, parameter in self.named_parameters():
            part = name.rpartition(".")[2]
            if part in ("bias", "output", "offset", "slope"):
                parameter.zero_()
            elif name == "scores.table":
                self.scores.reset(generator)
            elif name == "context.table":
                parameter.normal_(0.0, 0.5, generator=generator)
            elif part == "context_bias":
                parameter.normal_(0.0, 0.3, generator=generator)
            else:
                bound = 2 / sqrt(max(parameter.shape[-1], 1))
                parameter.uniform_(-bound, bound, generator=generator)


class ScorePrior(nn.Module):
    """The calibrated own score, a ℓ + b, and the scale on which the paths see scores."""

    centre: Tensor
    spread: Tensor
    slope: Tensor
    intercept: Tensor

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        for name, value in (("centre", 0.0), ("spread", 1.0), ("slope", 1.0), ("intercept", 0.0)):
            self.register_buffer(name, torch.full((config.objectives,), value))

    @staticmethod
    def logit(scores: Tensor) -> Tensor:
        s = scores.clamp(SMALLEST_SCORE, 1 - SMALLEST_SCORE)
        return torch.log(s) - torch.log1p(-s)

    def standardise(self, l: Tensor) -> Tensor:  # noqa: E741
        return ((l - self.centre) / self.spread).clamp(-FARTHEST, FARTHEST)

    def forward(self, l: Tensor) -> Tensor:  # noqa: E741
        return self.slope * l + self.intercept


class SmoothBuckets(nn.Module):
    """Interpolates between the two nearest rows of a score's table.

    So close scores have close embeddings. Buckets are of equal width on the standardised logit.
    Beyond them the first number of the embedding is linear in the logit.
    """

    grid: Tensor

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(config.objectives, config.buckets, config.width))
        self.register_buffer(
            "grid", torch.arange(config.buckets, dtype=torch.float32), persistent=False
        )

    @torch.no_grad()
    def reset(self, generator: torch.Generator | None) -> None:
        """Begin with the logit itself, and sine waves of several lengths."""
        M, B, d = self.table.shape
        u = torch.linspace(-REACH, REACH, B)[:, None]  # (buckets, 1)
        frequency = 0.3 + 1.5 * torch.rand(M, 1, d, generator=generator)
        phase = 2 * pi * torch.rand(M, 1, d, generator=generator)
        self.table.copy_(torch.sin(frequency * u + phase))
        self.table[:, :, 0] = u[:, 0]

    def forward(self, u: Tensor) -> Tensor:
        inside = u.clamp(-REACH, REACH)  # (M, rows)
        place = (inside + REACH) * ((len(self.grid) - 1) / (2 * REACH))  # (M, rows)
        near = (1 - (place.unsqueeze(1) - self.grid[:, None]).abs()).clamp_min(0)  # (M, B, rows)
        x = self.table.mT @ near  # (M, width, rows)
        return torch.cat([x[:, :1] + (u - inside).unsqueeze(1), x[:, 1:]], dim=1)


class Context(nn.Module):
    """An embedding of each context value, and sums of table rows over the values of a row."""

    first: Tensor

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        slots = config.context_slots
        self.table = nn.Parameter(torch.empty(sum(slots), config.context_width))
        first = torch.tensor([1 + sum(slots[:i]) for i in range(len(slots))], dtype=torch.long)
        self.register_buffer("first", first, persistent=False)

    def forward(self, context: Tensor, table: Tensor) -> Tensor:
        """Add up rows of a table: row 0, which all share, and one for each value."""
        place = nn.functional.pad(context + self.first, (1, 0))  # (rows, 1 + features)
        return nn.functional.embedding_bag(place, table, mode="sum").T  # (columns, rows)


class ObjectiveAttention(nn.Module):
    """Aligns the scores by self-attention, then each head attends to them given its context.

    Keys and values are linear in the embedding, so their matrices are multiplied with the queries
    and outputs first: attention costs d and not d_k numbers per score.
    """

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        self.slots, self.scale = config.context_slots, sqrt(config.key_width)
        self.query = _parameter(config, "relation_aware.query")
        self.key = _parameter(config, "relation_aware.key")
        self.value = _parameter(config, "relation_aware.value")
        self.context_query = _parameter(config, "relation_aware.context_query")
        self.context_bias = _parameter(config, "relation_aware.context_bias")
        self.context_key = _parameter(config, "relation_aware.context_key")
        self.context_value = _parameter(config, "relation_aware.context_value")
        self.output = _parameter(config, "relation_aware.output")

    def queries(self, context: Tensor) -> Tensor:
        """Return the query of every context value, folded to act on x_r, (1 + slots, M · d)."""
        W_p = self.context_key @ self.value / self.scale  # (k, d)
        e, rows = context.shape[1], [self.context_bias.unsqueeze(0)]  # (1, M, k)
        for feature, values in enumerate(torch.split(context, list(self.slots))):
            W = self.context_query[:, :, feature * e : (feature + 1) * e]  # (M, k, e)
            rows.append(torch.einsum("ve,mke->vmk", values, W))
        return (torch.cat(rows) @ W_p).flatten(1)

    def forward(self, x: Tensor, q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        W_r = self.query.T @ self.key / self.scale  # (d, d)
        A_r = torch.softmax(_dots(W_r.T @ x, x), dim=1)  # (M, M, n)
        # Times `value` this is the paper's x_r.
        x_r = (A_r.unsqueeze(2) * x).sum(1)  # (M, d, n)
        A_p = torch.softmax(_dots(q, x_r), dim=1)  # (M, M, n)
        s1 = (A_p * (self.folded_output() @ x_r).transpose(0, 1)).sum(1)  # (M, n)
        return s1, A_r, A_p

    def folded_output(self) -> Tensor:
        """Return the weights of every head on x_r, (objectives, d)."""
        folded: Tensor = self.output @ self.context_value @ self.value
        return folded


class ObjectiveGate(nn.Module):
    """Keeps a share g of each score's embedding: s2 = W2 (g ⊙ x)."""

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        self.gate = _parameter(config, "gated.gate")
        self.bias = _parameter(config, "gated.bias")
        self.output = _parameter(config, "gated.output")

    def forward(self, x: Tensor) -> Tensor:
        g = torch.sigmoid(self.gate @ x + self.bias[:, None])  # (objectives, rows)
        return self.output @ (g.unsqueeze(1) * x).flatten(0, 1)  # (objectives, rows)


class Linear(nn.Module):
    """s3 = W3 x + b3, with an offset and slopes on the scores for each context value."""

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        self.output = _parameter(config, "linear.output")
        self.bias = _parameter(config, "linear.bias")
        self.offset = _parameter(config, "linear.offset")
        self.slope = _parameter(config, "linear.slope")

    def tables(self) -> tuple[Tensor, Tensor]:
        """Return offsets and slopes of every context value; row 0 holds those that all share."""
        offset = torch.cat([self.bias.unsqueeze(0), self.offset])  # (1 + slots, M)
        return offset, nn.functional.pad(self.slope.flatten(1), (0, 0, 1, 0))

    def forward(self, x: Tensor, offset: Tensor, slope: Tensor) -> Tensor:
        s3 = self.output @ x.flatten(0, 1) + offset  # (objectives, rows)
        return s3 + (slope * x[:, 0]).sum(1)  # (objectives, rows)


def _dots(a: Tensor, b: Tensor) -> Tensor:
    """Return a_i · b_j of each row, (i, j, rows)."""
    return (a.unsqueeze(1) * b).sum(2)


def _parameter(config: ObjectiveConfig, name: str) -> nn.Parameter:
    """Return a parameter of the shape that the config lists under its name."""
    return nn.Parameter(torch.empty(config.shapes[name]))
