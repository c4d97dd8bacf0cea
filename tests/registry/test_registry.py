import shutil

import numpy as np
import polars as pl
import pytest

import harmonrank as hr
from harmonrank.registry import Guardrails, Registry
from harmonrank.support import DataError, ModelFileError, OutputError, UsageError
from logs import small_table


def test_what_is_published_is_current_and_scores_as_before(registry, fitted, table):
    version = registry.publish(fitted[0], table, window="2026-01", note="the first")
    assert (version.number, version.parent, version.refused) == (1, None, None)
    assert registry.current() == 1
    assert registry.version() == version
    assert registry.load().score(table).tolist() == fitted[0].score(table).tolist()
    assert version.metrics["auc"]["buy"] == fitted[0].evaluate(table).auc["buy"].estimate
    assert (version.window, version.note) == ("2026-01", "the first")


def test_versions_count_up_and_know_their_parent(registry, fitted):
    numbers = [(v.number, v.parent) for v in map(registry.publish, fitted)]
    assert numbers == [(1, None), (2, 1), (3, 2)]
    assert registry.numbers() == [1, 2, 3]
    assert [(move.version, move.by) for move in registry.history()] == [
        (n, "publish") for n in (1, 2, 3)
    ]


def test_rollback_goes_back_and_again_to_any_accepted_version(registry, fitted):
    for model in fitted:
        registry.publish(model)
    assert registry.rollback().number == registry.current() == 2
    assert registry.rollback().number == 3
    assert registry.rollback(1).number == registry.current() == 1
    assert registry.history()[-1].by == "rollback"
    with pytest.raises(UsageError, match=r"no version 9 in .* There are: 1, 2, 3"):
        registry.rollback(9)


def test_there_is_nothing_to_roll_back_to_at_first(registry, fitted):
    registry.publish(fitted[0])
    with pytest.raises(UsageError, match="never had another current version"):
        registry.rollback()


def test_prune_keeps_the_newest_the_current_and_its_predecessor(registry, fitted):
    for model in fitted * 2:
        registry.publish(model)
    registry.rollback(2)
    assert registry.prune(1) == [1, 3, 4, 5]
    assert registry.numbers() == [2, 6]
    assert registry.publish(fitted[0]).number == 7
    assert sorted(p.name for p in (registry.path / "versions").iterdir()) == ["2", "6", "7"]
    with pytest.raises(UsageError, match="`keep` must be"):
        registry.prune(0)


def test_a_worse_version_is_refused_and_kept_with_the_reason(registry, fitted, table):
    registry.publish(fitted[0], table)
    wrong = table.with_columns(buy=1 - pl.col("buy"), like=1 - pl.col("like"))
    worse = hr.ClosedForm(calibration="logistic").fit(wrong, fitted[0].schema)
    version = registry.publish(worse, table)
    assert "auc buy: AUC within requests changes by -0." in version.refused
    assert registry.current() == 1
    assert registry.version(2) == version
    assert [c.name for c in version.checks if c.passed is False][:2] == ["auc buy", "auc like"]
    with pytest.raises(UsageError, match=r"Version 2 was refused \(auc buy"):
        registry.rollback(2)


def test_evidence_says_who_has_to_prove(tmp_path, fitted, table):
    # An interval around the tolerance proves neither harm nor safety.
    for evidence, refused in (("harm", False), ("safety", True)):
        rules = Guardrails(tolerance=0.005, evidence=evidence, calibration=None)
        registry = Registry.create(tmp_path / evidence, rules)
        registry.publish(fitted[0], table)
        assert (registry.publish(fitted[1], table).refused is not None) == refused


def test_tolerances_of_an_objective_win(tmp_path, fitted, table):
    rules = Guardrails(tolerance=0.0, evidence="safety", calibration=None)
    strict = Registry.create(tmp_path / "strict", rules)
    loose = Guardrails(0.0, {"buy": 0.5, "like": 0.5}, "safety", calibration=None)
    mild = Registry.create(tmp_path / "mild", loose)
    for registry in (strict, mild):
        registry.publish(fitted[0], table)
    assert strict.publish(fitted[1], table).refused is not None
    assert mild.publish(fitted[1], table).refused is None


@pytest.mark.parametrize("positives", [1, 40])
def test_a_single_positive_is_no_evidence_against_a_version(tmp_path, fitted, table, positives):
    """However it is ranked: how much positives differ is not known of one of them."""
    better, worse = (model.score(table) for model in fitted[:2])
    against = np.argsort(worse.argsort().argsort() - better.argsort().argsort())[:positives]
    labels = np.zeros(table.height, np.int64)
    labels[against] = 1
    registry = Registry.create(tmp_path / "few", Guardrails(tolerance=0.0, calibration=None))
    rows = table.with_columns(buy=pl.Series(labels))
    registry.publish(fitted[0], rows)
    refused = registry.publish(fitted[1], rows).refused
    assert ("auc buy" in (refused or "")) == (positives == 40)


def test_a_miscalibrated_version_is_refused(registry, fitted, table):
    rare = table.with_columns(buy=pl.col("buy") * (pl.int_range(pl.len()) % 10 == 0))
    version = registry.publish(fitted[0], rare)
    assert version.refused.startswith("calibration buy: mean probability 0.2")
    assert registry.current() is None


def test_few_positives_that_chance_explains_refuse_no_version(tmp_path, fitted, table):
    """Of 25 rows with probability 0.2, one positive is a bad draw and no bad model."""
    few = table[:25].with_columns(buy=(pl.int_range(pl.len()) == 0).cast(pl.Int64))
    registry = Registry.create(tmp_path / "few", Guardrails(calibration=0.25))
    version = registry.publish(fitted[0], few)
    assert version.refused is None


def test_scores_on_another_scale_are_refused(registry, fitted, table):
    registry.publish(fitted[0], table)
    heavy = hr.Schema(fitted[0].schema.objectives, fitted[0].schema.context, weights={"buy": 50})
    version = registry.publish(hr.ClosedForm().fit(small_table(2000), heavy), table)
    assert "fused median: median moves by" in version.refused
    assert "fused width: width × " in version.refused


def test_other_columns_are_refused(registry, fitted, table, schema):
    registry.publish(fitted[0], table)
    other = hr.ClosedForm().fit(table, schema.subset(["buy"]))
    version = registry.publish(other, table)
    assert "must be those of the current version, buy from p_buy, like from p_like" in (
        version.refused
    )


def test_a_context_column_of_another_kind_is_refused(registry, fitted, table):
    registry.publish(fitted[0], table)
    renamed = table.with_columns(hour=pl.col("hour").cast(pl.String))
    version = registry.publish(hr.ClosedForm().fit(renamed, fitted[0].schema))
    assert version.refused == (
        "columns: context column 'hour' must hold numbers, as in the current version; got text"
    )
    assert registry.current() == 1


def test_labels_can_be_required(tmp_path, fitted, table):
    registry = Registry.create(tmp_path / "r", Guardrails(require_labels=True))
    version = registry.publish(fitted[0], table.drop("buy", "like"))
    assert version.refused == "labels: no labelled table was given, so no AUC was compared"
    assert registry.current() is None


def test_a_recalibrated_version_is_compared_with_what_scores_were(registry, table, schema):
    rows = small_table(4000, seed=5)
    model = hr.HarmonRank().fit(rows, schema)
    registry.publish(model, rows)
    logit = (pl.col("p_buy") / (1 - pl.col("p_buy"))).log()
    moved = rows.with_columns(p_buy=1 / (1 + (-(2 * logit + 2)).exp())).drop("buy", "like")
    assert registry.publish(model, moved).refused is not None
    version = registry.publish(model.recalibrated(moved, scores="p_buy"), moved, recalibrated=True)
    assert version.refused is None
    assert version.recalibrated
    assert registry.current() == 3


def test_a_damaged_version_is_refused_by_name(registry, fitted):
    registry.publish(fitted[0])
    file = registry.folder(1) / "model" / "weights.safetensors"
    raw = bytearray(file.read_bytes())
    raw[-1] ^= 1
    file.write_bytes(raw)
    with pytest.raises(ModelFileError, match=r"weights.safetensors' does not match its checksum"):
        registry.load()
    (registry.folder(1) / "version.json").write_text('{"checksum": "", "content": {}}')
    with pytest.raises(ModelFileError, match=r"Version 1 is damaged: .*version.json' does not"):
        registry.version()


def test_golden_rows_find_a_model_that_scores_otherwise(registry, fitted):
    from harmonrank.registry.version import golden_rows

    golden = golden_rows(fitted[0])
    assert golden.refusal(fitted[0]) is None
    assert "golden rows" in golden.refusal(fitted[1])
    assert np.isfinite(golden.fused).all()


def test_diff_says_what_differs_and_how_both_rank(registry, fitted, table):
    registry.publish(fitted[0], table)
    registry.publish(fitted[1], table)
    diff = registry.diff(1, 2, table)
    first, second = diff.facts["buy"]["prevalence"]
    assert first == fitted[0].prevalence[0]
    assert second == fitted[1].prevalence[0]
    assert 0.5 < diff.correlation < 1
    a, b = (model.evaluate(table).auc["buy"].estimate for model in fitted[:2])
    assert diff.auc["buy"].estimate == pytest.approx(b - a)
    assert "prevalence" in str(diff)
    assert registry.diff(1, 1).facts == {}


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("x")
    with pytest.raises(OutputError, match="a folder of something else"):
        Registry.create(tmp_path / "precious")
    with pytest.raises(DataError, match=r"not a registry.*registry init"):
        Registry(tmp_path / "precious")


def test_guardrails_of_a_registry_can_be_changed_and_its_versions_stay(registry, fitted):
    registry.publish(fitted[0])
    with pytest.raises(OutputError, match="exists already"):
        Registry.create(registry.path)
    changed = Registry.create(registry.path, Guardrails(tolerance=0.5), overwrite=True)
    assert changed.guardrails.tolerance == 0.5
    assert changed.current() == 1


def test_an_empty_registry_says_how_to_fill_it(registry):
    with pytest.raises(UsageError, match=r"no current version; publish one with"):
        registry.load()


def test_a_copied_registry_works_where_it_is(registry, fitted, table, tmp_path):
    registry.publish(fitted[0])
    shutil.copytree(registry.path, tmp_path / "copy")
    assert Registry(tmp_path / "copy").load().score(table).shape == (600,)
