"""Neural methods: the paper's network trained with a loss of the method's choice.

PyTorch is imported when a network is trained or looked into, and not to score with it.
"""

__all__ = ["History", "NeuralConfig", "NeuralMethod", "NeuralState"]

import sys
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from harmonrank.data import ContextEncoder, Log, Source, read_log
from harmonrank.fusion.base import Method
from harmonrank.fusion.fitting.fit import Fit
from harmonrank.fusion.fitting.row_blocks import EXAM_ROWS, RowsInBlocks
from harmonrank.fusion.position.correction import corrected
from harmonrank.fusion.state import ContextState
from harmonrank.paper import NetworkConfig, NetworkOptions, TrainingConfig
from harmonrank.paper.buckets import Scale
from harmonrank.paper.fused import Scorer
from harmonrank.paper.health import Health
from harmonrank.paper.stored import grown_context, network_arrays, rescaled_output
from harmonrank.support.errors import UsageError
from harmonrank.support.extras import needs_extras
from harmonrank.support.options import Buckets, Count, Rate, checked_seed, checked_whole
from harmonrank.support.storage.arrays import Array

if TYPE_CHECKING:
    from torch import Tensor

    from harmonrank.paper import Network

_KNOTS = "scores.knots"

History = tuple[tuple[float, float, float | None], ...]
"""Of every epoch its loss, validation AUC-sum and share of items with a gradient."""


@dataclass(frozen=True, kw_only=True)
class NeuralConfig(NetworkOptions, TrainingConfig):
    """Options of the network and of its training, under their own names.

    The defaults are those that searches for several losses found (docs/network.md).
    The published options are those of `NetworkOptions`.

    Attributes:
        optimise: The AUC to fit for, over 'all' rows or within 'requests', which only the rank loss
            can (docs/per-request.md).
        weighting: Whether the objectives' weights stay as given or move while the network learns
            (see `harmonrank.paper.methods.weighting`).
    """

    buckets: Buckets | None = 8
    scale: Scale = "logit"
    interpolate: bool = True
    learning_rate: Rate = 0.02
    schedule: Literal["constant", "cosine"] = "cosine"
    steps: Count = 3_000
    patience_steps: Count = 3_000
    weighting: Literal["fixed", "pantheon", "min-norm"] = "fixed"
    optimise: Literal["all", "requests"] = "all"

    def __post_init__(self) -> None:
        NetworkOptions.__post_init__(self)
        TrainingConfig.__post_init__(self)

    def network(self, objectives: int, context_slots: tuple[int, ...]) -> NetworkConfig:
        """Return what the network is told: the options it has, and what the data say."""
        chosen = {field.name: getattr(self, field.name) for field in fields(NetworkOptions)}
        return NetworkConfig(objectives=objectives, context_slots=context_slots, **chosen)


class NeuralState(ContextState, forbid_unknown_fields=True):
    """The values of the context columns, and how the training went."""

    history: list[tuple[float | None, float | None, float | None]]
    health: Health | None = None

    def known_history(self) -> History:
        """Return the history with NaN for what was not finite, which is stored as null."""
        return tuple((_known(a), _known(b), c) for a, b, c in self.history)


class NeuralMethod(Method):
    """Trains the paper's network; a subclass names the loss, of `methods.network_losses`."""

    loss: ClassVar[str]
    needs = "torch"
    takes = ("graded",)
    fits_blocks = True
    most_valid = EXAM_ROWS
    Config = NeuralConfig
    State = NeuralState

    encoder: ContextEncoder
    history: History = ()
    health: Health | None = None
    """Whether each path of the network does something; known once fitted."""
    _memory: dict[str, "Tensor"]
    _weights: Mapping[str, np.ndarray]
    _scorer: Scorer | None = None
    _built: "Network | None" = None

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        if self.optimises == "requests" and self.loss != "rank-auc":
            raise UsageError(
                f"{self.name} cannot be fitted for AUC within requests, as its loss compares all "
                "rows of a batch; use harmonrank or harmonrank-paper."
            )

    def _fit(self, fit: Fit) -> None:
        from harmonrank.paper.methods.neural_fit import learn

        fit = fit.wanted()
        self.encoder = ContextEncoder.fit(fit.train.context)
        network = self._new_network(fit).to(fit.device)
        self._use(*learn(self, fit, network, self.config.epochs))

    def _fit_blocks(self, fit: RowsInBlocks) -> None:
        from harmonrank.paper.methods.neural_fit import buffered_rows, learn

        some = fit.sampled().wanted()
        self.encoder = fit.encoder
        network = self._new_network(some).to(fit.device)
        buffered = buffered_rows(fit, self.config.batch_rows, some.turned)
        self._use(*learn(self, some, network, self.config.epochs, buffered=buffered))

    def updated(self, table: Source, *, passes: int = 20, seed: int = 0) -> Self:
        """Return a new model that went on learning: some passes over newer rows.

        Twenty of them by default, as the paper makes over each batch that arrives.
        It starts from the weights of this one, with a new optimiser. No row is set aside: what the
        last pass leaves is kept. A context value that was not seen before begins as the unknown one
        and learns from there.

        Args:
            table: Rows with labels, of the columns that the fit had.
            passes: How often each row is seen.
            seed: Decides the order of rows.
        """
        with needs_extras("Learning on"):
            from harmonrank.paper.methods.neural_fit import learn

        passes, seed = checked_whole("passes", passes, least=1), checked_seed(seed)
        log = self._expected(corrected(read_log(table, self.schema)).counted())
        weights = self.schema.weight_vector
        fit = Fit(log, log.take(np.arange(0)), weights, seed, "cpu", lambda _: None, None).wanted()
        newer = self._grown(log)
        # Who updates once does so again and again: kernels are worth compiling.
        learned = learn(newer, fit, deepcopy(newer.network), passes, rows_seen=sys.maxsize)
        newer._use(learned.network, self.history, learned.health)
        share = log.prevalence()
        # Of an objective that these rows show one class of, they tell no prevalence.
        known = (share > 0) & (share < 1)
        newer._keep_prevalence(np.where(known, share, self.prevalence))
        return newer

    def rescaled(self, factor: float, shift: float) -> Self:
        """Return the same network with `factor` times its fused score, plus `shift`.

        A loss of ranks leaves the scale of the fused score open, so that it wanders as a network
        goes on learning; whoever compares fused scores of different times brings them to one.
        """
        changed = copy(self)
        weights = rescaled_output(self._weights, factor, shift)
        changed._weights, changed._built, changed._scorer = weights, None, None
        return changed

    def _grown(self, log: Log) -> Self:
        """Return a copy that has a place for every context value of these rows."""
        newer, older = copy(self), self.encoder
        newer.encoder = older.grown(log.context)
        if newer.encoder != older:
            codes = newer.encoder.recoding(older)
            weights = grown_context(self._weights, newer.encoder.slots, codes)
            newer._weights, newer._built, newer._scorer = weights, None, None
        return newer

    def _use(self, network: "Network", history: History, health: Health) -> None:
        self.history, self.health = history, health
        self._built, self._scorer = network.cpu().eval(), None
        self._weights = {name: value.numpy() for name, value in network.state_dict().items()}

    @property
    def network(self) -> "Network":
        """The network with the fitted weights."""
        if self._built is None:
            with needs_extras("The network itself"):
                self._built = self._rebuilt()
        return self._built

    def _rebuilt(self) -> "Network":
        import torch

        from harmonrank.paper import Network

        config = self._network_config(len(self.schema.names))
        network = Network(config, knots=self._weights[_KNOTS]).eval()
        weights = {name: torch.from_numpy(array) for name, array in self._weights.items()}
        network.load_state_dict(weights)
        return network

    def _network_config(self, objectives: int) -> NetworkConfig:
        found: NetworkConfig = self.config.network(objectives, self.encoder.slots)
        return found

    def _new_network(self, fit: Fit) -> "Network":
        import torch

        from harmonrank.paper import Network

        scores, weight = fit.train.scores, fit.train.sample_weight
        # A row of weight 0 counts as removed, so it must not move a bucket.
        seen = scores if weight is None else scores[weight > 0]
        generator = torch.Generator().manual_seed(fit.seed)
        return Network(self._network_config(scores.shape[1]), generator, scores=seen)

    def _score(self, log: Log) -> np.ndarray:
        return self._fuse(log.scores, log.codes(self.encoder))

    def _score_request(
        self, scores: np.ndarray, context: Mapping[str, Any], weights: np.ndarray | None
    ) -> np.ndarray:
        if weights is not None:
            return super()._score_request(scores, context, weights)
        return self._fuse(scores, np.tile(self.encoder.encode_values(context), (len(scores), 1)))

    def _fuse(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        if self._scorer is None:
            self._scorer = Scorer(self._network_config(scores.shape[1]), self._weights)
        return self._scorer(scores.astype(np.float32, copy=False), codes)

    def attention(self, table: Source) -> np.ndarray | None:
        """Return the mean over rows of A_r, how much each objective attends to each other.

        (M, M), each row adds up to 1; None for a network without self-attention.
        """
        if not self.config.self_attention:
            return None
        with needs_extras("The attention of a network"):
            from harmonrank.paper.methods.neural_fit import mean_attention

        log = self._expected(read_log(table, self.schema, labels=False))
        return mean_attention(self.network, log.scores.astype(np.float32, copy=False))

    def _state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        health = None if self.health is None else asdict(self.health)
        parts = {"context": self.encoder.to_list(), "history": self.history, "health": health}
        return parts, dict(self._weights)

    def _declare(self, state: NeuralState) -> dict[str, Array]:
        M, slots = len(self.schema.names), state.encoder(self.schema).slots
        return network_arrays(self.config.network(M, slots))

    def _restore(self, state: NeuralState, arrays: dict[str, np.ndarray]) -> None:
        self.encoder = state.encoder(self.schema)
        self._weights, self._built, self._scorer = arrays, None, None
        self.health, self.history = state.health, state.known_history()


def _known(value: float | None) -> float:
    return float("nan") if value is None else value
