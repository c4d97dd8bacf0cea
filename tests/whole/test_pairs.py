"""Two commands that write the same output at once: one is right, the other is right or told."""

import pytest

from verbs import arguments, content


def hold(nursery, place, verb, folder, pairs):
    """Run pairs; whoever ends with 0 has left the right output, whoever does not is told why."""
    code, errors = nursery.run(*arguments(place, verb, folder / "whole"))
    assert code == 0, errors
    expected = content(folder / "whole")
    for pair in range(pairs):
        where = folder / str(pair)
        more = ("--overwrite",) if pair % 2 and verb != "compare" else ()
        both = [nursery.start(*arguments(place, verb, where), *more) for _ in range(2)]
        ends = [process.wait() for process in both]
        assert min(code for code, _ in ends) == 0, ends
        for code, errors in ends:
            told = errors.startswith("Error: ") and len(errors.strip().splitlines()) == 1
            assert code == 0 or (code == 2 and told), ends
        assert content(where) == expected


def test_a_pair_that_writes_one_output_is_told_apart(nursery, place, tmp_path):
    hold(nursery, place, "score", tmp_path, pairs=2)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "pairs"),
    [("score", 30), ("fit", 30), ("compare", 10), ("import", 20), ("predict", 10)],
)
def test_100_pairs_are_told_apart(nursery, place_with_log, tmp_path, verb, pairs, record_property):
    hold(nursery, place_with_log, verb, tmp_path, pairs)
    record_property("pairs", pairs)
