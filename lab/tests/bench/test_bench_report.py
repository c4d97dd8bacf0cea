from rich.console import Console

from harmonrank_lab.bench import Accuracy, Report, Result
from harmonrank_lab.bench._run import bench_table

REPORT = Report(
    {"processor": "Abacus", "cores": 2, "platform": "x", "python": "3.11", "load": 0.1},
    (
        Result("rank", "soft_rank float32", 10_240, 0.0004, {"torchsort": 0.0016}),
        Result("rank", "argsort", 10_240, 0.0001, {"numpy": 0.0002}),
        Result("growth", "fit harmonrank", 10_000_000, 50.0, memory_mb=1234.4, note="why"),
    ),
    (Accuracy("error float32", 10_240, 0.03125, 0.03, {"torchsort": 257.0}),),
)


def test_the_terminal_table_shows_ratios_and_fits():
    console = Console(width=80)
    with console.capture() as captured:
        console.print(bench_table(REPORT))
    text = captured.get()
    assert "torchsort 4.00×" in text
    assert "peak 1,234 MB" in text
    assert max(map(len, text.splitlines())) <= 80
