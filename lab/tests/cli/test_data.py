import json
from pathlib import Path

import pytest

from harmonrank_lab.upstream.logs import ImportedLog
from raw_logs import log_line, write_kuairand

SLICE = Path(__file__).parents[4] / "shared" / "data" / "kuairand27k-slice"


def test_import_says_what_it_wrote(run, tmp_path):
    lines = [log_line(i, duration_ms=0) for i in range(40)]
    raw = write_kuairand(tmp_path / "raw", lines=lines)
    done = run("lab", "data", "import", "kuairand", raw, "-o", tmp_path / "out", "--json", "-")
    assert done.code == 0, done
    assert "Wrote 20 train, 10 valid, 10 test rows" in done.err
    assert "divided by time_ms, by whole seconds." in done.err
    assert "40 × duration_ms is 0: null." in done.err
    assert json.loads(done.out)["rows"] == {"train": 20, "valid": 10, "test": 10}


def test_wanted_rows_reach_the_import(run, tmp_path):
    raw = write_kuairand(tmp_path / "raw")
    rows = ("--train-rows", 9, "--valid-rows", 5, "--test-rows", 3)
    assert run("lab", "data", "import", "kuairand", raw, "-o", tmp_path / "out", *rows).code == 0
    assert ImportedLog.open(tmp_path / "out").rows == {"train": 9, "valid": 5, "test": 3}


def test_an_import_is_replaced_only_on_request(run, tmp_path):
    command = ("lab", "data", "import", "kuairand", write_kuairand(tmp_path / "raw"), "-o")
    assert run(*command, tmp_path / "out").code == 0
    assert "exists already" in run(*command, tmp_path / "out").err
    assert run(*command, tmp_path / "out", "--overwrite").code == 0
    done = run(*command, tmp_path / "raw", "--overwrite")
    assert "is a folder without log.toml, so it is not overwritten" in done.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("kuairant",), "There is no importer 'kuairant'. Did you mean 'kuairand'?"),
        (("kuairand",), "holds no KuaiRand log: expected log_standard_*.csv"),
        (("tenrec",), "Download Tenrec from https://tenrec0.github.io, where its licence must be"),
    ],
)
def test_mistakes_get_a_sentence(run, tmp_path, arguments, sentence):
    kind, *options = arguments
    done = run("lab", "data", "import", kind, tmp_path, "-o", tmp_path / "out", *options)
    assert done.code == 2
    assert sentence in done.err.replace("\n", " ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("kind", "key", "sentence"),
    [
        ("kuairand", "long-view = 3", "long-view does not apply to kuairand; leave it out."),
        ("tenrec", "no-random = true", "no-random does not apply to tenrec; leave it out."),
    ],
)
def test_keys_of_other_logs_are_refused(run, tmp_path, kind, key, sentence):
    keys = f"[lab.data.import]\n{key}"
    done = run("lab", "data", "import", kind, tmp_path, "-o", tmp_path / "out", settings=keys)
    assert (done.code, sentence in done.err) == (2, True)


def test_simulated_logs_are_imported(run, tmp_path):
    for kind in ("kuairand", "tenrec"):
        size = ("--users", 60, "--items", 30, "--rows", 3000)
        raw, out = tmp_path / kind, tmp_path / f"{kind}_log"
        done = run("lab", "simulate", kind, *size, "-o", raw, "--json", "-")
        assert done.code == 0, done
        assert json.loads(done.out)["rows"] == 3000
        assert "Wrote 3,000 rows of 60 users and 30 items" in done.err
        assert run("lab", "data", "import", kind, raw, "-o", out).code == 0
        assert sum(ImportedLog.open(out).rows.values()) == 3000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("elive",), "'elive' is not one of 'kuairand', 'tenrec'."),
        (("kuairand", "--drift", 1), "No such option '--drift'."),
        (("kuairand", "--file", "x"), "--file does not apply to the world 'kuairand'"),
        (("tenrec", "--file", "QK-vidio.csv"), "Did you mean 'QK-video.csv'?"),
    ],
)
def test_options_of_other_worlds_are_refused(run, tmp_path, arguments, sentence):
    done = run("lab", "simulate", *arguments, "-o", tmp_path / "out")
    assert done.code == 2
    assert sentence in done.err


@pytest.mark.skipif(not SLICE.is_dir(), reason="the slice is not here")
def test_the_real_slice_is_imported_with_its_caveats(run, tmp_path):
    done = run("lab", "data", "import", "kuairand", SLICE, "-o", tmp_path / "out")
    assert done.code == 0, done
    assert "The log has no tab, is_rand, profile_stay_time: left out of the rows" in done.err
    assert "no result on it is a KuaiRand benchmark number" in done.err
    log = ImportedLog.open(tmp_path / "out")
    assert sum(log.rows.values()) == 33_485
    positives = {
        o: sum(p[o] for p in log.manifest["positives"].values()) for o in log.columns.objectives
    }
    assert positives["is_like"] == 27_212
    assert positives["is_click"] == 21_972
    assert log.manifest["oddities"]["duration_ms is 0: null"] > 0.18 * 33_485
