"""MMoE: shared experts, one gate and one tower per objective."""

__all__ = ["MMoE"]

import torch
from torch import Tensor, nn

from harmonrank.prediction.config import TowerSizes
from harmonrank.prediction.experts import GroupedLinear, Thinned, Towers, mix


class MMoE(nn.Module):
    """Multi-gate mixture of experts (Ma et al., KDD 2018).

    h_e = relu(x W_e); f_m = Σ_e softmax(x G_m)_e h_e; logit_m = tower_m(f_m).
    """

    def __init__(
        self, inputs: int, config: TowerSizes, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        M, E = config.objectives, config.experts
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
