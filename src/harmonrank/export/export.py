"""Export: a saved model as one ONNX file, which is checked before it appears."""

__all__ = ["Exported", "export_onnx", "mapped_scores", "weighted_parts"]

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import harmonrank
from harmonrank.export.check import TOLERANCE, Agreement, check_export, unknown_of
from harmonrank.export.exporters import exporter_of
from harmonrank.export.graph import Graph, Value, interpolate
from harmonrank.export.inputs import WEIGHTS, Inputs, kinds_of, logits_of
from harmonrank.fusion import Method
from harmonrank.fusion.fitted import ScoreMap
from harmonrank.fusion.saved import checksums
from harmonrank.model.requests.request_weights import RequestWeights
from harmonrank.registry.target import load_target, registry_of
from harmonrank.registry.version import MODEL_FOLDER
from harmonrank.serving.runtime import FUSED
from harmonrank.support.errors import UsageError
from harmonrank.support.logistic import SMALLEST_PROBABILITY
from harmonrank.support.storage.files import check_output, new_file


def weighted_parts(fit: RequestWeights, p: Value) -> Value:
    """Return κ_m(z) p_m, (rows, M); see `RequestWeights`."""
    graph, M = p.graph, len(fit.mean)
    z = (logits_of(p, SMALLEST_PROBABILITY) - fit.centre) / fit.unit
    z = graph.op("Min", graph.op("Max", z, fit.low), fit.high)
    pairs = [(j, k) for j in range(M) for k in range(j + 1)]
    first, second = (np.array(numbers) for numbers in zip(*pairs, strict=True))
    products = z.columns(first) * z.columns(second)
    linear, quadratic = fit.terms[:, 1 : 1 + M], fit.terms[:, 1 + M :]
    kappa = z @ np.ascontiguousarray(linear.T) + products @ np.ascontiguousarray(quadratic.T)
    return (kappa + fit.terms[:, 0]) * p


def mapped_scores(model: Method, fused: Value, weights: Value | None = None) -> Value:
    """Return fused scores, (rows,), after the model's score maps.

    Args:
        model: Perhaps aligned, with several weightings.
        fused: The method's own scores.
        weights: The input with the objective weights; None if they cannot change.
    """
    mapped = fused
    for each in model.fitted.maps:
        if weights is None:
            return _mapped(each.curve, fused)
        off = fused.graph.op("Abs", weights - each.weights)
        same = fused.graph.op("LessOrEqual", off.sum(0), np.array(0.0))
        mapped = fused.graph.op("Where", same, _mapped(each.curve, fused), mapped)
    return mapped


def _mapped(each: ScoreMap, fused: Value) -> Value:
    """Return the piecewise linear map of each score; it goes on straight beyond its ends."""
    graph, (first, last) = fused.graph, each.slopes
    inside = interpolate(fused.new_axis(1), [each.x], [each.y]).sum(1)
    below = graph.op("Min", fused - each.x[0], np.array(0.0)) * first
    above = graph.op("Max", fused - each.x[-1], np.array(0.0)) * last
    return inside + below + above


@dataclass(frozen=True)
class Exported:
    """A file that was written.

    Attributes:
        about: Its metadata.
        agreement: How closely it agrees with the model.
        size: Of the file, in bytes.
    """

    about: dict[str, str]
    agreement: Agreement
    size: int


def export_onnx(
    target: str | Path,
    output: str | Path,
    *,
    score_type: str = "float64",
    require_weights: bool = False,
    overwrite: bool = False,
) -> Exported:
    """Write a saved model, or the current one of a registry, as an ONNX file.

    Args:
        target: The folder of a saved model or of a registry.
        output: The file to write.
        score_type: Of the score inputs, 'float64' or 'float32'; context, weights and outputs are
            the same for both.
        require_weights: Let `weights` be an input that must be given, for runtimes that cannot
            change an input with a default, such as those of JavaScript.
        overwrite: Replace the file if it exists.

    Raises:
        UsageError: The method cannot be exported.
        ExportError: ONNX Runtime does not give what the model gives.
    """
    check_output(output, overwrite=overwrite)
    if score_type not in ("float32", "float64"):
        raise UsageError(f"`score_type` must be 'float32' or 'float64'. Got '{score_type}'.")
    (model, version), registry = load_target(target), registry_of(target)
    folder = registry.folder(int(version)) / MODEL_FOLDER if registry else Path(target)
    graph = _graph_of(model, score_type, require_weights)
    about = _about(model, version) | {
        "harmonrank.weights_required": json.dumps(require_weights),
        "harmonrank.checksums": json.dumps(checksums(folder)),
    }
    made = graph.model(
        model.name,
        about,
        producer_name="harmonrank",
        producer_version=harmonrank.__version__,
        model_version=int(version) if registry else 0,
    )
    onnx.checker.check_model(made, full_check=True)
    serialized = made.SerializeToString(deterministic=True)
    agreement = check_export(serialized, model, score_type)
    with new_file(output, overwrite=overwrite) as partial:
        partial.write_bytes(serialized)
    return Exported(about, agreement, len(serialized))


def _graph_of(model: Method, score_type: str, require_weights: bool) -> Graph:
    """Return the graph of a model."""
    export, schema = exporter_of(model), model.schema
    schema.require_plain("An ONNX file")
    has = model.traits.probabilities
    if require_weights and not has:
        raise UsageError(
            f"{model.name} cannot change weights after the fit; export it without "
            "--require-weights."
        )
    outputs = [FUSED, *(schema.names if has else ())]
    inputs = [*schema.score_columns, *schema.context, *([WEIGHTS] if has else [])]
    _refuse_shared_names(inputs, outputs)
    graph = Graph([*inputs, *outputs])
    columns = Inputs(graph, model, score_type)
    value = export(model, columns)
    # The average over what is missing is no part of the graph: no score is better than a wrong one.
    lost = columns.missing.new_axis(1) if has else columns.missing
    value = graph.op("Where", lost, np.array(np.nan), value)
    if not has:
        graph.output(FUSED, mapped_scores(model, value))
        return graph
    weights = graph.optional_input(WEIGHTS, model.fuser.weights().counted, required=require_weights)
    own = getattr(model.state, "request_weights", None)
    if own is None:
        parts = value * (weights / (model.prevalence * (1 - model.prevalence)))
    else:
        parts = weighted_parts(own, value) * weights
    graph.output(FUSED, mapped_scores(model, parts.sum(1), weights))
    for m, name in enumerate(schema.names):
        graph.output(name, graph.op("Gather", value, np.array(m), axis=1))
    return graph


def _refuse_shared_names(inputs: Sequence[str], outputs: Sequence[str]) -> None:
    """Refuse a name of two inputs or outputs, which ONNX does not allow."""
    names = [*inputs, *outputs]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"'{name}' would name two inputs or outputs of the ONNX file; rename that column "
                "or objective and fit again."
            )


def _about(model: Method, version: str) -> dict[str, str]:
    schema, has = model.schema, model.traits.probabilities
    context = {
        name: {"type": kind, "unknown": None if kind == "float64" else unknown}
        for name, kind in kinds_of(model).items()
        for unknown in [unknown_of(model.fitted.encoder, name, kind)]
    }
    parts: dict[str, Any] = {
        "scores": dict(schema.objectives),
        "context": context,
        "weights": dict(zip(schema.names, model.fuser.weights().counted.tolist(), strict=True)),
        "weights_input": has,
        "probabilities": has,
        "prevalence": dict(zip(schema.names, model.prevalence.tolist(), strict=True)),
        "tolerance": TOLERANCE,
    }
    words = {"method": model.name, "version": version, "library": harmonrank.__version__}
    parts = words | {name: json.dumps(part) for name, part in parts.items()}
    return {f"harmonrank.{name}": part for name, part in parts.items()}
