"""`harmonrank fit`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts import options
from harmonrank.cli.parts.column_options import ColumnChoice, column_options
from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import Show, shown
from harmonrank.cli.parts.table_options import Tables, learning_tables, memory_option
from harmonrank.cli.parts.verb import verb

if TYPE_CHECKING:
    from harmonrank.fusion import Method, Quality


@verb("fit", example="harmonrank fit --train train.parquet --schema schema.toml -o model")
@learning_tables("early stopping")
@column_options
@options.method_option("--method", "harmonrank", "A way to fuse")
@options.settings_option("An option of the method")
@options.seed_option
@click.option("--device", default="cpu", show_default=True, help="Where a network is trained.")
@click.option("--restart", is_flag=True, help="Forget the checkpoint of an interrupted fit.")
@memory_option
@options.output("Folder of the model.")
@engine_options
@shown
def command(
    train: Tables,
    valid: Tables | None,
    columns: ColumnChoice,
    method: str,
    settings: tuple[str, ...],
    seed: int,
    device: str,
    restart: bool,
    memory: str | None,
    out: Path,
    overwrite: bool,
    engine: EngineChoice,
    show: Show,
) -> None:
    """Fit one model and write it to a folder.

    A fit that was interrupted goes on from its checkpoint when the command is repeated. A parquet
    table that --memory cannot hold is read in blocks. With --engine ray the blocks of the default,
    logistic and closed-form and the trials of a formula are the work of workers; other methods are
    fitted in this process.
    """
    from time import perf_counter

    from harmonrank.fusion import method_class
    from harmonrank.fusion.saved import MODEL
    from harmonrank.model.linear.fading import fading_words
    from harmonrank.support.errors import ModelFileError
    from harmonrank.support.options import checked_device
    from harmonrank.support.storage.files import check_output

    schema = columns.schema(train, quiet=show.quiet)
    model = method_class(method)(**options.parse_settings(settings))
    checked_device(device, "--device")
    target = check_output(out, overwrite=overwrite, holds=MODEL)
    checkpoint = target.with_name(f"{target.name}.checkpoint")
    _refuse_foreign(checkpoint)
    if restart:
        checkpoint.unlink(missing_ok=True)
    how: dict[str, Any] = {"valid": valid, "seed": seed, "device": device, "memory": memory}
    started = perf_counter()
    try:
        with engine.used(for_states=model.traits.workers):
            model.fit(train, schema, **how, on_event=show.event, checkpoint=checkpoint)
    except ModelFileError as error:
        raise ModelFileError(f"{error} The option --restart deletes it.") from None
    seconds = perf_counter() - started
    model.save(out, overwrite=overwrite)
    checkpoint.unlink(missing_ok=True)
    show.line(f"Fitted {method} in {seconds:.1f} s; wrote {out}.")
    training = model.training
    assert training is not None
    for sentence in training.sentences(model.name):
        show.line(sentence)
    fading = model.explain().get("fading")
    if fading is not None:
        show.line(fading_words(fading))
    quality = _measured(show, model, valid, memory)
    caution = None if quality is None else _caution(model, valid, memory)
    if caution is not None:
        show.line(caution)
    health = getattr(model.state, "health", None)
    told = {
        "method": method,
        "model": str(out),
        "fit_seconds": seconds,
        "valid": quality and quality.to_dict(),
        "caution": caution,
        "missing": training.missing and training.missing.to_dict(),
        "position": training.position and training.position.to_dict(),
        "rows": training.rows,
        "fitted_rows": training.fitted_rows,
        "blocks": training.blocks,
        "fading": fading,
        **({} if health is None else {"health": health.to_dict()}),
    }
    show.result(None if quality is None else quality.to_table(), told)


def _refuse_foreign(checkpoint: Path) -> None:
    """Refuse to fit where something else has the name of the checkpoint, which is deleted."""
    from harmonrank.support.errors import DataError, OutputError
    from harmonrank.support.storage.arrays import array_header

    if not checkpoint.exists():
        return
    try:
        ours = checkpoint.is_file() and "fingerprint" in array_header(checkpoint)
    except DataError:
        ours = False
    if not ours:
        raise OutputError(
            f"'{checkpoint}', the name of the checkpoint, is something else, so it is neither "
            "read nor deleted; move it, or choose another name for the model."
        )


def _caution(model: "Method", valid: Any, memory: str | None) -> str | None:
    """Say which objective rules the order of the validation rows, if one does."""
    from harmonrank.evaluation.table_rows import TableRows
    from harmonrank.fusion.influence import influence_of

    found = influence_of(model, TableRows.read(valid, model.schema, memory).log.counted())
    return None if found is None else found.caution()


def _measured(show: Any, model: "Method", valid: Any, memory: str | None) -> "Quality | None":
    """Return the quality on the validation rows, if there are any that serve."""
    from harmonrank.evaluation.evaluate import quality_on
    from harmonrank.support.errors import DataError

    if valid is None:
        return None
    try:
        quality, drawn = quality_on(model, valid, memory)
    except DataError as error:
        # The model is fitted and written: rows that cannot measure it are no failure.
        show.line(f"Not measured on the validation rows: {error}")
        return None
    if drawn:
        show.line(f"Validation rows. {drawn}")
    return quality
