"""Your own encoders in your own loop: Hatchway draws the negatives, keeps their ledger, and is the loss.

Run ``python examples/plain_loop.py``. The encoders here are a bag of words each; anything that returns vectors will do.
"""

import torch
from small_shop import Shop, small_shop
from torch import Tensor, nn

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger, with_masked
from hatchway.negatives.sources import SharedSource
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

SEED, EPOCHS, BATCH = 7, 8, 250


class Words(nn.Module):
    """The encoder: the mean of a title's words, and a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(19, 32)
        self.layer = nn.Linear(32, 32)

    def forward(self, words: Tensor) -> Tensor:
        """Encode [M, 3] words as [M, 32] vectors of length 1."""
        return nn.functional.normalize(self.layer(self.words(words)), dim=1)


@torch.no_grad()
def recall(shop: Shop, query_encoder: nn.Module, item_encoder: nn.Module) -> float:
    """Return recall@10 over the whole catalogue: the score is the dot product, here as in training."""
    queries: Tensor = query_encoder(shop.words[shop.test_looked_at])
    return shop.recall(queries @ item_encoder(shop.words).T)


def main() -> None:
    """Train, and say what it brought."""
    torch.manual_seed(SEED)
    shop = small_shop()
    query_encoder, item_encoder = Words(), Words()
    loss = SampledSoftmax(temperature=0.1, learn_temperature=True)
    parameters = [*query_encoder.parameters(), *item_encoder.parameters(), *loss.parameters()]
    optimiser = torch.optim.Adam(parameters, lr=0.01)

    # Where negatives come from. In-batch ones are as frequent as they are popular, which the ledger corrects; uniform
    # ones reach what nobody has saved yet.
    sources: list[SharedSource] = [InBatch(ExactCounts(shop.counts)), Uniform(len(shop.titles), draws=50)]

    print(f"recall@10, popularity: {shop.recall(shop.counts.double().expand(len(shop.test_saved), -1)):.3f}")
    print(f"recall@10, untrained:  {recall(shop, query_encoder, item_encoder):.3f}")
    step = 0
    for epoch in range(EPOCHS):
        order = torch.randperm(len(shop.saved), generator=torch_stream(SEED, "shuffle", epoch))
        for rows in order.split(BATCH):
            looked_at, saved = shop.looked_at[rows], shop.saved[rows]
            ledger = draw_ledger(saved, sources, torch_stream(SEED, "negatives", step), "uncorrected")
            # The listing that a buyer is looking at is no negative for that buyer. (More known items a row: more
            # between two offsets.)
            ledger = with_masked(ledger, engaged_columns(ledger, looked_at, torch.arange(len(rows) + 1)))

            query = query_encoder(shop.words[looked_at])
            columns = item_encoder(shop.words[ledger.items])  # the first ones are the rows' own positives
            value = loss(query, columns[: len(rows)], columns, ledger)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
            step += 1
    print(f"recall@10, trained:    {recall(shop, query_encoder, item_encoder):.3f}")
    print(f"temperature, learned:  {float(loss.temperature.detach()):.3f}")


if __name__ == "__main__":
    main()
