import json
import sys

import pytest

import harmonrank as hr

pytest.importorskip("plotly")


def compare(folder, *more):
    tables = [("--" + name, folder / f"{name}.parquet") for name in ("train", "valid", "test")]
    names = ("--schema", folder / "schema.toml", "--methods", "closed-form,prevalence-weights")
    return ("compare", *sum(tables, ()), *names, *more)


@pytest.fixture
def model(folder):
    schema = hr.Schema.read(folder / "schema.toml")
    hr.ClosedForm().fit(folder / "train.parquet", schema).save(folder / "m")
    return folder / "m"


def test_compare_writes_one_page_and_tells_where(run, folder):
    before = set(folder.iterdir())
    done = run(*compare(folder, "--report", folder / "r.html", "--seed", 3))
    assert done.code == 0, done
    assert f"Report: {folder / 'r.html'}" in done.err
    assert set(folder.iterdir()) - before == {folder / "r.html"}
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "2 fusions of buy, like" in page
    assert "<dt>seed</dt><dd>3</dd>" in page
    assert f"--report {folder / 'r.html'}" in page
    assert "Drift of scores" in page
    assert "Trade-offs" in page


def test_the_page_also_comes_from_models_of_an_earlier_run(run, folder):
    assert run(*compare(folder, "--runs", folder / "runs")).code == 0
    done = run(*compare(folder, "--runs", folder / "runs", "--report", folder / "r.html"))
    assert "kept from an earlier run" in done.err
    assert "Learned responses" in (folder / "r.html").read_text(encoding="utf-8")


def test_a_kept_model_that_cannot_be_read_costs_its_curves_alone(run, folder):
    assert run(*compare(folder, "--runs", folder / "runs")).code == 0
    (folder / "runs" / "closed-form" / "model.json").write_text("{}")
    done = run(*compare(folder, "--runs", folder / "runs", "--report", folder / "r.html"))
    assert done.code == 0, done
    assert "closed-form is without curves" in done.err
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert 'data-trace="prevalence-weights"' in page
    assert 'data-trace="closed-form"' not in page


def test_numbers_and_page_can_be_had_together(run, folder):
    done = run(*compare(folder, "--report", folder / "r.html", "--json", "-", "-q"))
    assert len(json.loads(done.out)["methods"]) == 2
    assert done.err == ""
    assert (folder / "r.html").exists()


def test_evaluate_writes_a_page_of_one_model(run, folder, model):
    done = run("evaluate", model, folder / "test.parquet", "--report", folder / "r.html")
    assert done.code == 0, done
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "closed-form on test.parquet" in page
    assert "Drift of scores" not in page
    assert ">Result</h2>" in page


def test_evaluate_shows_drift_beside_the_training_rows(run, folder, model):
    tables = (folder / "test.parquet", "--train", folder / "train.parquet")
    done = run("evaluate", model, *tables, "--report", folder / "r.html")
    assert done.code == 0, done
    assert "Drift of scores" in (folder / "r.html").read_text(encoding="utf-8")
    done = run("evaluate", model, *tables)
    assert done.code == 2
    assert "add --report FILE" in done.err


def test_a_saved_network_still_has_its_training_curve(run, folder):
    network = hr.HarmonRankPaper(epochs=2, buckets=8)
    schema = hr.Schema.read(folder / "schema.toml")
    network.fit(folder / "train.parquet", schema).save(folder / "net")
    assert len(hr.load(folder / "net").history) == 2
    options = (folder / "test.parquet", "--report", folder / "r.html")
    assert run("evaluate", folder / "net", *options).code == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert 'data-figure="training-gradient"' in page


def test_the_page_of_a_model_follows_the_weights(run, folder, model):
    options = ("--weights", "buy=9", "--report", folder / "r.html")
    assert run("evaluate", model, folder / "test.parquet", *options).code == 0
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert '<td class=number data-value="9.0">9</td>' in page


def test_plain_scores_and_labels_are_enough(run, folder):
    names = ("--scores", "p_buy", "--labels", "buy", "--methods", "harmonrank,closed-form")
    tables = ("--train", folder / "train.parquet", "--test", folder / "test.parquet")
    done = run("compare", *tables, *names, "--report", folder / "r.html")
    assert done.code == 0, done
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert ">Trade-offs</h2>" not in page
    assert ">How objectives relate</h2>" not in page


@pytest.mark.parametrize("verb", ["compare", "evaluate"])
def test_markdown_is_printed_for_a_pull_request(run, folder, model, verb):
    one = ("evaluate", model, folder / "test.parquet", "--format", "md")
    done = run(*(compare(folder, "--format", "md") if verb == "compare" else one))
    assert done.code == 0, done
    lines = done.out.splitlines()
    if verb == "compare":
        assert " is " in lines[0]  # the verdict
        lines = lines[2:]
    assert lines[0].startswith("| method |" if verb == "compare" else "| objective |")
    assert lines[1].startswith("|---|--:|")


def test_what_is_missing_is_said_before_any_work(run, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly", None)
    done = run(*compare(folder, "--report", folder / "r.html"))
    assert done.code == 2
    assert "pip install 'harmonrank[report]'" in done.err
    assert "closed-form AUC-sum" not in done.err


def test_a_report_that_cannot_be_written_is_refused_before_any_work(run, folder):
    done = run(*compare(folder, "--report", folder))
    assert done.code == 2
    assert "is a folder" in done.err
    assert "closed-form AUC-sum" not in done.err


def test_pictures_need_a_browser_and_say_so_before_any_work(run, folder, monkeypatch):
    monkeypatch.setenv("HARMONRANK_BROWSER", "no-such-browser")
    done = run(*compare(folder, "--figures", folder / "png"))
    assert done.code == 2
    assert "no-such-browser" in done.err
    assert "closed-form AUC-sum" not in done.err


def test_pictures_never_replace_a_folder_of_other_things(run, folder, monkeypatch):
    monkeypatch.setenv("HARMONRANK_BROWSER", "true")
    done = run(*compare(folder, "--figures", folder))
    assert done.code == 2
    assert "without figures.json" in done.err
