"""Cells of vectors: directions that belong together share one."""

import numpy as np

from hatchway.index.cells import cells_of, centres_of


def test_directions_that_belong_together_share_a_cell() -> None:
    """Eight tight bundles of directions, at any length, fall into eight cells with the bundles' means as centres."""
    random = np.random.default_rng(1)
    true = np.linalg.qr(random.standard_normal((8, 8)))[0].astype(np.float32)
    of = random.integers(8, size=2000)
    vectors = (true[of] + 0.02 * random.standard_normal((2000, 8))) * np.exp(random.standard_normal((2000, 1)))
    centres = centres_of(vectors.astype(np.float32), np.arange(2000), 8, seed=3)
    np.testing.assert_allclose(np.linalg.norm(centres, axis=1), 1, rtol=1e-6)
    cells = cells_of(vectors.astype(np.float32), centres)
    assert len({(bundle, cell) for bundle, cell in zip(of, cells, strict=True)}) == 8
    assert (np.einsum("nd,nd->n", true[of], centres[cells]) > 0.999).all()


def test_cells_are_the_same_again_and_others_with_another_seed() -> None:
    """Nothing is drawn from anywhere but the seed."""
    vectors = np.random.default_rng(2).standard_normal((500, 4)).astype(np.float32)
    first, again, other = (centres_of(vectors, np.arange(500), 20, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_no_centre_stays_empty_where_vectors_differ() -> None:
    """A centre that lost its vectors moves to one that fits badly where it is."""
    vectors = np.concatenate([np.tile([[1.0, 0.0]], (300, 1)), [[0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]]).astype(
        np.float32
    )
    centres = centres_of(vectors, np.arange(303), 4, seed=1)
    assert len(set(cells_of(vectors, centres).tolist())) == 4


def test_zero_vectors_have_cells_too() -> None:
    """Vectors without a direction break nothing."""
    vectors = np.zeros((30, 3), np.float32)
    centres = centres_of(vectors, np.arange(30), 5, seed=1)
    assert np.isfinite(centres).all()
    assert set(cells_of(vectors, centres).tolist()) == {0}
