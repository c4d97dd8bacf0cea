"""What is shown of every event, by its type."""

import dataclasses

import pytest

from harmonrank.cli.parts.show import Show
from harmonrank.evaluation import Entry
from harmonrank.support import events

KINDS = [
    kind
    for name in events.__all__
    if dataclasses.is_dataclass(kind := getattr(events, name)) and kind is not events.Part
]
ELSEWHERE = {events.CellStarted, events.CellEnded}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_event_has_a_handler_of_its_own(kind):
    handler = Show.__dict__["event"].dispatcher.dispatch(kind)
    nobody = Show.__dict__["event"].dispatcher.dispatch(object)
    assert (handler is nobody) == (kind in ELSEWHERE)


def test_events_become_lines_where_there_is_no_terminal(capsys):
    show = Show()
    show.event(events.MethodStarted("closed-form", 0, 2))
    show.event(events.EpochEnded(0, 1, 0.5, 3.25, 0, 0.9))
    show.event(events.MethodEnded("closed-form", 0, 2, Entry("closed-form", 0.1, error="oh no")))
    show.event(events.StepEnded("score", 2, 5, 1.25, kept=True))
    show.event(object())
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] closed-form epoch 1: loss 0.5000, valid 3.2500, gradient 90% *",
        "[1/2] closed-form failed: oh no",
        "[3/5] score kept: nothing it depends on has changed (1.2 s)",
    ]
