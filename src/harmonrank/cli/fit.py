"""`harmonrank fit`."""

__all__ = ["command"]

from pathlib import Path
from typing import Any

import click

from harmonrank.cli.parts import options
from harmonrank.cli.parts.column_options import ColumnChoice, column_options
from harmonrank.cli.parts.engine_options import EngineChoice, engine_options
from harmonrank.cli.parts.options import Show, shown
from harmonrank.cli.parts.table_options import Tables, learning_tables, memory_option
from harmonrank.cli.parts.verb import verb


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

    from harmonrank.evaluation import evaluate
    from harmonrank.fusion import method_class
    from harmonrank.fusion.saved import MODEL
    from harmonrank.model.linear.fading import fading_words
    from harmonrank.support.errors import DataError, ModelFileError, UsageError
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
        with engine.opened(for_states=model.traits.workers) as workers:
            model.fit(
                train, schema, **how, engine=workers, on_event=show.event, checkpoint=checkpoint
            )
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
    result = None
    try:
        result = None if valid is None else evaluate(model, valid, memory=memory)
    except (DataError, UsageError) as error:
        # The model is fitted and written: rows that cannot measure it are no failure.
        show.line(f"Not measured on the validation rows: {error}")
    health = getattr(model.state, "health", None)
    told = {
        "method": method,
        "model": str(out),
        "fit_seconds": seconds,
        "valid": result and result.to_dict(),
        "caution": result and (result.board.caution or None),
        "missing": training.missing and training.missing.to_dict(),
        "position": training.position and training.position.to_dict(),
        "rows": training.rows,
        "fitted_rows": training.fitted_rows,
        "blocks": training.blocks,
        "fading": fading,
        **({} if health is None else {"health": health.to_dict()}),
    }
    show.result(None if result is None else result.to_table(), told)
    for note in () if result is None else (*result.notes, *result.board.warnings):
        show.line(f"Note: {note}")


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
