"""Trees: boosted trees as arrays, which can be checked, and the kernel that scores them."""

__all__ = ["Trees"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, Self, get_type_hints

import numpy as np

from harmonrank.support.errors import DataError
from harmonrank.support.kernel import kernel
from harmonrank.support.logistic import sigmoid_of
from harmonrank.support.parallel import each_part, edges_of
from harmonrank.support.storage.arrays import Array

_CATEGORY, _MISSING = 1, 0b1100  # bits of LightGBM's decision types
_WORD = 32
_PART_ROWS = 1024
_MOST = 2**31 - 1


def _per_node(low: int) -> Array:
    return Array(("nodes",), "int32", low=low, high=_MOST, least=0)


@dataclass(frozen=True, eq=False)
class Trees:
    """The trees of all objectives, one after the other.

    A child from 0 up is a node, one below 0 the leaf with the number −1 − child. A node's children
    come after it, so that every path ends.

    Attributes:
        first: (M + 1,) where the trees of each objective begin, and the end.
        root: (trees,) node or leaf at which each tree begins.
        feature: (nodes,) the feature that a node tests.
        threshold: (nodes,) largest number that goes left.
        bits: (nodes,) where the set of categories that go left begins; −1 for a number.
        words: (nodes,) how many words that set has.
        left, right: (nodes,) children.
        leaf: (leaves,) the logit that each adds.
        sets: (words,) categories as bits.
    """

    first: Annotated[np.ndarray, Array(("ends",), "int32", low=0, high=_MOST, rising=True)]
    root: Annotated[np.ndarray, Array(("trees",), "int32")]
    feature: Annotated[np.ndarray, _per_node(0)]
    threshold: Annotated[np.ndarray, Array(("nodes",), low=-1e308, high=1e308, least=0)]
    bits: Annotated[np.ndarray, _per_node(-1)]
    words: Annotated[np.ndarray, _per_node(0)]
    left: Annotated[np.ndarray, _per_node(-_MOST)]
    right: Annotated[np.ndarray, _per_node(-_MOST)]
    leaf: Annotated[np.ndarray, Array(("leaves",))]
    sets: Annotated[np.ndarray, Array(("words",), "uint32", low=0, least=0)]

    @classmethod
    def of(cls, models: Sequence[str]) -> Self:
        """Parse the trees of each objective from the text of LightGBM's own models."""
        every = [_parsed(text) for text in models]
        trees = [tree for model in every for tree in model]
        first = np.cumsum([0, *(len(model) for model in every)])
        nodes, leaves, words = (
            np.cumsum([0, *(len(tree[name]) for tree in trees)])
            for name in ("feature", "leaf", "sets")
        )
        for t, tree in enumerate(trees):
            tree["bits"] = np.where(tree["bits"] >= 0, tree["bits"] + words[t], -1)
            for side in ("left", "right", "root"):
                tree[side] = np.where(
                    tree[side] >= 0, tree[side] + nodes[t], tree[side] - leaves[t]
                )
        declared = get_type_hints(cls, include_extras=True)
        joined = {
            name: np.concatenate([tree[name] for tree in trees]).astype(part.__metadata__[0].dtype)
            for name, part in declared.items()
            if name != "first"
        }
        return cls(first=first.astype(np.int32), **joined)

    def check(self, objectives: int, features: int) -> None:
        """Refuse stored trees of other objectives or features, or that lead nowhere."""
        node, nodes, leaves = np.arange(len(self.feature)), len(self.feature), len(self.leaf)
        children = np.stack([self.left, self.right])
        onward = np.where(children >= 0, (children > node) & (children < nodes), True)
        sound = onward.all() and _leads(self.root, nodes, leaves)
        sound &= bool((children >= -leaves).all()) and self.first[0] == 0
        sound &= self.first[-1] == len(self.root) and len(self.first) == objectives + 1
        sound &= int(self.feature.max(initial=0)) < features
        a_set = self.bits >= 0
        ends = self.bits.astype(np.int64) + self.words
        if not (sound and (ends[a_set] <= len(self.sets)).all()):
            raise DataError("the trees lead to nodes, leaves or categories that are not there")

    def probabilities(self, features: np.ndarray) -> np.ndarray:
        """Return σ(Σ leaves) of each objective, (rows, M), for (rows, features) float64."""
        features = np.ascontiguousarray(features, np.float64)
        p = np.empty((len(features), len(self.first) - 1))
        edges = edges_of(len(features), _PART_ROWS)
        given = tuple(getattr(self, field.name) for field in fields(self))

        def work(part: int) -> None:
            _score(edges[part], edges[part + 1], given, features, p)

        each_part(work, len(edges) - 1)
        return p


def _leads(root: np.ndarray, nodes: int, leaves: int) -> bool:
    return bool(((root < nodes) & (root >= -leaves)).all())


def _parsed(text: str) -> list[dict[str, np.ndarray]]:
    """Return the arrays of each tree of a model that LightGBM has just written."""
    head, *blocks = text.split("\nTree=")
    # Both are a sigmoid of the sum of leaves.
    assert "objective=binary sigmoid:1\n" in head or "objective=cross_entropy\n" in head
    trees = []
    for block in blocks:
        lines = block.partition("\n\n")[0].splitlines()[1:]
        trees.append(_tree(dict(line.split("=", 1) for line in lines)))
    return trees


def _tree(lines: Mapping[str, str]) -> dict[str, np.ndarray]:
    def numbers(name: str, dtype: type) -> np.ndarray:
        return np.array(lines.get(name, "").split(), dtype=dtype)

    split = int(lines["num_leaves"]) > 1
    kinds = numbers("decision_type", np.int64)
    # Features are never missing, so that what a node does without them does not matter, unless
    # zeros count as missing.
    assert not split or set((kinds & _MISSING) >> 2) <= {0, 2}
    threshold, categorical = numbers("threshold", np.float64), (kinds & _CATEGORY) > 0
    starts = np.array([*numbers("cat_boundaries", np.int64), 0, 0])
    which = np.where(categorical, threshold, -1).astype(np.int64)
    return {
        "root": np.array([0 if split else -1]),
        "feature": numbers("split_feature", np.int64),
        "threshold": np.where(categorical, 0.0, threshold),
        "bits": np.where(categorical, starts[which], -1),
        "words": np.where(categorical, starts[which + 1] - starts[which], 0),
        "left": numbers("left_child", np.int64),
        "right": numbers("right_child", np.int64),
        "leaf": numbers("leaf_value", np.float64),
        "sets": numbers("cat_threshold", np.int64),
    }


@kernel
def _score(low: int, high: int, trees: Any, x: Any, p: Any) -> None:
    """Write the probabilities of some rows; `trees` are the fields of `Trees`."""
    first, root, feature, threshold, bits, words, left, right, leaf, sets = trees
    for i in range(low, high):
        for m in range(len(first) - 1):
            total = 0.0
            for t in range(first[m], first[m + 1]):
                at = root[t]
                while at >= 0:
                    value = x[i, feature[at]]
                    if bits[at] < 0:
                        goes_left = value <= threshold[at]
                    else:
                        code = int(value)
                        word = code // _WORD
                        goes_left = code >= 0 and word < words[at]
                        if goes_left:
                            goes_left = (sets[bits[at] + word] >> (code % _WORD)) & 1 > 0
                    at = left[at] if goes_left else right[at]
                total += leaf[-1 - at]
            p[i, m] = sigmoid_of(total)
