"""PLE: experts of each objective beside shared ones, in levels."""

__all__ = ["PLE"]

import torch
from torch import Tensor, nn

from harmonrank.prediction.config import TowerSizes
from harmonrank.prediction.experts import GroupedLinear, Thinned, Towers, mix


class PLE(nn.Module):
    """Progressive layered extraction (Tang et al., RecSys 2020).

    Every level has one expert per objective and `experts` shared ones. The gate of an objective
    blends its own expert with the shared ones; the shared gate, which the last level does not
    need, blends all. Towers stand on the last level. All objectives begin alike.
    """

    def __init__(
        self, inputs: int, config: TowerSizes, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        self._groups = config.objectives + 1
        widths = [inputs] + [config.expert_width] * (config.levels - 1)
        self.levels = nn.ModuleList(
            _Level(width, config, last=i == config.levels - 1, generator=generator)
            for i, width in enumerate(widths)
        )
        self.towers = Towers(
            config.objectives,
            config.expert_width,
            config.tower_width,
            config.dropout,
            generator,
        )

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
        self, inputs: int, config: TowerSizes, *, last: bool, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        M, E, H = config.objectives, config.experts, config.expert_width
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
