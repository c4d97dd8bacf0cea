"""Neural methods: the paper's network, trained with the loss of each method.

PyTorch is imported only to train a network or to inspect it, not to score with it.
"""

__all__ = [
    "NETWORK_TRAITS",
    "History",
    "NetworkFit",
    "NetworkMethod",
    "NeuralConfig",
    "NeuralMethod",
    "TrainedNetwork",
]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

import numpy as np

from harmonrank.data import Log, Source, read_log
from harmonrank.data.kinds import LabelLevels
from harmonrank.data.rows.blocks import HeldBlocks
from harmonrank.fusion.kinds import LabelTargets
from harmonrank.fusion.method import Method, changed
from harmonrank.fusion.position import corrected
from harmonrank.fusion.protocol import TrainingRows, Traits
from harmonrank.model.fit_rows import FitRows
from harmonrank.paper.buckets import Scale
from harmonrank.paper.config import NetworkConfig, NetworkOptions, TrainingConfig
from harmonrank.paper.fused import Scorer
from harmonrank.paper.health import Health
from harmonrank.support.errors import DataError, UsageError
from harmonrank.support.extras import needs_extras
from harmonrank.support.options import Buckets, Count, Rate, checked_seed, checked_whole
from harmonrank.support.storage.arrays import Array

if TYPE_CHECKING:
    from torch import nn

    from harmonrank.paper.network import Network

History = tuple[tuple[float, float, float | None], ...]
"""Loss, validation AUC-sum and share of items with a gradient of each epoch."""

NETWORK_TRAITS = Traits(
    probabilities=False, kinds=("graded",), needs="torch", validation_rows=500_000, whole=True
)
"""A network is trained in memory, so a sample is drawn from a larger table."""


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A trained network of any kind.

    Attributes:
        config: Its size and switches.
        weights: Its arrays by name.
        history: Figures of each epoch of the training.
        health: Whether each path of the network has an effect.
    """

    config: Any
    weights: Annotated[Mapping[str, np.ndarray], Array((), "float32")]
    history: History
    health: Health

    @property
    def slots(self) -> tuple[int, ...]:
        """How many codes each context feature has."""
        slots: tuple[int, ...] = self.config.context_slots
        return slots

    def check(self, M: int, slots: tuple[int, ...]) -> None:  # noqa: ARG002
        """Refuse stored arrays that are not those of the config."""
        declared, arrays = self.config.arrays, self.weights
        if self.config.objectives != M:
            fused = self.config.objectives
            raise DataError(f"the network fuses {fused} scores, and the model has {M}")
        for name in sorted(declared.keys() ^ arrays.keys()):
            state = "missing" if name in declared else "not expected"
            raise DataError(f"array '{name}' is {state}")
        for name, array in declared.items():
            if arrays[name].shape != array.shape:
                raise DataError(
                    f"array '{name}' must be of shape {array.shape}, got {arrays[name].shape}"
                )
            array.check(name, arrays[name])

    def loaded(self, network: "nn.Module") -> Any:
        """Return a network in PyTorch with these arrays."""
        import torch

        network.load_state_dict({n: torch.tensor(array) for n, array in self.weights.items()})
        return network.eval()


@dataclass(frozen=True, eq=False)
class NetworkFit(TrainedNetwork):
    """A trained network of the paper; its arrays are parameters, and the knots of its buckets."""

    config: NetworkConfig

    def scores(self, scores: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """Return the fused score of each row, (rows,)."""
        codes = np.broadcast_to(codes, (len(scores), codes.shape[1]))
        return self._scorer(scores.astype(np.float32, copy=False), codes)

    @cached_property
    def _scorer(self) -> Scorer:
        return Scorer(self.config, self.weights)

    @cached_property
    def network(self) -> "Network":
        """The network in PyTorch, with these weights."""
        from harmonrank.paper.network import Network

        network: Network = self.loaded(Network(self.config, knots=self.weights["scores.knots"]))
        return network

    def rescaled(self, factor: float, shift: float) -> Self:
        """Return the network with `factor` times its fused score, plus `shift`.

        A loss of ranks leaves the scale of the fused score open, so that it wanders as a network
        goes on learning; whoever compares fused scores of different times brings them to one.
        """
        changed = {
            name: (array * factor).astype(np.float32)
            for name, array in self.weights.items()
            if name.rpartition(".")[0] in ("relation_aware.output", "gated.output", "linear")
        }
        # The paths are added, so one of them takes the whole shift.
        bias = "relation_aware.output.bias"
        changed[bias] = (changed[bias] + shift).astype(np.float32)
        return replace(self, weights={**self.weights, **changed})

    def grown(self, slots: tuple[int, ...], codes: Sequence[np.ndarray]) -> Self:
        """Return the network with room for more context values; scores stay the same.

        Args:
            slots: How many codes each feature has now.
            codes: By feature, the new code of each old code. A new context value begins with the
                weights of the unknown one.
        """
        config, table = replace(self.config, context_slots=slots), self.weights["context.table"]
        if not len(table):  # a network that is not personalised
            return replace(self, config=config)
        first, parts = 0, []
        for size, known in zip(slots, codes, strict=True):
            before = table[first : first + len(known)]
            part = np.repeat(before[:1], size, axis=0)
            part[known] = before
            parts.append(part)
            first += len(known)
        weights = {**self.weights, "context.table": np.concatenate(parts)}
        return replace(self, config=config, weights=weights)


@dataclass(frozen=True, kw_only=True)
class NeuralConfig(NetworkOptions, TrainingConfig):
    """Options of the network and of its training, under their own names.

    The defaults come from a search over several losses (docs/network.md). The published options
    are those of `NetworkOptions`.

    Attributes:
        optimise: Fit for the AUC over 'all' rows or within 'requests', which only the rank loss
            supports (docs/per-request.md).
    """

    name: ClassVar[str]
    traits: ClassVar[Traits] = NETWORK_TRAITS
    state: ClassVar[type] = NetworkFit
    fits_requests: ClassVar[bool] = False
    """Whether its loss can compare the rows of each request alone."""

    buckets: Buckets | None = 8
    scale: Scale = "logit"
    interpolate: bool = True
    learning_rate: Rate = 0.02
    schedule: Literal["constant", "cosine"] = "cosine"
    steps: Count = 3_000
    patience_steps: Count = 3_000
    optimise: Literal["all", "requests"] = "all"

    def __post_init__(self) -> None:
        NetworkOptions.__post_init__(self)
        TrainingConfig.__post_init__(self)
        if self.optimise == "requests" and not self.fits_requests:
            raise UsageError(
                f"{self.name} cannot be fitted for AUC within requests, as its loss compares all "
                "rows of a batch; use harmonrank or harmonrank-paper."
            )

    def network(self, objectives: int, context_slots: tuple[int, ...]) -> NetworkConfig:
        """Return the network's config: its options, and the sizes that the data decide."""
        chosen = {field.name: getattr(self, field.name) for field in fields(NetworkOptions)}
        return NetworkConfig(objectives=objectives, context_slots=context_slots, **chosen)

    def fit(self, rows: TrainingRows) -> NetworkFit:
        """Train a network from its first weights on."""
        from harmonrank.paper.methods.neural_fit import fit_network

        return fit_network(self, rows)


class NetworkMethod(Method):
    """A method that trains a network."""

    @property
    def health(self) -> Health:
        """Whether each path of the network has an effect."""
        health: Health = self.state.health
        return health

    @property
    def history(self) -> History:
        """Loss, validation AUC-sum and share of items with a gradient of each epoch."""
        history: History = self.state.history
        return history

    @property
    def network(self) -> Any:
        """The network in PyTorch, with the fitted weights."""
        state = self.state
        with needs_extras("The network itself"):
            return state.network


class NeuralMethod(NetworkMethod):
    """Trains the paper's network; the type of its config decides the loss."""

    def updated(self, table: Source, *, passes: int = 20, seed: int = 0) -> Self:
        """Return a new model that was trained further by some passes over newer rows.

        The default is twenty, as in the paper for each batch that arrives. Training starts from the
        weights of this model, with a new optimiser. All rows are used for training, and the last
        weights are kept. A new context value begins with the weights of the unknown one.

        Args:
            table: Rows with labels, with the columns of the fit.
            passes: How often each row is seen.
            seed: Decides the order of rows.
        """
        with needs_extras("Learning on"):
            from harmonrank.paper.methods.neural_fit import update_network

        passes, seed = checked_whole("passes", passes, least=1), checked_seed(seed)
        log = corrected(read_log(table, self.schema)).counted()
        newer = self._grown(log)
        rows = newer._rows_of(log, seed)
        state = update_network(self.config, newer.state, rows, passes)
        # Of an objective that these rows show one class of, they tell no prevalence.
        known = (rows.prevalence > 0) & (rows.prevalence < 1)
        prevalence = np.where(known, rows.prevalence, self.prevalence)
        fitted = replace(newer.fitted, prevalence=prevalence, points={}, maps=())
        return changed(newer, fitted=fitted, state=state)

    def attention(self, table: Source) -> np.ndarray | None:
        """Return the mean of A_r over rows, the attention of each objective to each other.

        (M, M), each row sums to 1; None for a network without self-attention.
        """
        if not self.config.self_attention:
            return None
        with needs_extras("The attention of a network"):
            from harmonrank.paper.methods.neural_fit import mean_attention

        log = read_log(table, self.schema, labels=False)
        scores = self.fitted.expected(log.scores, self.fitted.codes(log), missing=False)
        return mean_attention(self.network, scores.astype(np.float32, copy=False))

    def _grown(self, log: Log) -> Self:
        """Return a copy with room for every context value of these rows."""
        fitted, learned = self.fitted, self.fitted.learned
        encoder = fitted.encoder.grown(log.context)
        if encoder == fitted.encoder:
            return self
        codes, slots = encoder.recoding(fitted.encoder), encoder.slots
        grown = replace(
            fitted,
            encoder=encoder,
            reference=fitted.reference.recoded(codes, slots),
            learned=None if learned is None else learned.recoded(codes, slots),
        )
        return changed(self, fitted=grown, state=self.state.grown(slots, codes))

    def _rows_of(self, log: Log, seed: int) -> TrainingRows:
        """Return rows for further training, without validation rows."""
        schema, codes = self.schema, self.fitted.codes(log)
        levels = {
            name: LabelLevels.of(*log.shown_labels(schema.names.index(name)))
            for name in schema.graded
        }
        labels = LabelTargets.of(levels).of_log(log).known_labels()
        scores = self.fitted.expected(log.scores, codes, missing=False)
        request = log.request if self.config.optimise == "requests" else None
        rows = FitRows(0, scores, codes, labels, log.sample_weight, request=request)
        return TrainingRows(
            schema=schema,
            train=HeldBlocks([rows]),
            valid=HeldBlocks([rows.taken(slice(0))]),
            rows=log.rows,
            valid_rows=0,
            encoder=self.fitted.encoder,
            prevalence=log.prevalence(),
            weights=schema.weight_vector,
            seed=seed,
            device="cpu",
            on_event=lambda _: None,
            checkpoint=None,
        )
