"""A cluster of two nodes on the loopback interface, of which one dies in the midst of the work.

Run by test_nodes.py in a process of its own, as Ray is started in another way than elsewhere:

    python two_nodes.py fit|score|evaluate
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from ray.cluster_utils import Cluster

import harmonrank as hr
from harmonrank.data import ContextEncoder, read_log
from harmonrank.data.rows.engine_blocks import EngineBlocks
from harmonrank.data.rows.log_blocks import FileBlocks
from harmonrank.engine import LocalEngine, open_engine
from harmonrank.evaluation import partitioned_quality
from harmonrank.fusion import score_files
from harmonrank.model.fit_rows import cut_rows
from harmonrank.model.linear.heads_fit import fit_blocks
from harmonrank.support.storage.stored import stored
from logs import small_table
from losing_engine import LosingEngine
from ray_jobs import place_of

SCHEMA = {"objectives": {"buy": "p_buy", "like": "p_like"}, "context": ["hour", "age"]}


def fit(engine, lose) -> None:
    log = read_log(small_table(), SCHEMA)
    encoder = ContextEncoder.fit(log.context)

    def rows():
        return cut_rows(log.scores, log.codes(encoder), log.known_labels(), size=100)

    expected = stored(fit_blocks(rows(), encoder.slots))[1]
    blocks = EngineBlocks(engine, rows())
    nodes = set(blocks.each(place_of))
    assert len(nodes) == 2, f"both nodes have a share: {nodes}"
    passes = []

    def step(number: int, most: int) -> None:
        passes.append(number)
        if len(passes) == 2:
            lose()

    got = stored(fit_blocks(blocks, encoder.slots, step))[1]
    assert len(passes) > 2
    assert len(set(blocks.each(place_of))) == 1
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


def score(engine, lose, folder: Path) -> None:
    model = hr.HarmonRank().fit(small_table(), SCHEMA)
    (folder / "log").mkdir()
    for k in range(8):
        small_table(seed=k).write_parquet(folder / "log" / f"part-{k}.parquet")
    score_files(LocalEngine(), model, folder / "log", folder / "one")
    losing = LosingEngine(engine, 6, lose=lose)
    score_files(losing, model, folder / "log", folder / "many")
    assert losing.calls == 8
    for path in (folder / "one").iterdir():
        assert path.read_bytes() == (folder / "many" / path.name).read_bytes(), path.name


def evaluate(engine, lose, folder: Path) -> None:
    """The node dies with blocks that it was scoring, which are scored again."""
    model, path = hr.ClosedForm().fit(small_table(), SCHEMA), folder / "log.parquet"
    small_table(seed=1).write_parquet(path)
    blocks = FileBlocks(path, model.schema, size=100)
    expected = partitioned_quality(model, blocks, engine)
    losing = LosingEngine(engine, 4, lose=lose)
    assert partitioned_quality(model, blocks, losing) == expected
    assert losing.calls > 4


def main(verb: str) -> None:
    given = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args=given)
    second = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    lost = []

    def lose() -> None:
        cluster.remove_node(second, allow_graceful=False)
        lost.append(second)

    with (
        TemporaryDirectory() as folder,
        open_engine("ray", address=cluster.address, workers=2) as engine,
    ):
        work = {"fit": fit, "score": score, "evaluate": evaluate}[verb]
        work(engine, lose, *([Path(folder)] if verb in ("score", "evaluate") else []))
    assert lost
    cluster.shutdown()
    sys.stdout.write("the same result\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
