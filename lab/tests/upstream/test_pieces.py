import numpy as np
import pytest
import torch

from harmonrank.paper.training import torch_threads
from harmonrank.support import limited_threads
from harmonrank_lab.upstream import PredictorConfig, fit_predictor
from harmonrank_lab.upstream.experts import Thinned, draw_from
from harmonrank_lab.upstream.network import Pieces
from harmonrank_lab.upstream.scoring import score_frame

SMALL = PredictorConfig(epochs=1, batch_rows=6000, embedding=4, expert_width=8, tower_width=4)


def test_pieces_come_back_in_order():
    with limited_threads(2), Pieces() as pieces:
        assert pieces.map(lambda n: 2 * n, range(50)) == [2 * n for n in range(50)]


def test_an_error_in_a_piece_is_raised():
    with Pieces() as pieces, pytest.raises(ZeroDivisionError, match="division"):
        pieces.map(lambda n: 1 / n, [1, 0])


def test_each_piece_keeps_torch_to_its_thread_and_the_caller_keeps_its_own():
    with torch_threads(2):
        with limited_threads(2), Pieces() as pieces:
            assert pieces.map(lambda _: torch.get_num_threads(), range(4)) == [1] * 4
        assert torch.get_num_threads() == 2


def test_the_number_of_threads_does_not_change_what_is_learned(log, tmp_path):
    frame = next(log.batches("test"))
    scores = []
    for count in (1, 2):
        with limited_threads(count):
            predictor = fit_predictor(log, tmp_path / f"{count}", SMALL, folds=0, seed=1)
            scores.append(score_frame(predictor, frame))
    np.testing.assert_array_equal(*scores)


def test_what_dropout_leaves_out_depends_on_the_seed_alone():
    x, thinned = torch.ones(100), Thinned(0.5).train()
    kept = []
    for seed in (1, 2, 1):
        draw_from(seed)
        kept.append(thinned(x))
    assert torch.equal(kept[0], kept[2])
    assert not torch.equal(kept[0], kept[1])
