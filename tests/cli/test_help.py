import pytest

VERBS = ["demo", "simulate", "fit", "score", "evaluate", "compare", "bench"]


def test_help_lists_every_verb_and_fits_a_terminal(run):
    done = run("--help")
    assert done.code == 0
    assert max(map(len, done.out.splitlines())) <= 80
    for verb in VERBS:
        assert f"  {verb} " in done.out


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_and_takes_json_and_quiet(run, verb):
    for flag in ("-h", "--help"):
        done = run(verb, flag)
        assert done.code == 0
        assert "--json FILE" in done.out
        assert "--quiet" in done.out


def test_no_verb_at_all_shows_the_help_as_an_error(run):
    done = run()
    assert done.code == 2
    assert "Verbs:" in done.err + done.out
