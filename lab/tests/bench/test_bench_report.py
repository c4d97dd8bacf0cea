from rich.console import Console

from harmonrank_lab.bench import Accuracy, Report, Result
from harmonrank_lab.bench.report import bench_markdown, bench_table

REPORT = Report(
    {"processor": "Abacus", "cores": 2, "platform": "x", "python": "3.11", "load": 0.1},
    (
        Result("rank", "soft_rank float32", 10_240, 0.0004, {"torchsort": 0.0016}),
        Result("rank", "argsort", 10_240, 0.0001, {"numpy": 0.0002}),
        Result("growth", "fit harmonrank", 10_000_000, 50.0, memory_mb=1234.4, note="why"),
    ),
    (Accuracy("error float32", 10_240, 0.03125, 0.03, {"torchsort": 257.0}),),
)


def test_a_page_has_a_table_per_part_and_a_column_per_peer():
    page = bench_markdown(REPORT, "harmonrank lab bench all")
    assert "Made by `harmonrank lab bench all` on 2 cores of Abacus (load 0.1" in page
    assert "| what | rows | ours | rows/s | torchsort | numpy | note |" in page
    assert "| soft_rank float32 | 10,240 | 0.400 ms | 25,600,000 | 1.60 ms (4.00×) |  |  |" in page
    assert "| argsort | 10,240 | 0.100 ms | 102,400,000 |  | 0.200 ms (2.00×) |  |" in page
    assert "| fit harmonrank | 10,000,000 | 50.00 s | 200,000 | 1,234 MB | why |" in page
    assert "| error float32 | 10,240 | 0.031 | 0.03 | 2.6e+02 |" in page


def test_every_row_of_a_table_has_as_many_cells_as_its_header():
    tables = [part for part in bench_markdown(REPORT, "x").split("\n\n") if part.startswith("|")]
    assert len(tables) == 3
    for table in tables:
        assert len({line.count("|") for line in table.splitlines()}) == 1


def test_the_terminal_table_shows_ratios_and_fits():
    console = Console(width=80)
    with console.capture() as captured:
        console.print(bench_table(REPORT))
    text = captured.get()
    assert "torchsort 4.00×" in text
    assert "peak 1,234 MB" in text
    assert max(map(len, text.splitlines())) <= 80
