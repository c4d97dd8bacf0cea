"""Estimator: how a method shows its options, prints, and is copied."""

__all__ = ["Estimator"]

import dataclasses
from copy import deepcopy
from inspect import Parameter, Signature
from typing import Any, ClassVar, NoReturn, Self, get_type_hints

from harmonrank.fusion.protocol import Traits
from harmonrank.support.errors import UsageError
from harmonrank.support.options import checked_options


class Estimator:
    """Takes the fields of its config as options, and prints those that differ from the default.

    A subclass shows its options to `help` and to completion. A copy has the same options and has
    learned the same.
    """

    Config: ClassVar[Any]
    """The frozen options, which can fit (`harmonrank.fusion.protocol.MethodLearner`)."""
    name: ClassVar[str]
    traits: ClassVar[Traits]

    def __init__(self, **options: Any) -> None:
        self.config = self.Config(**checked_options(self.name, self.Config, options))

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if dataclasses.is_dataclass(getattr(cls, "Config", None)):
            cls.name, cls.traits = cls.Config.name, cls.Config.traits
            cls.__signature__ = _signature(cls.Config)  # type: ignore[attr-defined]

    def _unfitted(self) -> UsageError:
        """Return the error of whoever asks for what only a fit tells."""
        return UsageError(f"This {self.name} is not fitted; call fit or load a saved model.")

    def __repr__(self) -> str:
        usual = self.Config()
        given = {f.name: getattr(self.config, f.name) for f in dataclasses.fields(self.config)}
        changed = [f"{k}={v!r}" for k, v in given.items() if v != getattr(usual, k)]
        return f"{type(self).__name__}({', '.join(changed)})"

    def __copy__(self) -> Self:
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = type(self).__new__(type(self))
        memo[id(self)] = copied
        copied.__dict__.update(deepcopy(self.__dict__, memo))
        return copied

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise UsageError(
            "A model is not pickled, as loading a pickle executes it; use `model.save(folder)` and "
            "`harmonrank.load(folder)`."
        )


def _signature(config: type) -> Signature:
    """Return the options of a config as keywords, with their types and defaults."""
    hints = get_type_hints(config)
    return Signature(
        [
            Parameter(
                field.name,
                Parameter.KEYWORD_ONLY,
                default=field.default
                if field.default_factory is dataclasses.MISSING
                else field.default_factory(),
                annotation=hints[field.name],
            )
            for field in dataclasses.fields(config)
        ]
    )
