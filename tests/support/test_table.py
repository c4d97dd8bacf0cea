"""One table in three forms: a terminal of any width, Markdown, HTML."""

from xml.etree import ElementTree

import pytest

from harmonrank.support import Cell, Column, Table, table_of

WIDE = tuple(Column(f"is_objective_{i}", ".3f", short=f"objective_{i}") for i in range(5))


def board(columns=WIDE, **rest):
    head = (Column("method"), Column("sum", ".4f"), Column("range", align="right", spare=True))
    row = ("first", Cell(3.25, mark="="), "3.1000 – 3.4000", *[0.75] * len(columns))
    other = ("second", 3.0, "", *[None] * len(columns))
    return Table((*head, *columns), (row, other), **rest)


def test_a_number_follows_its_columns_format_and_what_is_unknown_is_a_dash():
    table = table_of(["a", "b", "c"], [(1234, 0.5, float("nan")), ("x", 1e-7, None)], {"b": ".2f"})
    assert list(table.texts()) == [["1,234", "0.50", "–"], ["x", "0.00", "–"]]
    assert table.aligned() == ["right", "right", "right"]


def test_a_cell_may_have_a_text_of_its_own_and_a_value_to_sort_by():
    table = table_of(["p"], [(Cell(1e-9, "<.0001", mark="*"),)])
    assert table.to_text() == "       p\n<.0001 *"
    assert "| <.0001 * |" in table.to_markdown()
    assert '<td class=number data-value="1e-09">&lt;.0001<i>&nbsp;*</i></td>' in table.to_html()


def test_digits_stay_aligned_beside_a_mark():
    first, second = board(()).to_text().splitlines()[1:]
    assert first.index("3.2500") == second.index("3.0000")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_row_is_a_line_of_any_terminal(width):
    lines = board(notes=("A note.",)).to_text(width).splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[:3]] == ["method", "first", "second"]


def test_where_room_is_short_the_spare_column_goes_then_columns_stand_below():
    assert "range" in board().to_text(120).splitlines()[0]
    head = board().to_text(80).splitlines()[0]
    assert "range" not in head
    assert "objective_4" in head
    assert "is_" not in head
    narrow = board().to_text(30)
    assert narrow.count("method") > 1  # each block begins with it
    assert all(f"objective_{i}" in narrow for i in range(5))
    assert max(map(len, narrow.splitlines())) <= 30


def test_where_two_columns_tell_rows_apart_the_longer_is_cut_or_both_begin_each_block():
    names = ("buy", "long_view_seconds_watched")
    rows = tuple((arm, name, *[0.75] * 5) for name in names for arm in ("new", "old"))
    table = Table((Column("arm"), Column("outcome"), *WIDE), rows)
    assert "long_view_seconds_watched" in table.to_text(100)
    head, *lines = table.to_text(80).splitlines()
    assert "objective_4" in head
    assert "new long_view_sec" in lines[2]
    narrow = table.to_text(40).split("\n\n")
    assert len(narrow) > 1
    assert all(block.splitlines()[3].startswith("new  long_view") for block in narrow)


def test_long_texts_go_on_in_the_next_line():
    table = Table((Column("what", widest=10), Column("n")), (("one two three four", 1),))
    assert table.to_text().splitlines()[1:] == ["one two     1", "three four"]


def test_a_heading_stands_once_above_its_rows_and_is_a_column_elsewhere():
    columns = (Column("group", heading=True), Column("name"), Column("x"))
    table = Table(columns, (("G", "a", 1), ("G", "b", 2), ("H", "a", 3)))
    assert [line.split() for line in table.to_text().splitlines()] == [
        ["name", "x"], ["G"], ["a", "1"], ["b", "2"], ["H"], ["a", "3"],
    ]  # fmt: skip
    assert "| G | b | 2 |" in table.to_markdown()


def test_markdown_escapes_bars_and_emphasises_rows():
    table = table_of(["a|b", "n"], [("x\ny", 1), ("sum", 2)], emphasis={1: "bold"}, notes=("N.",))
    assert table.to_markdown() == (
        "| a\\|b | n |\n|---|--:|\n| x y | 1 |\n| **sum** | **2** |\n\nN."
    )


def test_html_is_well_formed_and_escapes():
    table = table_of(
        ["<a>", "n"], [("&", 1.5)], title="T <t>", alarms=("A <b>",), emphasis={0: "bold"}
    )
    for sortable in (False, True):
        text = table.to_html(sortable=sortable)
        for bare in ("scope=col", "class=number", "type=button", "class=sortable", "class=bold",
                     "class=about"):  # fmt: skip
            name, _, value = bare.partition("=")
            text = text.replace(bare, f'{name}="{value}"')
        tree = ElementTree.fromstring(f"<div>{text}</div>")
        assert "".join(tree.find(".//caption").itertext()) == "T <t>"
        assert "".join(tree.find(".//thead").itertext()) == "<a>n"
        assert tree.find(".//td[2]").attrib["data-value"] == "1.5"
        assert (tree.find(".//button") is not None) == sortable


def test_a_table_shows_itself_in_a_notebook():
    table = table_of(["a"], [(1,)])
    assert table._repr_html_() == table.to_html()
    assert str(table) == table.to_text()


def test_a_row_of_another_length_is_refused():
    with pytest.raises(AssertionError, match="a row has other columns"):
        table_of(["a", "b"], [(1,)])
