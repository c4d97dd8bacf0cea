"""`harmonrank align`."""

__all__ = ["command"]

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from harmonrank.cli.parts.options import at_option, load_model, numbers, output, path_option
from harmonrank.cli.parts.table_options import Tables, table_name, table_option
from harmonrank.support.errors import UsageError

if TYPE_CHECKING:
    from dataclasses import replace

    import numpy as np

    from harmonrank.fusion import Method
    from harmonrank.support.table import Table

_LEVELS = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)


@click.command("align")
@click.argument("model", type=click.Path(path_type=Path))
@table_option("--data", required=True, help="Rows as they come; labels are not needed.")
@path_option("--like", metavar="MODEL|REGISTRY", help="The running model.")
@click.option("--like-at", metavar="NAME", help="The operating point that it runs at.")
@click.option(
    "--like-column",
    metavar="COLUMN|FORMULA",
    help="Or the running score: a column of the data, or a formula over its columns.",
)
@at_option
@output("Folder of the new model.")
@numbers
def command(
    model: Path,
    data: Tables,
    like: Path | None,
    like_at: str | None,
    like_column: str | None,
    at: str | None,
    out: Path,
    overwrite: bool,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Write MODEL with scores distributed like those of the running model.

    The ranking stays: a rising map, kept with the model, makes its fused scores, with the weights
    of the model or of --at, fall as those of the running model do on the same rows. So whatever
    reads scores, a threshold or a blend say, goes on as before when an experiment begins. Scores
    with other weights come as they are.
    """
    from harmonrank.cli.parts.show import Show
    from harmonrank.fusion.saved import MODEL
    from harmonrank.support.storage.files import check_output

    if (like is None) == (like_column is None):
        raise UsageError("Name what runs now: either --like MODEL or --like-column A.")
    if like is None and like_at is not None:
        raise UsageError("--like-at is a point of a model; name it with --like.")
    check_output(out, overwrite=overwrite, holds=MODEL)
    fitted = load_model(model)
    chosen = fitted if at is None else fitted.at(at)
    with Show(quiet=quiet, json_file=json_file) as show:
        running = _running(like, like_at, like_column, data)
        new = chosen.aligned(running, data)
        before, after = chosen.unaligned().score(data), new.score(data)
        # Weights that a point has in the model stay the point's.
        fitted.with_fitted(replace(fitted.fitted, maps=new.fitted.maps)).save(
            out, overwrite=overwrite
        )
        show.line(f"Aligned {fitted.name} on {len(after):,} rows of {table_name(data)}.")
        show.line(f"Wrote {out}.")
    scores = {"before": before, "aligned": after, "running": running}
    show.result(_table(scores), {"method": fitted.name, "model": str(out), **_numbers(scores)})


def _running(
    like: Path | None, like_at: str | None, column: str | None, data: Tables
) -> "np.ndarray":
    """Return the running score of each row."""
    from harmonrank.evaluation import Baseline
    from harmonrank.registry import Registry
    from harmonrank.registry.registry import SETTINGS

    if like is None:
        assert column is not None, "one of them is given"
        return Baseline.read(data, column).scores
    kept = (like / SETTINGS).is_file()
    found: Method = Registry(like).load() if kept else load_model(like)
    return (found if like_at is None else found.at(like_at)).score(data)


def _numbers(scores: "dict[str, np.ndarray]") -> dict[str, Any]:
    import numpy as np

    quantiles = {
        name: dict(zip(map(str, _LEVELS), np.quantile(values, _LEVELS).tolist(), strict=True))
        for name, values in scores.items()
    }
    distance = {name: _distance(scores[name], scores["running"]) for name in ("before", "aligned")}
    return {"rows": len(scores["running"]), "quantiles": quantiles, "ks": distance}


def _distance(one: "np.ndarray", other: "np.ndarray") -> float:
    """Return the largest distance of two distribution functions (Kolmogorov and Smirnov)."""
    import numpy as np

    places = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(each), places, "right") / len(each) for each in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def _table(scores: "dict[str, np.ndarray]") -> "Table":
    from harmonrank.support.table import Column, Table

    told = _numbers(scores)
    columns = (Column("quantile", ".0%"), *(Column(name, ".4g") for name in scores))
    rows = tuple(
        (level, *(told["quantiles"][name][str(level)] for name in scores)) for level in _LEVELS
    )
    note = (
        f"Largest distance of the distributions (KS): {told['ks']['before']:.4f} before, "
        f"{told['ks']['aligned']:.4f} aligned. The ranking is the same."
    )
    return Table(columns, rows, notes=(note,))
