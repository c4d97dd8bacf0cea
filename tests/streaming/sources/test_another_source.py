"""The source that docs/streaming.md shows holds to what every source must."""

import sys
from types import ModuleType

import pytest
from check_source import check_source
from event_frames import SCHEMA, events, exposure, feedback

from harmonrank.streaming.sources.event_reading import to_lines
from harmonrank.support import SourceError
from pages import ROOT, blocks


class Message:
    def __init__(self, place, line):
        self._place, self._line = place, line

    def error(self):
        return None

    def offset(self):
        return self._place

    def value(self):
        return self._line


class TopicPartition:
    def __init__(self, topic, partition, offset):
        self.topic, self.partition, self.offset = topic, partition, offset


class KafkaException(Exception):  # noqa: N818
    pass


@pytest.fixture
def topic(monkeypatch):
    """Stand in for the client of a broker that is not here: one partition of a topic."""
    client = ModuleType("confluent_kafka")
    client.lines, client.away = [], False

    class Consumer:
        def __init__(self, settings):
            assert settings["enable.auto.commit"] is False
            self._at = None

        def assign(self, partitions):
            (partition,) = partitions
            assert (partition.topic, partition.partition) == ("events", 0)
            self._at = partition.offset

        def consume(self, most, timeout):
            if client.away:
                raise KafkaException("no broker")
            result = client.lines[self._at : self._at + most]
            begun, self._at = self._at, self._at + len(result)
            return [Message(begun + i, line) for i, line in enumerate(result)]

        def commit(self, offsets):
            assert offsets[0].offset <= self._at

        def close(self):
            pass

    client.Consumer, client.TopicPartition = Consumer, TopicPartition
    client.KafkaException = KafkaException
    monkeypatch.setitem(sys.modules, "confluent_kafka", client)
    return client


@pytest.fixture
def open_it():
    page = ROOT / "docs" / "streaming.md"
    (block,) = (block for block in blocks(page, ["python"]) if "class KafkaSource" in block.code)
    names = {}
    exec(block.code, names)
    return lambda: names["open_source"]("kafka://host:9092/events", SCHEMA, {})


def test_the_source_of_the_page_is_one(topic, open_it):
    rows = [exposure(f"r{i}", i) for i in range(9)]
    frame = events(*rows, feedback("r1", 3), exposure("s", 12))
    topic.lines += to_lines(frame)
    check_source(open_it, frame)


def test_the_source_of_the_page_comes_back(topic, open_it):
    topic.lines += to_lines(events(*(exposure(f"r{i}", i) for i in range(9))))
    source = open_it()
    first = source.read(None, 4)
    topic.away = True
    with pytest.raises(SourceError, match="Kafka is away: no broker"):
        source.read(first.offset, 4)
    topic.away = False
    assert source.read(first.offset, 4).events["request"].to_list() == ["r4", "r5", "r6", "r7"]
