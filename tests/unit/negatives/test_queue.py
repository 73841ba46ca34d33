"""The memory queue: a ring, its warm-up, its epochs, its state."""

import pytest
import torch

from hatchway.errors import ArtefactError, DataError
from hatchway.frequency.exact import ExactCounts
from hatchway.negatives.ledger import draw_ledger
from hatchway.negatives.queue import Queue
from hatchway.randomness import torch_stream

EXACT = ExactCounts(torch.tensor([3, 2, 1, 0, 4]))
GENERATOR = torch_stream(1)


def enqueue(queue: Queue, *items: int) -> None:
    """Put items in whose vectors say their number."""
    queue.enqueue(torch.tensor(items), torch.tensor([[float(item), 0.5] for item in items]))


def held(queue: Queue) -> list[int]:
    """Return the items of a draw, having checked that the vectors are theirs."""
    items = queue.draw(torch.tensor([0]), GENERATOR)
    assert queue.vectors_at(torch.arange(len(items)))[:, 0].tolist() == items.tolist()
    return items.tolist()


def test_the_oldest_go_out_and_the_newest_come_first() -> None:
    """Five places: after 0 1 2 | 4 0 1 the first 0 is out."""
    queue = Queue(EXACT, 5, 2)
    assert held(queue) == []
    enqueue(queue, 0, 1, 2)
    assert held(queue) == [2, 1, 0]
    enqueue(queue, 4, 0, 1)
    assert held(queue) == [1, 0, 4, 2, 1]
    enqueue(queue, 0, 1, 2, 4, 4, 4, 2)
    assert held(queue) == [2, 4, 4, 4, 2]


def test_nothing_is_drawn_before_the_warm_up_is_over() -> None:
    """Three steps to wait: n is 0 for that long, and what was enqueued meanwhile is there afterwards."""
    queue = Queue(EXACT, 8, 2, warmup=3)
    everything = torch.arange(5)
    for step in range(3):
        assert held(queue) == [], step
        assert queue.expected_others(everything, 4).tolist() == [0.0] * 5
        assert queue.log_absent_others(everything, 4).tolist() == [0.0] * 5
        enqueue(queue, 0, 1)
    assert held(queue) == [1, 0] * 3
    assert float(queue.expected_others(everything, 4).sum()) > 0


def test_past_epochs_count_otherwise_than_this_one() -> None:
    """T = 10. Of this epoch: c/9, and (c - 1)/9 for the row's own positive; of one before: c/10 for both."""
    queue = Queue(EXACT, 5, 2)
    enqueue(queue, 0, 1)
    queue.begin_epoch(0)
    assert queue.fresh == 2
    queue.begin_epoch(1)
    enqueue(queue, 4)
    assert (queue.filled, queue.fresh) == (3, 1)
    items = torch.tensor([0, 3])
    assert queue.expected_others(items, 64).tolist() == pytest.approx([3 / 9 + 2 * 3 / 10, 0])
    assert queue.expected_of_positive(items, 64).tolist() == pytest.approx([2 / 9 + 2 * 3 / 10, 0])
    assert queue.expected_on_average(items, 64).tolist() == pytest.approx([3 * 3 / 10, 0])


def test_the_state_goes_on_where_it_was() -> None:
    """A queue that was put back draws, counts and fills up as the first would have."""
    queue, other = (Queue(EXACT, 5, 2, warmup=1) for _ in range(2))
    queue.begin_epoch(3)
    enqueue(queue, 0, 1, 2)
    enqueue(queue, 4, 4, 1)
    other.load_state(queue.state())
    other.begin_epoch(3)
    for one in (queue, other):
        enqueue(one, 2)
    assert held(queue) == held(other)
    assert (queue.filled, queue.fresh) == (other.filled, other.fresh) == (5, 5)
    assert all(torch.equal(tensor, other.state()[name]) for name, tensor in queue.state().items())


def test_the_state_of_another_queue_is_refused() -> None:
    """Another size, another dimension, or nothing."""
    for state in (Queue(EXACT, 4, 2).state(), Queue(EXACT, 5, 3).state(), {}):
        with pytest.raises(ArtefactError, match="in the queue's state"):
            Queue(EXACT, 5, 2).load_state(state)


def test_vectors_of_another_dimension_are_refused() -> None:
    """The message says which shape is allowed."""
    with pytest.raises(DataError, match=r"allowed: \(2, 2\)"):
        Queue(EXACT, 5, 2).enqueue(torch.tensor([0, 1]), torch.zeros(2, 3))


def test_vectors_are_copies_without_gradient() -> None:
    """What was enqueued neither moves nor changes with the tower."""
    queue = Queue(EXACT, 2, 2)
    vectors = torch.ones(1, 2, requires_grad=True)
    queue.enqueue(torch.tensor([0]), vectors * 2)
    with torch.no_grad():
        vectors.zero_()
    assert queue.vectors_at(torch.tensor([0])).tolist() == [[2.0, 2.0]]
    assert not queue.vectors_at(torch.tensor([0])).requires_grad


def test_de_duplicated_columns_keep_the_newest_vector() -> None:
    """Item 4 stands in the queue at two ages; the column's place leads to the newer one."""
    queue = Queue(EXACT, 4, 2, beside_in_batch=False)
    queue.enqueue(torch.tensor([4, 0, 4]), torch.tensor([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]))
    ledger = draw_ledger(torch.tensor([1]), [queue], GENERATOR, "uncorrected", distinct=True)
    assert ledger.items.tolist() == [4, 0]
    assert queue.vectors_at(ledger.places)[:, 0].tolist() == [3.0, 2.0]
