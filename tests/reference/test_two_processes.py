"""Two processes that share a batch learn what one process with the whole batch learns."""

import os
import subprocess
import sys
from typing import Any

import pytest
import rank_process
import torch

from hatchway.errors import DataError
from hatchway.frequency.streaming import StreamingFrequency, StreamingSettings
from hatchway.negatives.ranks import global_batch, states_of_ranks

RANKS = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Run a single process, and two with gloo between them; they divide eight rows as five and three."""
    made: dict[str, list[Any]] = {}
    for name, ranks in (("one", 1), ("two", RANKS)):
        out = tmp_path_factory.mktemp(name)
        command = [sys.executable, rank_process.__file__]
        running = [
            subprocess.Popen(
                [*command, str(rank), str(ranks), str(out / "rendezvous"), str(out)],
                env=os.environ | {"OMP_NUM_THREADS": "1"},
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(ranks)
        ]
        for process in running:
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said
        made[name] = [torch.load(out / f"{rank}.pt") for rank in range(ranks)]
    return made


def steps(found: dict[str, list[Any]]) -> list[tuple[Any, list[Any]]]:
    """Return, for each step, what one process found and what each of two did."""
    two = [list(ranks) for ranks in zip(*(rank["steps"] for rank in found["two"]), strict=True)]
    return list(zip(found["one"][0]["steps"], two, strict=True))


def test_every_rank_counts_with_the_whole_batch(found: dict[str, list[Any]]) -> None:
    """The same columns, expected counts and state of the frequency on both, and the rows' parts of one ledger."""
    for one, two in steps(found):
        for rank in two:
            for name in ("positives", "items", "log_count"):
                assert torch.equal(rank[name], one[name]), name
            assert all(torch.equal(rank["frequency"][name], one["frequency"][name]) for name in one["frequency"])
        for name in ("positive_log_count", "own_masked"):
            assert torch.equal(torch.cat([rank[name] for rank in two]), one[name]), name
        for name in ("masked", "copies"):
            assert torch.equal(torch.cat([rank[name] for rank in two], 1), one[name]), name
        assert len(one["masked"][0]) > 8  # more than the carriers themselves
    assert any(one["copies"].numel() for one, _ in steps(found))


def test_losses_and_gradients_are_those_of_one_process(found: dict[str, list[Any]]) -> None:
    """Each row's loss, and each weight's gradient on both ranks, although the ranks have different numbers of rows."""
    for one, two in steps(found):
        torch.testing.assert_close(torch.cat([rank["losses"] for rank in two]), one["losses"], rtol=1e-5, atol=1e-6)
        for rank in two:
            for mine, wanted in zip(rank["gradients"], one["gradients"], strict=True):
                torch.testing.assert_close(mine, wanted, rtol=1e-4, atol=1e-6)
        assert all(float(gradient.abs().max()) > 1e-3 for gradient in one["gradients"])


def test_the_number_of_messages_is_fixed(found: dict[str, list[Any]]) -> None:
    """Sizes, positives and vectors out, gradients back, whatever rows a rank has: ranks cannot wait for each other."""
    for one, two in steps(found):
        assert one["collectives"] == []
        for rank in two:
            assert rank["collectives"] == ["all_gather", "all_gather", "all_gather", "all_reduce"]


def test_ranks_that_learned_apart_merge(found: dict[str, list[Any]]) -> None:
    """Each rank saw its own rows only; gathered and merged, both say the same of all items, as a merge in one place."""
    settings = StreamingSettings(window=4, buckets=16, hashes=2)
    parts = [StreamingFrequency(settings, rank_process.ITEMS, 3) for _ in range(RANKS)]
    for step in range(rank_process.STEPS):
        for part, rows in zip(parts, (slice(0, 5), slice(5, 8)), strict=True):
            part.update(rank_process.the_batch(step).positives[rows])
    parts[0].merge(parts[1:])
    wanted = parts[0].chances(torch.arange(rank_process.ITEMS))
    for rank in found["two"]:
        assert torch.equal(rank["merged"], wanted)
    assert not torch.equal(found["one"][0]["merged"], wanted)


def test_a_process_on_its_own_is_the_whole_batch() -> None:
    """Nothing travels, gradients pass, and the mean loss is multiplied by 1."""
    batch = global_batch(torch.tensor([4, 2]))
    vectors = torch.ones(2, 3, requires_grad=True)
    batch.vectors(vectors).sum().backward()
    assert (batch.positives.tolist(), batch.first, batch.share) == ([4, 2], 0, 1.0)
    assert vectors.grad is not None
    assert vectors.grad.eq(1).all()
    assert states_of_ranks({"a": vectors}) == [{"a": vectors}]


def test_vectors_of_other_rows_are_refused() -> None:
    """One vector for each of this rank's positives; the others would wait for what never comes."""
    with pytest.raises(DataError, match=r"shape \(3, 2\); expected \[B, d\], one for each of this rank's 2 positives"):
        global_batch(torch.tensor([4, 2])).vectors(torch.ones(3, 2))
