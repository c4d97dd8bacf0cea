from itertools import product

import pytest

from harmonrank.paper import Network, NetworkConfig

SWITCHES = ("self_attention", "personalised", "cross_attention", "gate", "linear")


@pytest.mark.parametrize("slots", [(), (4, 3)])
@pytest.mark.parametrize("buckets", [None, 8])
def test_declared_arrays_are_those_of_the_network(slots, buckets):
    for values in product([True, False], repeat=len(SWITCHES)):
        switches = dict(zip(SWITCHES, values, strict=True))
        config = NetworkConfig(
            objectives=3, context_slots=slots, key_width=4, buckets=buckets, **switches
        )
        state = Network(config).state_dict()
        declared = config.arrays
        assert {n: a.shape for n, a in declared.items()} == {
            n: tuple(v.shape) for n, v in state.items()
        }
        assert {a.dtype for a in declared.values()} == {"float32"}
