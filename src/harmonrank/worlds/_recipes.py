"""Recipes: what all draws of one kind of world share."""

__all__ = ["RECIPES", "Recipe"]

from collections.abc import Mapping
from dataclasses import dataclass, field

from harmonrank.worlds._violations import (
    Violation,
    with_backbone,
    with_interactions,
    with_leak,
    with_requests,
    with_tails,
)

_USUAL = {"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.05, "long_view": 0.25}
_AS_DRAWN = {tuple(_USUAL): 1.0}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What all draws of one kind of world share.

    Attributes:
        prevalence: the share of positives of every objective.
        context: the number of categories of every feature.
        loadings: means of Λ, one row per objective.
        jitter: spread of a draw's loadings around these means.
        own: mean of σ.
        mu: spread of μ(c) over contexts.
        tau: middle of the upstream noise.
        tau_context: spread of log τ(c) over contexts.
        b_context: spread of b(c) over contexts.
        seed: of the preset itself.
        strength: factors on the latent logits of some objectives, solved on 1M rows of the preset.
        violation: adds to a drawn world what breaks an assumption.
        solved_on: rows on which a redraw gets the ceiling of the preset.
    """

    prevalence: Mapping[str, float] = field(default_factory=lambda: _USUAL)
    context: Mapping[str, int]
    loadings: tuple[tuple[float, ...], ...]
    jitter: float = 0.3
    own: float = 0.7
    mu: float = 0.4
    tau: float
    tau_context: float = 0.3
    b_context: float = 0.25
    seed: int
    strength: Mapping[tuple[str, ...], float] = field(default_factory=lambda: _AS_DRAWN)
    violation: Violation | None = None
    # Both worlds are seen on the same draws, so a block is mostly enough: its luck cancels.
    solved_on: int = 16_384


RECIPES = {
    "elive": Recipe(
        prevalence={"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.03, "long_view": 0.25},
        context={"hour": 24, "app_version": 10, "age": 8, "gender": 3},
        loadings=((1.1, 0.4), (1.15, -0.4), (1.1, 0.2), (1.15, -0.3), (0.9, 0.3)),
        jitter=0.1,
        tau=0.8,
        seed=1,
        # The first factor gives three objectives a ceiling of 2.22, the second all five 3.75.
        strength={("buy", "follow", "long_view"): 0.89, ("comment", "like"): 0.897},
    ),
    # Click, like, follow and share at rates usual for short video; the data set is licensed.
    "qkvideo": Recipe(
        prevalence={"click": 0.27, "like": 0.03, "follow": 0.01, "share": 0.01, "long_view": 0.25},
        context={"age": 8, "gender": 3},
        loadings=((1.6, 0.4), (1.6, 0.2), (1.6, 0.3), (1.5, -0.5), (1.2, -0.4)),
        jitter=0.1,
        own=0.8,
        tau=0.8,
        seed=2,
        # Ceilings of 2.46 and 3.92.
        strength={("click", "like", "follow"): 0.914, ("share", "long_view"): 0.759},
    ),
    "conflict": Recipe(
        prevalence={
            "buy": 0.001,
            "comment": 0.02,
            "follow": 0.008,
            "like": 0.06,
            "long_view": 0.23,
        },
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.15, 0.25), (-1.0, 0.5), (0.8, -0.85), (-0.35, 1.1), (-1.0, -0.5)),
        jitter=0.1,
        mu=0.3,
        tau=0.5,
        tau_context=0.25,
        b_context=0.18,
        seed=3,
        # A ceiling of 3.22.
        strength={("buy", "comment", "follow", "like", "long_view"): 1.014},
    ),
    # Worlds that each break one assumption of those above. Their numbers are drawn more widely.
    "backbone": Recipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.1, 0.3), (0.6, -0.9), (1.0, -0.3), (0.2, 1.1), (-0.8, 0.6)),
        tau=0.8,
        seed=4,
        violation=with_backbone,
    ),
    "tails": Recipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.0, 0.4), (0.9, -0.6), (0.7, 0.8), (-0.4, 1.0), (-0.9, -0.5)),
        tau=0.7,
        seed=5,
        violation=with_tails,
    ),
    "interactions": Recipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.0, 0.5), (0.8, -0.8), (0.9, 0.2), (-0.3, 1.0), (-0.9, -0.4)),
        tau=0.6,
        seed=6,
        violation=with_interactions,
        # Pairs of hours and ages are seldom seen: their luck cancels on many requests only.
        solved_on=131_072,
    ),
    "leak": Recipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.1, 0.3), (0.7, -0.7), (1.0, 0.4), (-0.2, 1.1), (-0.8, -0.6)),
        tau=0.7,
        seed=7,
        violation=with_leak,
    ),
    # Two objectives that happen several times in a request, and three that seldom happen twice.
    "requests": Recipe(
        prevalence={"buy": 0.005, "comment": 0.02, "follow": 0.01, "like": 0.1, "long_view": 0.3},
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((0.8, 0.4), (0.6, -0.7), (0.8, 0.2), (-0.3, 0.8), (-0.7, -0.4)),
        tau=0.7,
        seed=8,
        violation=with_requests,
        # Requests are fewer than rows: their luck cancels on many of them.
        solved_on=131_072,
    ),
}
