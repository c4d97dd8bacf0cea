"""`harmonrank export`."""

__all__ = ["command"]

from pathlib import Path

import click

from harmonrank.cli.parts.options import Show, path_option, shown
from harmonrank.cli.parts.verb import verb


@verb("export", example="harmonrank export model --onnx model.onnx")
@click.argument("model", metavar="MODEL|REGISTRY", type=click.Path(path_type=Path))
@path_option("--onnx", "out", required=True, metavar="FILE", help="The ONNX file to write.")
@click.option("--float32", is_flag=True, help="Score inputs are FP32 instead of FP64.")
@click.option(
    "--require-weights",
    is_flag=True,
    help="Make `weights` a required input, as ONNX Runtime for JavaScript needs.",
)
@click.option("--overwrite", is_flag=True, help="Replace the output if it exists.")
@shown
def command(
    model: Path, out: Path, float32: bool, require_weights: bool, overwrite: bool, show: Show
) -> None:
    """Write MODEL, or the current one of REGISTRY, as an ONNX file.

    Inputs are the score and context columns by their names, [n] each, and `weights`, which may be
    left out; outputs are `fused` and the probability of each objective. The file appears only if
    ONNX Runtime gives what the model gives, within 1e-5, on random rows and extreme ones.
    """
    from harmonrank.support.extras import needs_extras

    with needs_extras("harmonrank export"):
        from harmonrank.export import export_onnx

    kind = "float32" if float32 else "float64"
    made = export_onnx(
        model, out, score_type=kind, require_weights=require_weights, overwrite=overwrite
    )
    far = max(made.agreement.largest.values())
    show.result(
        f"Exported {made.about['harmonrank.method']} to {out} ({made.size:,} bytes); on "
        f"{made.agreement.rows:,} rows it differs by {far:.1g} at most.",
        {
            "output": str(out),
            "bytes": made.size,
            "metadata": made.about,
            "rows": made.agreement.rows,
            "largest_difference": made.agreement.largest,
        },
    )
