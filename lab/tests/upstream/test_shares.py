"""Training by a team: threads that exchange arrays stand for workers on several machines."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from harmonrank.paper.training import Finished
from harmonrank.support.errors import EngineError
from harmonrank_lab.upstream import PredictorConfig
from harmonrank_lab.upstream.encoder import Encoder
from harmonrank_lab.upstream.loop import train_network
from harmonrank_lab.upstream.network import PredictorNetwork
from harmonrank_lab.upstream.stream import RowStream
from harmonrank_lab.upstream.team import Alone

CONFIG = PredictorConfig(
    epochs=2, batch_rows=6000, pool_rows=7000, expert_width=8, tower_width=4, embedding=4
)


class Threads:
    """A team of threads."""

    def __init__(self, rank, size, barrier, board):
        self.rank, self.size, self._barrier, self._board = rank, size, barrier, board
        self.bytes = 0

    def gathered(self, array):
        self._board[self.rank] = array.copy()
        self.bytes += array.nbytes
        self._barrier.wait(60)
        found = list(self._board)
        self._barrier.wait(60)
        return found


def each_of(size, work):
    """Return what every member of a team finds."""
    barrier, board = threading.Barrier(size), [None] * size
    teams = [Threads(k, size, barrier, board) for k in range(size)]
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(work, teams))


@pytest.fixture(scope="module")
def encoder(log):
    return Encoder.fit(log, 1000)


def trained(log, encoder, team, checkpoint=None, config=CONFIG):
    generator = torch.Generator().manual_seed(0)
    prevalence = np.full(len(encoder.objectives), 0.1)
    network = PredictorNetwork(encoder.layout, prevalence, config, generator)
    stream = RowStream(log, encoder, config.pool_rows, team=team)
    valid = encoder.rows(next(log.batches("valid", rows=5000)))
    given = {"seed": 3, "checkpoint": checkpoint, "team": team}
    *_, last = train_network(network, stream, valid, config, **given)
    assert isinstance(last, Finished)
    return last.valid_auc_sum, {n: v.numpy().copy() for n, v in network.state_dict().items()}


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_team_trains_the_network_of_one_worker_to_the_last_bit(log, encoder, size):
    """The last size has more workers than a batch has pieces."""
    score, expected = trained(log, encoder, Alone())
    found = each_of(size, lambda team: trained(log, encoder, team))
    for its_score, weights in found:
        assert its_score == score
        for name, array in expected.items():
            np.testing.assert_array_equal(weights[name], array, err_msg=name)


def test_every_member_reads_its_share_and_all_have_the_pool(log, encoder):
    stream = RowStream(log, encoder, 4000)
    expected = list(stream.epoch(0, 1))
    assert len(expected) > 1

    def read(team):
        mine = RowStream(log, encoder, 4000, team=team)
        return list(mine.epoch(0, 1)), team.bytes

    found = each_of(3, read)
    for pools, _ in found:
        for one, all_of_them in zip(expected, pools, strict=True):
            np.testing.assert_array_equal(one.keys, all_of_them.keys)
            np.testing.assert_array_equal(one.context, all_of_them.context)
            np.testing.assert_array_equal(one.labels, all_of_them.labels)
    shares = np.array([given for _, given in found])
    assert (shares / shares.sum() < 0.5).all()


def test_members_that_found_different_checkpoints_do_not_go_on(log, encoder, tmp_path):
    trained(log, encoder, Alone(), tmp_path / "left")

    def work(team):
        return trained(log, encoder, team, tmp_path / ("left" if team.rank else "none"))

    with pytest.raises(EngineError, match="Workers found different checkpoints"):
        each_of(2, work)
