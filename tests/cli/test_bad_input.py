"""Every mistake a user can make: one clear sentence, exit code 2, nothing half-written."""

import hashlib
import json

import pandas as pd
import polars as pl
import pytest


def files(folder):
    return {p.relative_to(folder): p.stat().st_size for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def refuse(run, folder):
    """Return a function that checks that a command is refused with a sentence and no traces."""

    def command(*arguments, sentence):
        before = files(folder)
        done = run(*arguments)
        assert done.code == 2, done
        assert done.out == ""
        assert sentence in done.err
        assert "Traceback" not in done.err
        message = done.err.strip()
        assert len(message.splitlines()) == 1 or message.startswith("Usage:")
        assert message.startswith(("Error: ", "Usage: "))
        assert message.endswith((".", "?", "?)"))
        assert files(folder) == before

    return command


@pytest.fixture
def fit(refuse, folder):
    """Return a function that checks that a fit is refused."""

    def command(*more, sentence, train="train.parquet", schema="schema.toml"):
        columns = () if schema is None else ("--schema", folder / schema)
        usual = (("--method", "closed-form"), ("-o", folder / "m"))
        options = sum((pair for pair in usual if pair[0] not in more), columns)
        refuse("fit", "--train", folder / train, *options, *more, sentence=sentence)

    return command


@pytest.fixture
def model(run, folder):
    """Return a saved model."""
    done = run(
        *("fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml"),
        *("--method", "closed-form", "-o", folder / "model", "--quiet"),
    )
    assert done.code == 0, done
    return folder / "model"


def change(folder, name="train.parquet", **columns):
    """Write a table again with some columns changed."""
    pl.read_parquet(folder / name).with_columns(**columns).write_parquet(folder / name)


def at(rows, value, column):
    """Return the column with a value at some rows."""
    return pl.when(pl.int_range(pl.len()).is_in(rows)).then(value).otherwise(column)


# Columns and values


def test_missing_column(fit, folder):
    pl.read_parquet(folder / "train.parquet").rename({"p_buy": "p_bui"}).write_parquet(
        folder / "train.parquet"
    )
    fit(sentence="train.parquet' has no column 'p_buy'. Did you mean 'p_bui'?")


def test_missing_context_column_when_scoring(refuse, folder, model):
    pl.read_parquet(folder / "test.parquet").drop("age").write_parquet(folder / "test.parquet")
    refuse(
        *("score", model, folder / "test.parquet", "-o", folder / "out.parquet"),
        sentence="test.parquet' has no column 'age'.",
    )


def test_scores_that_are_text(fit, folder):
    change(folder, p_buy=pl.col("p_buy").cast(pl.String))
    fit(sentence="'p_buy' of '", schema="schema.toml")
    fit(sentence="must hold numbers in [0, 1]. Got type String; convert it first.")


@pytest.mark.parametrize(
    ("value", "text"),
    [(float("nan"), "nan"), (float("inf"), "inf"), (1.5, "1.5"), (-0.25, "-0.25"), (None, "null")],
)
def test_score_that_is_no_probability(fit, folder, value, text):
    change(folder, p_like=at([41, 99, 500], value, "p_like"))
    fit(
        "--missing",
        "error",
        sentence=f"must lie in [0, 1]. Got {text} in row 41 (counted from 0), and 3 such rows in "
        "all; drop or repair them.",
    )


@pytest.mark.parametrize("value", [2, -1, 0.5])
def test_label_that_is_neither_0_nor_1(fit, folder, value):
    change(folder, buy=at([7], value, "buy"))
    fit(sentence=f"Label column 'buy' of '{folder / 'train.parquet'}' must be 0 or 1. Got {value}")


def test_objective_without_a_positive(fit, refuse, folder, model):
    for name in ("train", "test"):
        change(folder, f"{name}.parquet", like=pl.lit(0))
    sentence = "Objective 'like' has no positive label among the 600 "
    fit(sentence=f"{sentence}training rows")
    refuse("evaluate", model, folder / "test.parquet", sentence=f"{sentence}evaluated rows")
    tables = ("--train", folder / "valid.parquet", "--test", folder / "test.parquet")
    columns = ("--schema", folder / "schema.toml", "--json", folder / "c.json")
    refuse("compare", *tables, *columns, sentence=f"{sentence}test rows")


def test_context_of_another_type_than_in_training(refuse, folder, run):
    for name in ("train", "valid"):
        change(folder, f"{name}.parquet", hour=pl.col("hour").cast(pl.Float64) + 0.5)
    change(folder, "test.parquet", hour=pl.col("hour").cast(pl.String))
    done = run(
        *("fit", "--train", folder / "train.parquet", "--schema", folder / "schema.toml"),
        *("--method", "harmonrank-paper", "--set", "epochs=1", "-o", folder / "net", "-q"),
    )
    assert done.code == 0, done
    refuse(
        *("evaluate", folder / "net", folder / "test.parquet"),
        sentence="Context column 'hour' was number in training. Got type String; convert it",
    )


# Files


@pytest.mark.parametrize("name", ["e.parquet", "e.csv", "e.csv.gz", "e.arrow"])
def test_empty_file(fit, folder, name):
    (folder / name).touch()
    fit(train=name, sentence=f"{name}' is empty (0 bytes); expected a")


@pytest.mark.parametrize("name", ["e.parquet", "e.csv"])
def test_file_without_rows(fit, folder, name):
    nothing = pl.read_parquet(folder / "train.parquet").clear()
    nothing.write_csv(folder / name) if name == "e.csv" else nothing.write_parquet(folder / name)
    fit(train=name, sentence=f"{name}' has no rows; expected at least one.")


def test_missing_file(fit):
    fit(train="nowhere.parquet", sentence="nowhere.parquet'; check its name.")


def test_file_of_an_unknown_kind(fit, folder):
    (folder / "t.xlsx").write_text("x")
    fit(train="t.xlsx", sentence="t.xlsx' has no known ending; expected one of .parquet")


@pytest.mark.parametrize("share", [0.001, 0.25, 0.6, 0.99])
@pytest.mark.parametrize("verb", ["fit", "compare", "score", "evaluate"])
def test_truncated_parquet(refuse, fit, folder, model, share, verb):
    name = "train.parquet" if verb == "fit" else "test.parquet"
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[: max(1, int(len(whole) * share))])
    sentence = "it may be truncated or of another kind, so write it again."
    if verb == "fit":
        fit(sentence=sentence)
    elif verb == "compare":
        columns = ("--schema", folder / "schema.toml", "--methods", "closed-form")
        tables = ("--train", folder / "train.parquet", "--test", folder / name)
        refuse("compare", *tables, *columns, "--json", folder / "c.json", sentence=sentence)
    else:
        out = ("-o", folder / "out.parquet") if verb == "score" else ()
        refuse(verb, model, folder / name, *out, sentence=sentence)


# Names


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--scores p_buy,p_buy --labels buy,like", "The score column 'p_buy' is named twice"),
        ("--scores p_buy,p_like --labels buy,buy", "--labels names 'buy' twice; each must be na"),
        ("--scores p_buy,p_like --labels buy", "--scores and --labels must name as many columns."),
        ("", "Name the columns: --schema FILE, or --scores A,B with --labels A,B"),
        ("--scores p_buy --labels buy --context hour,buy", "Column 'buy' cannot be both a label"),
    ],
)
def test_wrong_columns(fit, folder, options, sentence):
    (folder / "schema.toml").rename(folder / "elsewhere.toml")
    fit(*options.split(), schema=None, sentence=sentence)


def test_columns_must_be_named_in_one_way(fit):
    fit("--scores", "p_buy", "--labels", "buy", sentence="Give either --schema or --scores with")


def test_two_score_columns_of_one_name_in_a_csv_header(fit, folder):
    frame = pl.read_parquet(folder / "train.parquet").to_pandas()
    pd.concat([frame, frame[["p_buy"]]], axis=1).to_csv(folder / "t.csv", index=False)
    fit(train="t.csv", sentence="t.csv' has 2 columns named 'p_buy'; expected one, so rename")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('[objectives]\nbuy = "p_buy"\nlike = "p_buy"', "The score column 'p_buy' is named twice"),
        ('contxt = ["hour"]\n[objectives]\nbuy = "p_buy"', "no part 'contxt'. Did you mean 'cont"),
        ("{'objectives': 3", "s.toml' cannot be read as a TOML schema"),
        (None, "There is no schema file '"),
    ],
)
def test_wrong_schema_file(fit, folder, text, sentence):
    if text is not None:
        (folder / "s.toml").write_text(text)
    fit(schema="s.toml", sentence=sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bay=2", "`weights` names an unknown objective 'bay'. Did you mean 'buy'?"),
        ("buy", "--weights takes pairs such as buy=2,like=1. Got 'buy'."),
        ("buy=two", "--weights takes pairs such as buy=2,like=1. Got 'buy=two'."),
        ("buy=1,buy=2", "--weights names 'buy' twice"),
        ("buy=nan", "The weight of 'buy' must be a finite number. Got nan."),
        ("buy=0,like=0", "At least one objective needs a weight other than 0."),
    ],
)
def test_wrong_weights(fit, refuse, folder, model, text, sentence):
    fit("--weights", text, sentence=sentence)
    refuse("evaluate", model, folder / "test.parquet", "--weights", text, sentence=sentence)


# Methods, worlds, verbs


def test_unknown_method(fit, refuse, folder):
    sentence = "There is no method 'closed-fom'. Did you mean 'closed-form'?"
    fit("--method", "closed-fom", sentence=sentence)
    refuse(
        *("compare", "--train", folder / "train.parquet", "--test", folder / "test.parquet"),
        *("--schema", folder / "schema.toml", "--methods", "closed-form,closed-fom"),
        sentence=sentence,
    )


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ("calibratoin=isotonic", "closed-form has no option 'calibratoin'. Did you mean 'calibr"),
        ("calibration=platt", "must be 'logistic' or 'isotonic'. Got 'platt'."),
        ("calibration", "--set takes NAME=VALUE, such as epochs=5. Got 'calibration'."),
    ],
)
def test_wrong_option_of_a_method(fit, setting, sentence):
    fit("--set", setting, sentence=sentence)


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        (
            "epochs=lots",
            "Option 'epochs' of harmonrank-paper must be a whole number from 1 to 2,147,483,647 or "
            "null. Got 'lots'.",
        ),
        ("epochs=0", "'epochs' of harmonrank-paper must be a whole number from 1 to"),
        ("width=-3", "'width' of harmonrank-paper must be a whole number from 1 to 1,024. Got -3."),
        ("width=100000", "must be a whole number from 1 to 1,024. Got 100000."),
        ("buckets=0", "'buckets' of harmonrank-paper must be a whole number from 1 to 1,000,000"),
        ("weight_decay=-1", "'weight_decay' of harmonrank-paper must be a number from 0 to"),
        ("learning_rate=NaN", "'learning_rate' of harmonrank-paper must be a number above 0"),
        ("learning_rate=1e999", "'learning_rate' of harmonrank-paper must be a number above 0"),
    ],
)
def test_wrong_option_of_a_network(fit, setting, sentence):
    fit("--method", "harmonrank-paper", "--set", setting, sentence=sentence)


def test_device_that_is_not_there(fit):
    fit("--device", "warp-drive", sentence="--device warp-drive cannot be used: ")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("simulate elife -o w", "Did you mean 'elive'?"),
        ("demo --world elife", "'elife'"),
        ("simulate elive --objectives bay -o w", "has no objective 'bay'. Did you mean 'buy'?"),
        ("simulate elive --drift nan -o w", "--drift must be a finite number. Got nan."),
        ("simulate elive --rows 3 -o w", "3 is not in the range"),
        ("fti", "There is no verb 'fti'. Did you mean 'fit'?"),
        ("simulate --rosw 3", "--rosw"),
    ],
)
def test_wrong_world_verb_or_option(refuse, folder, monkeypatch, command, sentence):
    monkeypatch.chdir(folder)
    refuse(*command.split(), sentence=sentence)


# Saved models


def test_missing_model(refuse, folder):
    refuse(
        *("evaluate", folder / "nothing", folder / "test.parquet"),
        sentence="There is no saved model '",
    )


def test_model_of_a_newer_format(refuse, folder, model):
    document = json.loads((model / "model.json").read_text()) | {"format": 99}
    (model / "model.json").write_text(json.dumps(document))
    sums = json.loads((model / "checksums.json").read_text())
    sums["model.json"] = hashlib.sha256((model / "model.json").read_bytes()).hexdigest()
    (model / "checksums.json").write_text(json.dumps(sums))
    refuse(
        *("score", model, folder / "test.parquet", "-o", folder / "out.parquet"),
        sentence="model' has model format 99, written by harmonrank",
    )


@pytest.mark.parametrize("name", ["model.json", "weights.safetensors", "checksums.json"])
def test_model_with_a_flipped_byte(refuse, folder, model, name):
    damaged = bytearray((model / name).read_bytes())
    damaged[len(damaged) // 2] ^= 4
    (model / name).write_bytes(damaged)
    for verb, out in (("score", ("-o", folder / "out.parquet")), ("evaluate", ())):
        refuse(verb, model, folder / "test.parquet", *out, sentence="damaged")


# Outputs


def test_output_that_exists(fit, refuse, folder, model):
    (folder / "m").mkdir()
    sentence = "exists already; choose another name or pass --overwrite"
    fit(sentence=sentence)
    refuse("simulate", "elive", "--rows", 10, "-o", folder / "m", sentence=sentence)
    refuse("demo", "--rows", 1000, "-o", folder / "m", sentence=sentence)
    (folder / "out.parquet").write_text("mine")
    refuse(
        *("score", model, folder / "test.parquet", "-o", folder / "out.parquet"), sentence=sentence
    )


@pytest.mark.parametrize("parent", ["file", "/proc/self"])
def test_output_that_cannot_be_written(fit, refuse, folder, model, parent):
    (folder / "file").touch()
    parent = folder / parent
    sentence = "cannot be written: "
    fit("-o", parent / "m", sentence=sentence)
    fit("--json", parent / "x.json", sentence=sentence)
    refuse("simulate", "elive", "--rows", 10, "-o", parent / "w", sentence=sentence)
    refuse(
        *("score", model, folder / "test.parquet", "-o", parent / "o.parquet"), sentence=sentence
    )
    refuse(
        *("evaluate", model, folder / "test.parquet", "--json", parent / "x.json"),
        sentence=sentence,
    )


def test_overwrite_never_takes_a_folder_that_is_not_ours(fit, refuse, folder, model):
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.tex").write_text("ten years")
    fit("-o", folder / "mine", "--overwrite", sentence="without model.json, so it is not over")
    fit("--json", folder / "mine", sentence="mine' is a folder; choose the name of a file.")
    refuse(
        *("simulate", "elive", "--rows", 10, "-o", model, "--overwrite"),
        sentence="without schema.toml, so it is not overwritten",
    )


# Ours


def test_a_mistake_of_ours_is_called_ours_and_exits_with_1(run, folder, monkeypatch):
    def explode(*_):
        raise ZeroDivisionError("we forgot zero")

    monkeypatch.setattr("harmonrank.fusion.baselines.closed_form.ClosedFormConfig.fit", explode)
    before = files(folder)
    options = ("--method", "closed-form", "-o", folder / "m", "--schema", folder / "schema.toml")
    done = run("fit", "--train", folder / "train.parquet", *options)
    assert done.code == 1
    assert "Internal error: ZeroDivisionError: we forgot zero" in done.err
    assert "This is our mistake; HARMONRANK_DEBUG=1 shows where it happened." in done.err
    assert files(folder) == before
    monkeypatch.setenv("HARMONRANK_DEBUG", "1")
    with pytest.raises(ZeroDivisionError, match="we forgot zero"):
        run("fit", "--train", folder / "train.parquet", *options)
