"""Recipes of the worlds that each break one assumption of a plain world."""

__all__ = ["RECIPES", "LabRecipe"]

from collections.abc import Mapping
from dataclasses import dataclass, field

from harmonrank.worlds import PRESETS, Recipe
from harmonrank_lab.worlds.violations import (
    Violation,
    with_backbone,
    with_interactions,
    with_leak,
    with_requests,
    with_tails,
)

_USUAL = {"buy": 0.001, "comment": 0.02, "follow": 0.01, "like": 0.05, "long_view": 0.25}


@dataclass(frozen=True, kw_only=True)
class LabRecipe(Recipe):
    """What all draws of one kind of world share.

    Attributes:
        violation: adds to a drawn world what breaks an assumption.
        solved_on: rows on which a redraw gets the ceiling of the preset.
    """

    prevalence: Mapping[str, float] = field(default_factory=lambda: _USUAL)
    jitter: float = 0.3
    violation: Violation
    # Both worlds are seen on the same draws, so a block is mostly enough: its luck cancels.
    solved_on: int = 16_384


RECIPES: dict[str, Recipe] = {
    **PRESETS,
    # Worlds that each break one assumption of those above. Their numbers are drawn more widely.
    "backbone": LabRecipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.1, 0.3), (0.6, -0.9), (1.0, -0.3), (0.2, 1.1), (-0.8, 0.6)),
        tau=0.8,
        seed=4,
        violation=with_backbone,
    ),
    "tails": LabRecipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.0, 0.4), (0.9, -0.6), (0.7, 0.8), (-0.4, 1.0), (-0.9, -0.5)),
        tau=0.7,
        seed=5,
        violation=with_tails,
    ),
    "interactions": LabRecipe(
        context={"hour": 24, "age": 8, "gender": 3},
        loadings=((1.0, 0.5), (0.8, -0.8), (0.9, 0.2), (-0.3, 1.0), (-0.9, -0.4)),
        tau=0.6,
        seed=6,
        violation=with_interactions,
        # Pairs of hours and ages are seldom seen: their luck cancels on many requests only.
        solved_on=131_072,
    ),
    "leak": LabRecipe(
        context={"age": 8, "gender": 3, "region": 6},
        loadings=((1.1, 0.3), (0.7, -0.7), (1.0, 0.4), (-0.2, 1.1), (-0.8, -0.6)),
        tau=0.7,
        seed=7,
        violation=with_leak,
    ),
    # Two objectives that happen several times in a request, and three that seldom happen twice.
    "requests": LabRecipe(
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
