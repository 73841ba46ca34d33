"""Hatchway inside Lightning: the module draws a ledger in its training step, and a large batch in micro-batches.

Run ``python examples/lightning_module.py``; it needs ``pip install lightning``. Every row of a batch of 1,000 competes
with all other rows' positives, and yet no more than 250 rows are in the encoders at a time (gradient caching).
"""

import lightning
import torch
from small_shop import Shop, small_shop
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.micro_batches import in_micro_batches, unique_in_micro_batches
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger, with_masked
from hatchway.negatives.sources import SharedSource
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

SEED = 7


def encoder() -> nn.Module:
    """Return an encoder of [M, 3] words; think of something much heavier."""
    return nn.Sequential(nn.EmbeddingBag(19, 32), nn.Dropout(0.1), nn.Linear(32, 32))


class TwoTower(lightning.LightningModule):
    """Two encoders, trained with corrected in-batch and uniform negatives."""

    def __init__(self, shop: Shop) -> None:
        super().__init__()
        self.query_encoder, self.item_encoder = encoder(), encoder()
        self.loss = SampledSoftmax(temperature=1.0)
        self.sources: list[SharedSource] = [InBatch(ExactCounts(shop.counts)), Uniform(len(shop.titles), draws=50)]
        self.shop = shop

    def training_step(self, batch: list[Tensor]) -> Tensor:
        """Return the loss of (looked at, saved) rows."""
        looked_at, saved = batch
        # The step's number names the draws, so a run that Lightning resumes draws what it would have drawn.
        ledger = draw_ledger(saved, self.sources, torch_stream(SEED, "negatives", self.global_step), "uncorrected")
        ledger = with_masked(ledger, engaged_columns(ledger, looked_at, torch.arange(len(saved) + 1)))
        words = self.shop.words
        query = in_micro_batches(lambda part: self.query_encoder(words[looked_at[part]]), len(looked_at), 250)
        columns = unique_in_micro_batches(lambda items: self.item_encoder(words[items]), ledger.items, 250)
        value: Tensor = self.loss(query, columns[: len(saved)], columns, ledger)
        self.log("loss", value)
        return value

    def validation_step(self, batch: list[Tensor]) -> None:
        """Log recall@10 over the whole catalogue."""
        (looked_at,) = batch
        queries = self.query_encoder(self.shop.words[looked_at])
        self.log("recall@10", self.shop.recall(queries @ self.item_encoder(self.shop.words).T))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Return the optimiser."""
        return torch.optim.Adam(self.parameters(), lr=0.02)


def main() -> None:
    """Train, and say what it brought."""
    torch.manual_seed(SEED)
    shop = small_shop()
    model = TwoTower(shop)
    trainer = lightning.Trainer(
        max_epochs=12,
        accelerator="cpu",
        num_sanity_val_steps=0,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    training = DataLoader(TensorDataset(shop.looked_at, shop.saved), batch_size=1000, shuffle=True)
    # All test pairs are one batch here, because the shop compares with all of them.
    validation = DataLoader(TensorDataset(shop.test_looked_at), batch_size=len(shop.test_looked_at))
    (before,) = trainer.validate(model, validation, verbose=False)
    trainer.fit(model, training, validation)
    after = trainer.callback_metrics
    print(f"recall@10, untrained: {before['recall@10']:.3f}")
    print(f"recall@10, trained:   {after['recall@10']:.3f}")


if __name__ == "__main__":
    main()
