"""`harmonrank recalibrate`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.model_options import at_option, load_ranking, model_argument
from harmonrank.cli.parts.options import Show, output, shown
from harmonrank.cli.parts.table_options import Tables, table_argument, table_name
from harmonrank.cli.parts.verb import verb
from harmonrank.support.errors import UsageError


@verb(
    "recalibrate",
    example="harmonrank recalibrate model recent.parquet -o new\n"
    "harmonrank recalibrate model recent.parquet --like running -o new",
)
@model_argument
@table_argument("data")
@click.option(
    "--scores-changed",
    default="proven",
    show_default=True,
    metavar="A,B|all|proven",
    help="Scores of new upstream models, if you know: their columns, or all.",
)
@click.option(
    "--like",
    metavar="MODEL|REGISTRY|COLUMN|FORMULA",
    help="Instead give MODEL scores distributed like those of what runs now; its ranking stays.",
)
@click.option("--like-at", metavar="NAME", help="The operating point that the running model has.")
@at_option
@output("Folder of the new model.")
@shown
def command(
    model: Path,
    data: Tables,
    scores_changed: str,
    like: str | None,
    like_at: str | None,
    at: str | None,
    out: Path,
    overwrite: bool,
    show: Show,
) -> None:
    """Write MODEL again for upstream scores that have changed, or aligned with what runs now.

    DATA holds recent rows; labels are not needed. Use it when an upstream model was replaced, and
    fit again once enough labels have come in. The report says how far each score has moved,
    whether that looks like a replaced model, and how much the ranking changes.

    Only scores whose upstream models are proven to be others are corrected: by labels, if DATA has
    them all, and by the pattern across scores. Where chances moved, their scores stay.

    With --like a rising map, kept with the model, makes its fused scores, with the weights of the
    model or of --at, fall as those of the running model do on the same rows. So whatever reads
    scores, a threshold or a blend say, goes on as before when an experiment begins. Scores with
    other weights come as they are.
    """
    from harmonrank.evaluation import Alignment, Recalibrated, align, recalibration
    from harmonrank.fusion import load
    from harmonrank.fusion.saved import MODEL
    from harmonrank.support.storage.files import check_output

    if like is None and (like_at or at):
        raise UsageError("--at and --like-at are points of models that are aligned; add --like.")
    check_output(out, overwrite=overwrite, holds=MODEL)
    fitted = load(model)
    result: Recalibrated | Alignment
    if like is None:
        result = recalibration(fitted, data, scores=scores_changed)
    else:
        result = align(fitted, data, load_ranking(like, like_at), at=at)
    result.model.save(out, overwrite=overwrite)
    told, done = result.to_dict(), "Recalibrated" if like is None else "Aligned"
    show.line(f"{done} {fitted.name} on {told['rows']:,} rows of {table_name(data)}; wrote {out}.")
    show.result(result.to_table(), {"method": fitted.name, "model": str(out), **told})
