import pytest

from harmonrank_lab.events import StepEnded
from harmonrank_lab.pipeline.pipeline import Steps


@pytest.fixture
def made(tmp_path):
    """Return a function that runs two steps and says which of them did any work."""

    def run(text="a", extra="x"):
        worked, events = [], []
        steps = Steps(tmp_path, ("first", "second"), events.append)

        def first():
            worked.append("first")
            (tmp_path / "one").mkdir(exist_ok=True)
            (tmp_path / "one" / "file").write_text(text.lower())
            return {"length": len(text)}

        def second():
            worked.append("second")
            (tmp_path / "two").write_text(extra)

        digest, facts = steps.run("first", {"text": text}, ["one"], first)
        assert facts == {"length": len(text)}
        steps.run("second", {"first": digest, "extra": extra}, ["two"], second)
        kept = [e.kept for e in events if isinstance(e, StepEnded)]
        assert kept == [name not in worked for name in ("first", "second")]
        return worked

    return run


def test_a_second_run_does_nothing(made):
    assert made() == ["first", "second"]
    assert made() == []


def test_only_what_changed_is_done_again(made):
    made()
    assert made(extra="y") == ["second"]
    assert made(text="b", extra="y") == ["first", "second"]


def test_the_same_outcome_from_other_inputs_stops_the_change(made):
    made(text="a")
    assert made(text="A") == ["first"]


def test_a_damaged_or_missing_outcome_is_made_again(made, tmp_path):
    made()
    (tmp_path / "one" / "file").write_text("spoilt")
    assert made() == ["first"]
    (tmp_path / "two").unlink()
    assert made() == ["second"]


def test_a_damaged_record_is_made_again(made, tmp_path):
    made()
    (tmp_path / "steps" / "second.json").write_text("{")
    assert made() == ["second"]
