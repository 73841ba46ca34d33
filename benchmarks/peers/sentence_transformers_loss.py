"""sentence-transformers' ranking loss on ready vectors: ``... ARRAYS mnrl ROUNDS`` prints the median as JSON.

Forward and backward with the uniform columns as further documents of the batch; it masks nothing and corrects nothing.
Run in the peer's environment (``install.sh``).
"""

import json
import statistics
import sys
import time

import numpy as np
import torch
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import dot_score


def main() -> None:
    """Measure."""
    arrays = np.load(sys.argv[1])
    loss_of = MultipleNegativesRankingLoss(
        torch.nn.Identity(), scale=1 / float(arrays["temperature"]), similarity_fct=dot_score
    )
    seconds = []
    for turn in range(-3, int(sys.argv[3])):
        query, items = (torch.from_numpy(arrays[name]).requires_grad_() for name in ("query", "items"))
        begin = time.perf_counter()
        documents = [items[: len(query)], items[len(query) :]]
        loss_of.compute_loss_from_embeddings([query, *documents], torch.empty(0)).backward()
        if turn >= 0:
            seconds.append(time.perf_counter() - begin)
    print(json.dumps({"seconds": statistics.median(seconds)}))


if __name__ == "__main__":
    main()
