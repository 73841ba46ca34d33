"""implicit's matrix factorisation by BPR: ``... ARRAYS bpr ROUNDS`` prints the median as JSON.

One uniform negative for every positive, 64 factors, a million items, two million positives of 100,000 buyers. What is
printed is the time of 4,096 positives in an epoch. Run in the peer's environment (``install.sh``).
"""

import json
import statistics
import sys
import time

import numpy as np
from implicit.bpr import BayesianPersonalizedRanking
from scipy.sparse import csr_matrix

BUYERS, ITEMS, POSITIVES = 100_000, 1_000_000, 2_000_000


def main() -> None:
    """Measure."""
    random = np.random.default_rng(1)
    items = (((random.random(POSITIVES) * (ITEMS**0.2 - 1) + 1) ** 5).astype(np.int64) - 1).clip(0, ITEMS - 1)
    pairs = (np.ones(POSITIVES, np.float32), (random.integers(BUYERS, size=POSITIVES), items))
    matrix = csr_matrix(pairs, shape=(BUYERS, ITEMS))
    seconds = []
    for turn in range(-1, max(2, int(sys.argv[3]) // 5)):
        model = BayesianPersonalizedRanking(factors=64, iterations=1, verify_negative_samples=True, random_state=1)
        ends = []
        for iterations in (1, 3):  # the difference leaves out what is done once
            model.iterations = iterations
            begin = time.perf_counter()
            model.fit(matrix, show_progress=False)
            ends.append(time.perf_counter() - begin)
        if turn >= 0:
            seconds.append((ends[1] - ends[0]) / 2 * 4_096 / matrix.nnz)
    print(json.dumps({"seconds": statistics.median(seconds)}))


if __name__ == "__main__":
    main()
