"""Stored running heads: their arrays and the few numbers beside these."""

__all__ = ["RunningState", "arrays_of_running", "running_of_arrays", "state_of_running"]

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from harmonrank.model.density.density_sums import DensitySums, density_sums_arrays
from harmonrank.model.linear.head_columns import HeadColumns
from harmonrank.model.linear.head_quadratic import HeadQuadratic, head_quadratic_arrays
from harmonrank.model.linear.heads import Heads, head_arrays
from harmonrank.model.running.reservoir import Reservoir, reservoir_arrays
from harmonrank.model.running.running_heads import FadingSums, RunningHeads
from harmonrank.model.stored_heads import arrays_of_heads, declared_heads, heads_of_arrays
from harmonrank.support.errors import DataError
from harmonrank.support.storage.arrays import Array, read_arrays

_MISSING = 1e9  # Stands for a missing coordinate, as no stored number is NaN.
_HEADS = ("theta", "precision", "shared")
_MOST_MEMBERS = 16

_Hours = Annotated[float, Meta(gt=0, le=1e9)]


class RunningState(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is stored beside the arrays; a half-life of None is one without an end."""

    half_lives: Annotated[list[_Hours | None], Meta(min_length=1, max_length=_MOST_MEMBERS)]
    likelihoods: list[Annotated[float, Meta(ge=-1e12, le=0)]]
    masses: list[Annotated[float, Meta(gt=0, le=1e15)]]
    chosen: Annotated[int, Meta(ge=0, lt=_MOST_MEMBERS)]
    replaced: bool
    waiting: Annotated[int, Meta(ge=0)]
    time: Annotated[float, Meta(ge=-1e9, le=1e9)]
    most: Annotated[int, Meta(ge=1)]
    seen: Annotated[int, Meta(ge=0)]
    threshold: Annotated[float, Meta(ge=-1e12, le=1e12)] | None


def state_of_running(running: RunningHeads) -> RunningState:
    """Return the numbers beside the arrays."""
    lives = [None if np.isinf(m.half_life) else m.half_life for m in running.members]
    return RunningState(
        half_lives=lives,
        likelihoods=[float(m.likelihood) for m in running.members],
        masses=[float(m.mass) for m in running.members],
        chosen=running.chosen,
        replaced=running.replaced,
        waiting=running.waiting,
        time=running.time,
        most=running.reservoir.most,
        seen=running.reservoir.seen,
        threshold=float(running.reservoir.threshold) if running.reservoir.thinned else None,
    )


def arrays_of_running(running: RunningHeads) -> dict[str, np.ndarray]:
    """Return all arrays but the residual, which the model that is served has."""
    arrays = {f"fitted/{name}": array for name, array in arrays_of_heads(running.fitted).items()}
    for number, member in enumerate(running.members):
        parts = {f"density/{n}": getattr(member.density, n) for n in density_sums_arrays(1, 1)}
        parts |= {f"past/{n}": getattr(member.past, n) for n in head_quadratic_arrays(1, 1)}
        parts |= {n: getattr(member, n) for n in (*_HEADS, "positives")}
        arrays |= {f"{number}/{name}": array for name, array in parts.items()}
    rows = {n: getattr(running.reservoir, n) for n in reservoir_arrays(1, 1)}
    rows["places"] = np.nan_to_num(rows["places"], nan=_MISSING)
    return arrays | {f"reservoir/{name}": array for name, array in rows.items()}


def running_of_arrays(path: Path, state: RunningState, heads: Heads) -> RunningHeads:
    """Read running heads.

    Args:
        path: The file of their arrays.
        state: The numbers beside these.
        heads: Those that they serve, which have their residual.

    Raises:
        DataError: The arrays are not those of this state.
    """
    count, M, slots = len(state.half_lives), len(heads.theta), heads.slots
    if not len(state.likelihoods) == len(state.masses) == count > state.chosen:
        raise DataError("the numbers of half-lives, likelihoods and masses must be the same")
    arrays = read_arrays(path, _declared(M, slots, count))
    members = []
    for number, (half_life, likelihood, mass) in enumerate(
        zip(state.half_lives, state.likelihoods, state.masses, strict=True)
    ):
        part = _under(arrays, f"{number}/")
        _check_codes(part["density/contexts"], slots)
        members.append(
            FadingSums(
                half_life=np.inf if half_life is None else half_life,
                density=DensitySums(**_under(part, "density/")),
                past=HeadQuadratic(**_under(part, "past/")),
                mass=mass,
                positives=part["positives"],
                likelihood=likelihood,
                **{name: part[name] for name in _HEADS},
            )
        )
    rows = _under(arrays, "reservoir/")
    _check_codes(rows["codes"], slots)
    rows["places"] = np.where(rows["places"] == np.float32(_MISSING), np.nan, rows["places"])
    threshold = -np.inf if state.threshold is None else state.threshold
    return RunningHeads(
        fitted=heads_of_arrays(slots, _under(arrays, "fitted/")),
        replaced=state.replaced,
        members=tuple(members),
        chosen=state.chosen,
        reservoir=Reservoir(state.most, **rows, threshold=threshold, seen=state.seen),
        residual=heads.residual,
        waiting=state.waiting,
        time=state.time,
    )


def _declared(M: int, slots: tuple[int, ...], members: int) -> dict[str, Array]:
    declared = {f"fitted/{n}": array for n, array in declared_heads(M, slots).items()}
    for number in range(members):
        density = density_sums_arrays(M, len(slots), f"contexts {number}")
        past = head_quadratic_arrays(M, HeadColumns(M).total(slots))
        declared |= {f"{number}/density/{n}": array for n, array in density.items()}
        declared |= {f"{number}/past/{n}": array for n, array in past.items()}
        declared |= {f"{number}/{n}": array for n, array in head_arrays(M, slots).items()}
        declared[f"{number}/positives"] = Array((M,), low=0.0)
    rows = reservoir_arrays(M, len(slots))
    return declared | {f"reservoir/{n}": array for n, array in rows.items()}


def _under(arrays: Mapping[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    return {n.removeprefix(prefix): a for n, a in arrays.items() if n.startswith(prefix)}


def _check_codes(codes: np.ndarray, slots: tuple[int, ...]) -> None:
    if codes.size and (codes.max(axis=0) >= np.array(slots)).any():
        raise DataError("a context code is beyond those of its feature")
