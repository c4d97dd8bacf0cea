"""What every source of events must hold to."""

import json

import polars as pl
from event_frames import FORM
from polars.testing import assert_frame_equal


def drained(source, after=None, most=1000):
    """Return all chunks that are there; each position goes through JSON, as in a commit."""
    chunks = []
    while (chunk := source.read(after, most)) is not None:
        chunks.append(chunk)
        after = json.loads(json.dumps(chunk.offset))
    return chunks


def joined(chunks):
    return pl.concat([FORM.empty(), *(chunk.events for chunk in chunks)])


def check_source(open_it, expected):
    """Read events in chunks of several sizes, then behind every position, by another reader."""
    for most in (1, 4, 1000):
        source = open_it()
        chunks = drained(source, most=most)
        assert_frame_equal(joined(chunks), expected)
        for place, chunk in enumerate(chunks):
            rest = joined(chunks[place + 1 :])
            assert_frame_equal(joined(drained(open_it(), chunk.offset)), rest)
            # The same reader goes back, too; chunks may be cut elsewhere.
            again = source.read(None if not place else chunks[place - 1].offset, most).events
            assert_frame_equal(again, pl.concat([chunk.events, rest]).head(again.height))
            source.committed(chunk.offset)
        source.close()
