"""Options: how many there are, where else they may stand, and that none is lost."""

import json
from importlib import import_module
from pathlib import Path

import click
import pytest

import harmonrank as hr
from harmonrank.cli.parts.verb import option_key
from harmonrank.support import UsageError

DOCS = Path(__file__).parents[2] / "docs" / "settings.md"
LAB = ("lab", "simulate")
MOST_OF_PRODUCT, MOST_OF_LAB = 260, 122


def commands(group, path=()):
    """Yield the words and the command of every verb that is no group itself."""
    with click.Context(group) as context:
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from commands(command, (*path, name))
            else:
                yield (*path, name), command


VERBS = dict(commands(import_module("harmonrank.cli.main").harmonrank))
NAMES = [" ".join(words) for words in VERBS]


def options_of(verb):
    return [param for param in verb.params if isinstance(param, click.Option)]


def test_the_product_and_the_laboratory_have_few_options():
    of_lab = sum(len(options_of(verb)) for words, verb in VERBS.items() if words[0] in LAB)
    of_product = sum(len(options_of(verb)) for words, verb in VERBS.items() if words[0] not in LAB)
    assert of_product <= MOST_OF_PRODUCT
    assert of_lab <= MOST_OF_LAB


def test_the_page_lists_every_key_that_is_no_option():
    rows = [
        f"| `[{'.'.join(words)}]` | `{option_key(option)}` | {option.help} |"
        for words, verb in VERBS.items()
        for option in verb.settings
    ]
    text = DOCS.read_text(encoding="utf-8")
    assert "\n".join(rows) in text, "\n".join(rows)


@pytest.mark.parametrize("words", VERBS, ids=NAMES)
def test_no_command_keeps_the_last_of_two_values_in_silence(words):
    verb = VERBS[words]
    for option in options_of(verb):
        if not (option.multiple or option.is_flag):
            name = option.opts[-1]
            with pytest.raises(UsageError, match=f"^{option.opts[0]} is given twice; give it once"):
                verb.make_context(words[-1], [name, *("1",) * option.nargs] * 2)


@pytest.fixture
def fit(run, folder):
    """Return a function that fits with some settings and gives the schema and the numbers."""

    def command(text, *more):
        (folder / "settings.toml").write_text(text, encoding="utf-8")
        out = folder / "m"
        tables = ("--train", folder / "train.parquet", "--schema", folder / "schema.toml")
        done = run(
            *("fit", *tables, "--settings", folder / "settings.toml", "-o", out, "--overwrite"),
            *more,
        )
        return done, hr.load(out) if done.code == 0 else None

    return command


SETTINGS = """
[fit]
method = "closed-form"
weights = { buy = 2 }
context = ["hour"]
set = ["calibration=isotonic"]
quiet = true

[serve]
queue = 3
"""


def test_a_settings_file_stands_for_what_the_command_line_does_not_say(fit):
    done, model = fit(SETTINGS)
    assert (done.code, done.err) == (0, "")
    assert (model.name, model.schema.weights, model.schema.context) == (
        *("closed-form", {"buy": 2}),
        ("hour",),
    )
    assert model.config.calibration == "isotonic"
    _, model = fit(SETTINGS, "--weights", "buy=3", "--method", "prevalence-weights", "--set", "x=1")
    assert model is None
    _, model = fit('[fit]\nmethod = "closed-form"', "--method", "prevalence-weights")
    assert model.name == "prevalence-weights"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[fti]\nmethod = 3", "[fti] is no verb. Did you mean 'fit'?"),
        ("[fit]\nmethd = 3", "[fit] has no option 'methd'. Did you mean 'method'?"),
        ("fit = 3", "fit must be a table, [fit]."),
        ("[fit", "cannot be read as"),
        ('[fit]\nseed = "many"', "'many' is not a valid integer"),
        ("[fit]\nsettings = 3", "[fit] has no option 'settings'"),
        ("[fit]\nengine-log = 3", "engine-log must be true or false. Got 3."),
    ],
)
def test_a_setting_that_is_none_is_one_sentence(fit, text, sentence):
    done, _ = fit(text)
    assert done.code == 2
    assert sentence in done.err


def test_the_verbs_of_a_group_have_tables_of_their_own(run, tmp_path):
    file = tmp_path / "s.toml"
    file.write_text('[registry.init]\nset = ["tolerance=0.5"]\n[registry.list]\nformat = "md"\n')
    more, place = ("--settings", file), tmp_path / "r"
    done = run("registry", "init", place, *more, "--json", "-")
    assert json.loads(done.out)["guardrails"]["tolerance"] == 0.5
    assert "| version |" in run("registry", "list", place, *more).out


def test_a_key_that_is_no_option_says_where_it_belongs(run, folder):
    verbs = ("serve", "--queue"), ("score", "--missing"), ("simulate", "--rate")
    for verb, option in (*verbs, ("stream", "--chunk")):
        done = run(verb, folder, option, "3")
        assert done.code == 2
        assert f"{option} is a key of the settings file: write `{option[2:]} = …`" in done.err
        assert f"under [{verb}] there, and add --settings FILE." in done.err


def test_an_option_that_is_given_twice_adds_up_or_is_refused(run, folder):
    fit = ("fit", "--train", folder / "train.parquet", "--method", "closed-form", "-q")
    columns = ("--scores", "p_buy", "--scores", "p_like", "--labels", "buy", "--labels", "like")
    twice = ("--weights", "buy=2", "--weights", "like=3", "--context", "hour", "--context", "age")
    scales = ("--scale", "p_buy=any", "--scale", "p_like=percent")
    done = run(*fit, *columns, *twice, *scales, "-o", folder / "m")
    assert done.code == 0, done
    schema = hr.load(folder / "m").schema
    assert schema.weights == {"buy": 2, "like": 3}
    assert schema.context == ("hour", "age")
    assert schema.scale == {"p_buy": "any", "p_like": "percent"}
    for words, sentence in (
        (("--weights", "buy=2", "--weights", "buy=3"), "--weights names 'buy' twice"),
        (("--seed", "1", "--seed", "2"), "--seed is given twice; give it once."),
        (("--set", "a=1", "--set", "a=2"), "--set gives 'a' twice; give it once."),
    ):
        done = run(*fit, *columns, *words, "-o", folder / "n")
        assert (done.code, sentence in done.err) == (2, True), done


@pytest.mark.parametrize(
    ("verb", "place"),
    [
        ("align", "recalibrate MODEL DATA --like"),
        ("backfill", "stream --backfill FROM TO"),
        ("bench", "harmonrank lab bench"),
        ("ab", "harmonrank lab ab"),
        ("split", "compare LOG --split time"),
        ("warm", "serve MODEL --warm"),
    ],
)
def test_a_verb_that_is_no_more_says_where_its_work_is_done(run, verb, place):
    done = run(verb, "model")
    assert done.code == 2
    assert f"There is no verb '{verb}' any more" in done.err
    assert place in done.err
