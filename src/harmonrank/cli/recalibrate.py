"""`harmonrank recalibrate`."""

__all__ = ["command"]

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from harmonrank.cli.parts.options import Show, output, shown
from harmonrank.cli.parts.table_options import Tables, table_argument, table_name

if TYPE_CHECKING:
    from harmonrank.data import Log
    from harmonrank.fusion import Method

_SHOWN_ROWS = 100_000
_SAME = 0.9995


@click.command("recalibrate")
@click.argument("model", type=click.Path(path_type=Path))
@table_argument("data")
@output("Folder of the new model.")
@shown
def command(model: Path, data: Tables, out: Path, overwrite: bool, show: Show) -> None:
    """Write MODEL again for upstream scores that have changed.

    DATA holds recent rows with the new scores; labels are not needed. Use it when an upstream
    model was replaced, and fit again once enough labels have come in. The report says how far each
    score has moved, whether that looks like a replaced model, and how much the ranking changes.
    """
    from harmonrank.data import read_log
    from harmonrank.fusion import load
    from harmonrank.fusion.saved import MODEL
    from harmonrank.support.storage.files import check_output

    check_output(out, overwrite=overwrite, holds=MODEL)
    fitted = load(model)
    log = read_log(data, fitted.schema, labels=False, sample_weight=True)
    drift, changed = fitted.drift(log), fitted.recalibrated(log)
    agreement = _agreement(fitted, changed, log.sampled(_SHOWN_ROWS))
    changed.save(out, overwrite=overwrite)
    show.line(
        f"Recalibrated {fitted.name} on {drift.rows:,} rows of {table_name(data)}; wrote {out}."
    )
    table, known = drift.to_table(), agreement == agreement
    said = (
        f"The new model ranks these rows as the old one does: Spearman's ρ {agreement:.3f}."
        if known and agreement > _SAME
        else f"It orders these rows differently: Spearman's ρ {agreement:.3f} with the old one."
    )
    show.result(
        replace(table, notes=(*table.notes, *[said] * known)),
        {
            "method": fitted.name,
            "model": str(out),
            "rank_correlation": agreement if known else None,
            **drift.to_dict(),
        },
    )


def _agreement(before: "Method", after: "Method", rows: "Log") -> float:
    """Return Spearman's ρ between the fused scores of both models."""
    import numpy as np

    from harmonrank.metrics import spearman

    return float(spearman(np.column_stack([before.score(rows), after.score(rows)]))[0, 1])
