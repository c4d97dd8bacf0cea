"""The paper's network with one head per objective, each a residual on the closed form."""

__all__ = ["ObjectiveNetwork", "Paths"]

from math import pi, sqrt
from typing import NamedTuple

import torch
from torch import Tensor, nn

from harmonrank.model.objective_config import FARTHEST, REACH, SMALLEST_SCORE, ObjectiveConfig


class Paths(NamedTuple):
    """What each path adds to the heads, and how it attends."""

    s1: Tensor  # (rows, objectives), relation-aware
    s2: Tensor  # (rows, objectives), gated
    s3: Tensor  # (rows, objectives), linear
    A_r: Tensor  # (rows, objectives, objectives), how much each score listens to each other
    A_p: Tensor  # (rows, objectives, objectives), how much each head asks for each score


class ObjectiveNetwork(nn.Module):
    """Gives each objective a logit: z_m = a_m ℓ_m + b_m + t_m (s1 + s2 + s3)_m.

    The first part is the closed form: the logit ℓ_m of the objective's own score, calibrated. The
    paths are the paper's, with one output per objective. All outputs begin at 0, so an untrained
    network is the closed form, and t_m in [0, 1] says how much of the residual is kept.

    Args:
        config: Size.
        generator: Draws the first weights, so that a seed decides them.
    """

    share: Tensor

    def __init__(self, config: ObjectiveConfig, generator: torch.Generator | None = None) -> None:
        super().__init__()
        self.config = config
        self.prior = Prior(config)
        self.scores = SmoothBuckets(config)
        self.context = Context(config)
        self.relation_aware = RelationAware(config)
        self.gated = Gated(config)
        self.linear = Linear(config)
        self.register_buffer("share", torch.ones(config.objectives))
        self._reset(generator)

    def forward(self, scores: Tensor, context: Tensor) -> Tensor:
        """Return the logit of every objective given scores and context codes."""
        l = self.prior.logit(scores)  # (rows, objectives)  # noqa: E741
        found = self._paths(l, context)
        residual = found.s1 + found.s2 + found.s3  # (rows, objectives)
        z: Tensor = self.prior(l) + self.share * residual  # (rows, objectives)
        return z

    def paths(self, scores: Tensor, context: Tensor) -> Paths:
        """Return what each path adds, before t."""
        return self._paths(self.prior.logit(scores), context)

    def _paths(self, l: Tensor, context: Tensor) -> Paths:  # noqa: E741
        x = self.scores(self.prior.standardise(l))  # (rows, objectives, width)
        place = context + self.context.first  # (rows, features)
        s1, A_r, A_p = self.relation_aware(x, self.context(place))
        return Paths(s1, self.gated(x), self.linear(x, place), A_r, A_p)

    def energy(self, slopes: float) -> Tensor:
        """Return Σ of the squares of what every head makes of its inputs, by which it is shrunk.

        Args:
            slopes: How much a slope by context counts beside a slope for all.
        """
        linear, gated = self.linear, self.gated
        common = linear.output.square().sum() + gated.output.square().sum()
        common = common + linear.offset.square().sum()
        folded = self.relation_aware.folded_output()
        total: Tensor = common + 0.1 * folded.square().sum() + slopes * linear.slope.square().sum()
        return total

    @torch.no_grad()
    def _reset(self, generator: torch.Generator | None) -> None:
        """Draw what is not 0 at first; values keep their variance from layer to layer."""
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


class Prior(nn.Module):
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
    """Mixes the two nearest rows of a score's table, so that close scores have close embeddings.

    Buckets are of equal width on the standardised logit. Beyond them the first number of the
    embedding goes on as the logit does.
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
        """Begin with the logit itself, and waves of some lengths."""
        M, B, d = self.table.shape
        u = torch.linspace(-REACH, REACH, B)[:, None]  # (buckets, 1)
        frequency = 0.3 + 1.5 * torch.rand(M, 1, d, generator=generator)
        phase = 2 * pi * torch.rand(M, 1, d, generator=generator)
        self.table.copy_(torch.sin(frequency * u + phase))
        self.table[:, :, 0] = u[:, 0]

    def forward(self, u: Tensor) -> Tensor:
        inside = u.clamp(-REACH, REACH)  # (rows, M)
        place = (inside + REACH) * ((len(self.grid) - 1) / (2 * REACH))  # (rows, M)
        near = (1 - (place.unsqueeze(2) - self.grid).abs()).clamp_min(0)  # (rows, M, buckets)
        x = torch.einsum("nmb,mbd->nmd", near, self.table)  # (rows, M, width)
        beyond = (u - inside).unsqueeze(2)  # (rows, M, 1)
        return torch.cat([x[:, :, :1] + beyond, x[:, :, 1:]], dim=2)  # (rows, M, width)


class Context(nn.Module):
    """An embedding of each context value."""

    first: Tensor

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        slots = config.context_slots
        self.table = nn.Parameter(torch.empty(sum(slots), config.context_width))
        first = torch.tensor([sum(slots[:i]) for i in range(len(slots))], dtype=torch.long)
        self.register_buffer("first", first, persistent=False)

    def forward(self, place: Tensor) -> Tensor:
        return nn.functional.embedding(place, self.table).flatten(1)  # (rows, features · width)


class RelationAware(nn.Module):
    """Aligns the scores by self-attention, then lets each head ask for what its context needs.

    Keys and values are linear in the embedding, so their matrices are multiplied with what
    they meet first: attention costs d and not d_k numbers per score.
    """

    query: nn.Parameter
    key: nn.Parameter
    value: nn.Parameter
    context_query: nn.Parameter
    context_bias: nn.Parameter
    context_key: nn.Parameter
    context_value: nn.Parameter
    output: nn.Parameter

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        k = config.key_width
        self.scale = sqrt(k)
        _declare(self, config, "relation_aware")

    def forward(self, x: Tensor, P: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        W_r = self.query.T @ self.key / self.scale  # (d, d)
        A_r = torch.softmax((x @ W_r) @ x.mT, dim=2)  # (n, M, M)
        x_r = A_r @ x  # (n, M, d), times `value` the paper's x_r
        Q_p = torch.einsum("nc,mkc->nmk", P, self.context_query) + self.context_bias  # (n, M, k)
        W_p = self.context_key @ self.value / self.scale  # (k, d)
        A_p = torch.softmax((Q_p @ W_p) @ x_r.mT, dim=2)  # (n, M, M)
        s1 = ((A_p @ x_r) * self.folded_output()).sum(2)  # (n, M)
        return s1, A_r, A_p

    def folded_output(self) -> Tensor:
        """Return what every head makes of x_r, (objectives, d)."""
        folded: Tensor = self.output @ self.context_value @ self.value
        return folded


class Gated(nn.Module):
    """Keeps a share g of each score's embedding: s2 = W2 (g ⊙ x)."""

    gate: nn.Parameter
    bias: nn.Parameter
    output: nn.Parameter

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        _declare(self, config, "gated")

    def forward(self, x: Tensor) -> Tensor:
        g = torch.sigmoid(x @ self.gate + self.bias)  # (rows, objectives)
        return (g.unsqueeze(2) * x).flatten(1) @ self.output.T  # (rows, objectives)


class Linear(nn.Module):
    """s3 = W3 x + b3, with an offset and slopes on the scores for each context value."""

    output: nn.Parameter
    bias: nn.Parameter
    offset: nn.Parameter
    slope: nn.Parameter

    def __init__(self, config: ObjectiveConfig) -> None:
        super().__init__()
        _declare(self, config, "linear")

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        M = x.shape[1]
        s3 = x.flatten(1) @ self.output.T + self.bias  # (rows, objectives)
        s3 = s3 + nn.functional.embedding(place, self.offset).sum(1)  # (rows, objectives)
        by_context = nn.functional.embedding(place, self.slope.flatten(1)).sum(1)  # (rows, M · M)
        return s3 + (by_context.view(-1, M, M) @ x[:, :, :1]).squeeze(2)  # (rows, objectives)


def _declare(module: nn.Module, config: ObjectiveConfig, part: str) -> None:
    """Give a module the parameters that the config lists under its name."""
    for name, shape in config.shapes.items():
        whole, _, own = name.partition(".")
        if whole == part:
            setattr(module, own, nn.Parameter(torch.empty(shape)))
