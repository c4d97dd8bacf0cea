"""Charts as plain SVG: well-formed, with all that Plotly would draw."""

from math import log10
from xml.etree import ElementTree

import pytest

from harmonrank.reports.plots import Table, plot
from harmonrank.reports.sections import sections
from harmonrank.reports.svg import svg
from harmonrank.reports.svg._axis import axis_of

NONE = Table(("x",), (), {})


def drawn(data, *, x=None, y=None, **layout):
    text = svg(plot("name", "A <title>", data, NONE, x=x or {}, y=y or {}, **layout))
    return ElementTree.fromstring(text.replace(" class=off", ' class="off"'))


def parts(tree, tag):
    return list(tree.iter(tag))


def texts(tree):
    return ["".join(part.itertext()) for part in parts(tree, "text")]


def test_every_chart_of_a_report_is_well_formed_and_draws_all_its_traces(facts):
    for section in sections(facts):
        for each in section.plots:
            tree = ElementTree.fromstring(svg(each))
            groups = tree.findall("./svg/g")
            assert len(groups) == len(each.data), each.name
            assert all(len(group) for group in groups), each.name


def test_places_lie_within_the_picture(facts):
    for section in sections(facts):
        for each in section.plots:
            tree = ElementTree.fromstring(svg(each))
            width, height = map(float, tree.attrib["viewBox"].split()[2:])
            for dot in parts(tree, "circle"):
                assert 0 <= float(dot.attrib["cx"]) <= width, each.name
                assert 0 <= float(dot.attrib["cy"]) <= height, each.name


def test_axis_titles_and_names_are_written_and_escaped():
    line = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [2, 3], "meta": "<a>"}
    tree = drawn([line], x={"title": "time (s)"}, y={"title": "AUC & more"})
    assert {"time (s)", "AUC & more"} <= set(texts(tree))
    assert tree.attrib["aria-label"] == "A <title>"


def test_a_gap_parts_a_line():
    line = {"type": "scatter", "mode": "lines", "x": [0, 1, 2, 3], "y": [1, 1, None, 1]}
    (group,) = drawn([line]).findall("./svg/g")
    assert [way.attrib["d"].count("L") for way in group] == [1, 0]


def test_intervals_are_as_long_as_they_say():
    error = {"type": "data", "array": [2.0], "arrayminus": [1.0], "thickness": 1}
    dot = {"type": "scatter", "mode": "markers", "x": [5.0], "y": ["a"], "error_x": error}
    (group,) = drawn([dot], x={"range": [0, 10]}).findall("./svg/g")
    way, circle = group
    low, high = (float(point.split()[0]) for point in way.attrib["d"][1:].split("L"))
    middle = float(circle.attrib["cx"])
    assert (high - middle) == pytest.approx(2 * (middle - low), abs=0.3)


def test_stacked_bars_begin_where_others_end():
    bars = [
        {"type": "bar", "x": [30.0], "y": ["a"], "marker": {"color": "#000"}},
        {"type": "bar", "x": [70.0], "y": ["a"], "marker": {"color": "#111"}},
    ]
    first, second = parts(drawn(bars, x={"range": [0, 100]}, barmode="stack"), "rect")
    end = float(first.attrib["x"]) + float(first.attrib["width"])
    assert float(second.attrib["x"]) == pytest.approx(end, abs=0.1)
    assert float(second.attrib["width"]) == pytest.approx(
        7 / 3 * float(first.attrib["width"]), rel=0.01
    )


def test_a_hidden_trace_is_there_for_a_script_to_show():
    line = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [2, 3], "meta": "a"}
    text = svg(plot("name", "t", [line], NONE, x={}, y={}), hidden={"a"})
    assert '<g data-trace="a" class=off>' in text


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5, 0.5], 0.5),
        ([0.0, 0.0], 0.0),
        ([-3.0, 1e6], 0.0),
    ],
)
def test_an_axis_holds_its_values_whatever_they_are(values, expected):
    axis = axis_of({}, values, (0, 300))
    assert 0 <= axis.at(expected) <= 300
    assert axis.ticks


def test_a_log_axis_has_powers_of_ten_and_no_place_for_0():
    axis = axis_of({"type": "log", "range": [-3, 0], "tickformat": ".1~%"}, [0.01], (0, 300))
    assert [text for _, text in axis.ticks] == ["0.1 %", "1 %", "10 %", "100 %"]
    assert axis.at(0.0) is None
    assert axis.at(0.1) == pytest.approx(200)
    narrow = axis_of({"type": "log", "range": [log10(0.02), log10(0.06)]}, [], (0, 300))
    assert [text for _, text in narrow.ticks] == ["0.02", "0.05"]
