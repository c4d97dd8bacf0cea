"""What the processes of a service share: a folder with settings, counters and a sample."""

__all__ = ["COUNTERS", "STATE", "new_state", "sample_form"]

from pathlib import Path

from harmonrank.data import ContextEncoder, Schema
from harmonrank.data.context import ContextForm
from harmonrank.fusion import Method
from harmonrank.serving.sample import RecentRows
from harmonrank.serving.settings import ServeConfig
from harmonrank.serving.shared import Counters
from harmonrank.support.storage.decoding import decode
from harmonrank.support.storage.files import read_json, write_json

COUNTERS = "counters"
STATE = "state"
"""Appears when all that the processes share is there."""
_FORM = "sample.json"


def new_state(
    folder: Path, config: ServeConfig, model: Method
) -> tuple[Counters, RecentRows | None]:
    """Write what workers read, and return what they share."""
    counters = Counters(folder / COUNTERS, config.workers)
    sample = None
    if config.recalibrate != "off":
        encoder = model.encoder
        form = {"schema": model.schema.to_dict(), "context": encoder.to_list()}
        write_json(folder / _FORM, form)
        sample = RecentRows(folder, model.schema, encoder, config.workers, config.sample_rows)
    (folder / STATE).touch()
    return counters, sample


def sample_form(folder: Path) -> tuple[Schema, ContextEncoder] | None:
    """Return the columns of the sample that a service keeps; None if it keeps none."""
    if not (folder / _FORM).is_file():
        return None
    parts = read_json(folder / _FORM)
    schema = Schema.from_dict(parts["schema"])
    form: ContextForm = decode(parts["context"], ContextForm, "context")
    return schema, ContextEncoder.from_form(form, schema.context)
