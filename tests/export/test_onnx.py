"""An exported model gives what its source gives, in ONNX Runtime."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from check_method import SCHEMA, after_a_swap, planted, quick
from harmonrank.fusion import METHODS
from harmonrank.fusion.baselines.closed_form import ClosedForm
from harmonrank.fusion.baselines.formula_search import FormulaGrid
from harmonrank.fusion.method import changed
from harmonrank.model.terms.residual import CURVE_KNOTS, FINE_KNOTS
from harmonrank.registry import Guardrails, Registry
from harmonrank.support import UsageError
from harmonrank.support.errors import ExportError
from harmonrank.support.storage import sha256

pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from harmonrank.export import EXPORTED, TOLERANCE, export_onnx  # noqa: E402


def opened(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def exported(model, folder, **options):
    model.save(folder / "model", overwrite=True)
    export_onnx(folder / "model", folder / "model.onnx", overwrite=True, **options)
    return opened(folder / "model.onnx")


def run(session, model, rows, **more):
    columns = [*model.schema.score_columns, *model.schema.context]
    feeds = {name: rows[name].to_numpy() for name in columns}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds | more), strict=True))


def check_equal(session, model, rows):
    result = run(session, model, rows)
    np.testing.assert_allclose(result["fused"], model.score(rows), TOLERANCE, TOLERANCE)
    if model.traits.probabilities:
        for m, name in enumerate(model.schema.names):
            p = model.probabilities(rows)[:, m]
            np.testing.assert_allclose(result[name], p, 0, TOLERANCE)
    else:
        assert list(result) == ["fused"]


def strange(rows):
    """Return rows with contexts that no fit has seen, and scores at their ends."""
    rows = rows.with_columns(
        hour=pl.when(pl.col("request") % 3 == 0).then(10**12).otherwise("hour"),
        age=pl.when(pl.col("request") % 4 == 0).then(pl.lit("ageless")).otherwise("age"),
    )
    ends = pl.DataFrame({"p_buy": [0.0, 1.0, 0.0, 1.0], "p_like": [0.0, 1.0, 1.0, 0.0]})
    return pl.concat([ends.hstack(rows[:4].drop("p_buy", "p_like")).select(rows.columns), rows])


@pytest.mark.parametrize("name", EXPORTED)
def test_every_batch_size_gives_what_the_model_gives(name, tmp_path):
    model, rows = quick(name), strange(planted(800, seed=2))
    session = exported(model, tmp_path)
    assert [one.name for one in session.get_inputs()] == ["p_buy", "p_like", "hour", "age"]
    for size in (1, 7, rows.height):
        check_equal(session, model, rows[:size])
    assert {len(values) for values in run(session, model, rows[:0]).values()} == {0}


def test_all_methods_but_trees_can_be_exported():
    assert set(METHODS) - set(EXPORTED) == {"lightgbm"}


def test_a_model_fitted_with_values_is_exported_with_them(tmp_path):
    rows = planted(200, seed=2)
    model = hr.ClosedForm().fit(rows, replace(SCHEMA, value={"buy": 9}))
    session = exported(model, tmp_path)
    expected = 9 * model.probabilities(rows)[:, 0]
    np.testing.assert_allclose(run(session, model, rows)["fused"], expected, TOLERANCE)


@pytest.mark.parametrize("name", ["harmonrank", "logistic"])
def test_weights_are_an_input_that_may_be_left_out(name, tmp_path):
    model, rows = quick(name), planted(200, seed=2)
    session = exported(model, tmp_path)
    (optional,) = session.get_overridable_initializers()
    assert (optional.name, optional.shape) == ("weights", [2])
    result = run(session, model, rows, weights=np.array([0.5, 4.0]))["fused"]
    expected = model.score(rows, weights={"buy": 0.5, "like": 4.0})
    np.testing.assert_allclose(result, expected, TOLERANCE)
    assert abs(result / model.score(rows) - 1).max() > 0.1


def test_weights_may_be_an_input_that_must_be_given(tmp_path):
    model, rows = quick("closed-form"), planted(50, seed=2)
    session = exported(model, tmp_path, require_weights=True)
    assert [one.name for one in session.get_inputs()][-1] == "weights"
    weights = np.array([3.0, 0.5])
    result = run(session, model, rows, weights=weights)["fused"]
    wanted = model.score(rows, weights={"buy": 3.0, "like": 0.5})
    np.testing.assert_allclose(result, wanted, TOLERANCE)
    formula = FormulaGrid().fit(planted(300), SCHEMA)
    with pytest.raises(UsageError, match="cannot change weights after the fit; export it without"):
        exported(formula, tmp_path, require_weights=True)


def test_scores_may_be_float32(tmp_path):
    model = quick("closed-form")
    rows = planted(100, seed=2).with_columns(pl.col("p_buy", "p_like").cast(pl.Float32))
    session = exported(model, tmp_path, score_type="float32")
    assert session.get_inputs()[0].type == "tensor(float)"
    check_equal(session, model, rows)


SWITCHES = [
    {"buckets": None},
    {"buckets": 1},
    {"buckets": 300, "scale": "raw", "interpolate": False},
    {"buckets": 5, "scale": "quantile", "interpolate": True},
    {"self_attention": False},
    {"cross_attention": False},
    {"personalised": False},
    {"cross_attention": False, "personalised": False},
    {"gate": False, "linear": False},
]


@pytest.mark.parametrize("switches", SWITCHES, ids=str)
def test_every_switch_of_the_network_is_exported(switches, tmp_path):
    options = {"interpolate": False, "epochs": 1, "batch_rows": 500, "key_width": 4, "buckets": 9}
    model = hr.HarmonRankPaper(**{**options, **switches})
    model.fit(planted(), SCHEMA, valid=planted(500, seed=1))
    edges = np.arange(0, 301) / 300  # A score on an edge falls into the upper bucket.
    rows = planted(301, seed=2).with_columns(p_buy=edges, p_like=edges[::-1])
    check_equal(exported(model, tmp_path), model, rows)


@pytest.mark.parametrize("form", ["sum", "product", "rank"])
def test_every_form_of_a_formula_is_exported(form, tmp_path):
    tied = planted().with_columns(p_like=(pl.col("p_like") * 8).round() / 8)
    model = FormulaGrid(forms=(form,), trials=5).fit(tied, SCHEMA)
    rows = strange(planted(300, seed=2).vstack(tied.head(300)))
    check_equal(exported(model, tmp_path), model, rows)


def test_an_isotonic_calibration_is_exported(tmp_path):
    model = ClosedForm(calibration="isotonic").fit(planted(), SCHEMA)
    check_equal(exported(model, tmp_path), model, strange(planted(300, seed=2)))


def with_everything(model, knots=CURVE_KNOTS):
    """Return the default with all curves and surfaces, and a bent coordinate of one score."""
    heads, rng = model.state.heads, np.random.default_rng(0)
    result = heads.residual
    drawn = {
        name: 0.2 * rng.normal(size=getattr(result, name).shape)
        for name in ("linear", "value", "slope", "surface", "pair")
    }
    drawn["curve"] = 0.2 * rng.normal(size=(*result.curve.shape[:2], knots))
    residual = replace(result, **drawn, low=result.low * 0 - 2.0, high=result.high * 0 + 2.0)
    table = heads.coordinate.table.copy()
    table[0] = np.sort(rng.normal(size=table.shape[1]))
    normal = np.array([1.0, 0.0])
    coordinate = replace(heads.coordinate, table=table, normal=normal, below=normal + 1)
    heads = replace(heads, residual=residual, coordinate=coordinate)
    return changed(model, state=replace(model.state, heads=heads))


@pytest.mark.parametrize("knots", [CURVE_KNOTS, FINE_KNOTS])
def test_curves_surfaces_and_bent_coordinates_are_exported(knots, tmp_path):
    model = with_everything(quick("harmonrank"), knots)
    check_equal(exported(model, tmp_path), model, strange(planted(500, seed=2)))


def test_too_many_contexts_to_list_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("harmonrank.export.heads._MOST_NUMBERS", 10)
    with pytest.raises(UsageError, match=r"combinations of context .* more than the 10 .* serve"):
        exported(quick("harmonrank"), tmp_path)
    assert not (tmp_path / "model.onnx").exists()


@pytest.mark.parametrize("name", ["harmonrank", "closed-form", "harmonrank-paper"])
def test_a_recalibrated_model_is_exported(name, tmp_path):
    moved = after_a_swap(planted(2000, seed=3))
    model = quick(name).recalibrated(moved, scores="all")
    check_equal(exported(model, tmp_path), model, strange(moved[:500]))


def test_a_score_that_lost_its_spread_is_exported(tmp_path):
    dead = planted(2000, seed=3).with_columns(p_like=pl.lit(0.5))
    model = quick("closed-form").recalibrated(dead)
    check_equal(exported(model, tmp_path), model, strange(planted(100, seed=2)))


def test_fractions_and_columns_without_a_value_are_context_too(tmp_path):
    rng = np.random.default_rng(0)

    def changed(rows):
        ages = rng.normal(30, 9, rows.height)
        ages[0] = np.nan
        return rows.with_columns(age=ages, hour=pl.lit(None, pl.String))

    model = hr.HarmonRank().fit(changed(planted()), SCHEMA)
    rows = changed(planted(300, seed=2)).with_columns(hour=pl.lit("noon"))
    rows[1, "age"] = 1e300
    session = exported(model, tmp_path)
    assert [one.type for one in session.get_inputs()][2:] == ["tensor(string)", "tensor(double)"]
    check_equal(session, model, rows)


def test_whole_numbers_that_are_cut_into_parts_are_given_as_fractions(tmp_path):
    def changed(rows):
        hours = (rows["p_like"] * 3000).cast(pl.Int64)
        likes = np.random.default_rng(0).random(rows.height) < 0.5 + 0.4 * np.sin(
            hours.to_numpy() / 500
        )
        return rows.with_columns(hour=hours, like=pl.Series(likes.astype(np.uint8)))

    model, rows = hr.HarmonRank().fit(changed(planted(6000)), SCHEMA), changed(planted(seed=2))
    session = exported(model, tmp_path)
    assert [one.type for one in session.get_inputs()][2:] == ["tensor(double)", "tensor(string)"]
    check_equal(session, model, rows.with_columns(pl.col("hour").cast(pl.Float64)))


@pytest.mark.parametrize("method", [hr.HarmonRank(), ClosedForm()], ids=lambda method: method.name)
def test_one_objective_and_no_context(method, tmp_path):
    model = method.fit(planted(), hr.Schema({"buy": "p_buy"}))
    session = exported(model, tmp_path)
    check_equal(session, model, planted(50, seed=2))
    assert {len(values) for values in run(session, model, planted(5)[:0]).values()} == {0}


def test_the_metadata_names_columns_version_and_source(tmp_path):
    session = exported(quick("harmonrank"), tmp_path)
    about = session.get_modelmeta().custom_metadata_map
    assert about["harmonrank.method"] == "harmonrank"
    assert about["harmonrank.library"] == hr.__version__
    assert json.loads(about["harmonrank.scores"]) == {"buy": "p_buy", "like": "p_like"}
    context = json.loads(about["harmonrank.context"])
    assert {name: part["type"] for name, part in context.items()} == {"hour": "int64", "age": "str"}
    for name, sum_ in json.loads(about["harmonrank.checksums"]).items():
        assert sha256(tmp_path / "model" / name) == sum_
    assert json.loads(about["harmonrank.probabilities"]) is True
    other = exported(quick("formula-grid"), tmp_path)
    about = other.get_modelmeta().custom_metadata_map
    assert json.loads(about["harmonrank.probabilities"]) is False
    assert json.loads(about["harmonrank.weights_input"]) is False


def test_the_value_for_unknown_contexts_is_scored_as_a_null(tmp_path):
    model, rows = quick("harmonrank"), planted(50, seed=2)
    session = exported(model, tmp_path)
    about = session.get_modelmeta().custom_metadata_map
    unknown = {n: part["unknown"] for n, part in json.loads(about["harmonrank.context"]).items()}
    given = rows.with_columns(hour=pl.lit(unknown["hour"]), age=pl.lit(unknown["age"]))
    missing = rows.with_columns(hour=pl.lit(None, pl.Int64), age=pl.lit(None, pl.String))
    result = run(session, model, given)["fused"]
    np.testing.assert_allclose(result, model.score(missing), TOLERANCE)


def test_a_row_that_misses_a_score_gets_none(tmp_path):
    """ONNX has no average over what is missing, and no number is better than a wrong one."""
    for name in ("harmonrank", "closed-form", "formula-grid"):
        model, rows = quick(name), planted(20, seed=3)
        session = exported(model, tmp_path)
        lost = pl.Series(np.arange(20) % 4 == 1)
        holes = rows.with_columns(p_like=pl.when(lost).then(float("nan")).otherwise("p_like"))
        result, whole = (run(session, model, table) for table in (holes, rows))
        for output, values in result.items():
            np.testing.assert_array_equal(np.isnan(values), lost.to_numpy())
            np.testing.assert_array_equal(values[~lost], whole[output][~lost])


def test_a_registry_exports_its_current_version(tmp_path):
    registry = Registry.create(tmp_path / "registry", Guardrails(tolerance=0.5, calibration=1.0))
    registry.publish(quick("closed-form"))
    export_onnx(tmp_path / "registry", tmp_path / "model.onnx")
    about = opened(tmp_path / "model.onnx").get_modelmeta()
    assert (about.version, about.custom_metadata_map["harmonrank.version"]) == (1, "1")


def test_a_method_that_cannot_be_exported_says_so(tmp_path):
    pytest.importorskip("lightgbm")
    quick("lightgbm").save(tmp_path / "model")
    with pytest.raises(UsageError, match="lightgbm cannot be exported to ONNX; serve it with"):
        export_onnx(tmp_path / "model", tmp_path / "model.onnx")
    assert not (tmp_path / "model.onnx").exists()


def test_a_file_that_differs_from_its_model_is_not_written(tmp_path, monkeypatch):
    quick("closed-form").save(tmp_path / "model")
    monkeypatch.setattr(
        "harmonrank.export.export.exporter_of",
        lambda model: lambda model, inputs: inputs.scores * 1.001,
    )
    with pytest.raises(ExportError, match="differs from that of closed-form by .* nothing was"):
        export_onnx(tmp_path / "model", tmp_path / "model.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_name_cannot_stand_for_two_things(tmp_path):
    schema = hr.Schema({"fused": "p_buy"})
    ClosedForm().fit(planted().rename({"buy": "fused"}), schema).save(tmp_path / "model")
    with pytest.raises(UsageError, match="'fused' would name two inputs or outputs"):
        export_onnx(tmp_path / "model", tmp_path / "model.onnx")


EXPORT = """
import sys
from harmonrank.export import export_onnx
export_onnx(sys.argv[1], sys.argv[2])
print(*[name for name in ("torch", "harmonrank.paper.training") if name in sys.modules])
"""


def test_a_network_is_exported_without_pytorch(tmp_path):
    quick("harmonrank-paper").save(tmp_path / "model")
    command = [sys.executable, "-c", EXPORT, tmp_path / "model", tmp_path / "model.onnx"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert (tmp_path / "model.onnx").is_file()


def test_a_fit_for_requests_is_exported(tmp_path):
    rows = planted(2000, seed=1)
    model = hr.HarmonRank(optimise="requests").fit(rows, SCHEMA)
    session = exported(model, tmp_path)
    check_equal(session, model, strange(planted(500, seed=2)))
    result = run(session, model, rows, weights=np.array([2.0, 0.5]))["fused"]
    expected = model.score(rows, weights={"buy": 2.0, "like": 0.5})
    np.testing.assert_allclose(result, expected, TOLERANCE, TOLERANCE)


@pytest.mark.parametrize("name", ["harmonrank", "formula-grid"])
def test_an_aligned_score_is_exported_with_its_map(name, tmp_path):
    rows = planted(3000, seed=5)
    model = quick(name).aligned(quick("closed-form"), rows)
    session = exported(model, tmp_path)
    check_equal(session, model, rows)
    check_equal(session, model, strange(rows))
    if name == "harmonrank":
        # The map is of the model's weights; with others, scores come as they are.
        other = run(session, model, rows, weights=np.array([3.0, 1.0]))["fused"]
        np.testing.assert_allclose(other, quick(name).score(rows, weights={"buy": 3}), 1e-9)
