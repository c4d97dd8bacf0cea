"""State: the JSON parts of saved models, as types that loading decodes them to."""

__all__ = ["ContextState", "NoState", "ReferenceState"]

import msgspec

from harmonrank.data import ContextEncoder, Schema
from harmonrank.data.context import ContextForm


class NoState(msgspec.Struct, forbid_unknown_fields=True):
    """All that was learned is in the arrays."""


class ContextState(msgspec.Struct, forbid_unknown_fields=True):
    """The values of the context columns; the rest is in the arrays."""

    context: ContextForm

    def encoder(self, schema: Schema) -> ContextEncoder:
        """Return the encoder of the schema's context columns."""
        return ContextEncoder.from_form(self.context, schema.context)


class ReferenceState(ContextState, forbid_unknown_fields=True):
    """What the scores of the fit looked like, and of the recalibration if there was one."""

    recalibrated: bool
