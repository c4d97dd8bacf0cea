"""Size: how much a benchmark does."""

__all__ = ["FULL", "QUICK", "Size"]

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Rows of every part.

    Attributes:
        seconds: How long each case is repeated.
        compile: Whether torch.compile takes part; to compile takes longer than all the rest.
        epochs: Of a network's fit in which all that happens is timed.
        file_rows: Of the file that is scored from parquet to parquet.
        objective_rows: Rows of the fits with few and many objectives.
        serve_seconds: How long a service is asked.
        serve_rows: Candidates of a request by binary tensors.
    """

    seconds: float = 2.0
    compile: bool = True
    batch_rows: int = 10_240
    rank_rows: tuple[int, ...] = (10_240, 1_024_000)
    metric_rows: int = 500_000
    train_rows: int = 1_000_000
    epochs: int = 20
    head_rows: int = 200_000
    score_rows: int = 1_000_000
    request_rows: int = 1000
    file_rows: int = 20_000_000
    growth_rows: tuple[int, ...] = (10_000, 100_000, 1_000_000, 10_000_000)
    growth_objectives: tuple[int, ...] = (2, 5, 10, 20)
    objective_rows: int = 100_000
    serve_seconds: float = 10.0
    serve_rows: int = 10_000


FULL = Size()
QUICK = Size(
    seconds=0.3,
    compile=False,
    rank_rows=(10_240, 102_400),
    metric_rows=50_000,
    train_rows=200_000,
    epochs=2,
    head_rows=20_000,
    score_rows=100_000,
    file_rows=300_000,
    growth_rows=(10_000, 100_000),
    growth_objectives=(2, 5),
    objective_rows=10_000,
    serve_seconds=1.5,
)
