"""ESMM: later objectives as what follows the first one."""

__all__ = ["ESMM", "chained"]

import torch
from torch import Tensor, nn

from harmonrank.prediction.config import TowerSizes
from harmonrank.prediction.experts import GroupedLinear, Thinned, Towers


class ESMM(nn.Module):
    """Entire space multi-task model (Ma et al., SIGIR 2018).

    p_0 = σ(a_0) and p_m = σ(a_0)·σ(a_m): the first objective, a click, opens the way to the
    others, and all are trained on all rows. Towers share the embeddings and nothing else. A label
    that comes without a click is allowed, and simply counts against the product.
    """

    def __init__(
        self, inputs: int, config: TowerSizes, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        M = config.objectives
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
