"""A cluster of two nodes on the loopback interface, of which one dies in the midst of a fit.

Run by test_nodes.py in a process of its own, as Ray is started in another way than elsewhere.
"""

import sys

import numpy as np
from ray.cluster_utils import Cluster

from harmonrank.data import ContextEncoder, read_log
from harmonrank.data.engine_blocks import EngineBlocks
from harmonrank.engine import open_engine
from harmonrank.model.fit_rows import cut_rows
from harmonrank.model.heads_fit import fit_blocks
from harmonrank.model.stored_heads import arrays_of_heads
from logs import small_table
from ray_jobs import place_of


def main() -> None:
    log = read_log(
        small_table(),
        {"objectives": {"buy": "p_buy", "like": "p_like"}, "context": ["hour", "age"]},
    )
    encoder = ContextEncoder.fit(log.context)

    def rows():
        return cut_rows(log.scores, log.codes(encoder), log.known_labels(), size=100)

    expected = arrays_of_heads(fit_blocks(rows(), encoder.slots))
    given = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": 100 << 20}
    cluster = Cluster(initialize_head=True, head_node_args=given)
    second = cluster.add_node(num_cpus=1, object_store_memory=100 << 20)
    cluster.wait_for_nodes()
    with open_engine("ray", address=cluster.address, workers=2) as engine:
        blocks = EngineBlocks(engine, rows())
        places = set(blocks.each(place_of))
        assert len(places) == 2, f"both nodes have a share: {places}"
        passes = []

        def step(number: int, most: int) -> None:
            passes.append(number)
            if len(passes) == 2:
                cluster.remove_node(second, allow_graceful=False)

        found = arrays_of_heads(fit_blocks(blocks, encoder.slots, step))
        assert len(passes) > 2
        assert len(set(blocks.each(place_of))) == 1
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
    cluster.shutdown()
    sys.stdout.write("the same model\n")


if __name__ == "__main__":
    sys.exit(main())
