"""Hatchway as a loss of sentence-transformers: in-batch and uniform negatives, corrected, under its own trainer.

Run ``python examples/sentence_transformers_loss.py``; it needs ``pip install 'sentence-transformers[train]'``. The
model is made from scratch, a vector for each word, so that nothing has to be downloaded; any ``SentenceTransformer``
will do.
"""

import tempfile
from collections.abc import Iterable

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from small_shop import Shop, small_shop
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn

from hatchway.frequency.exact import ExactCounts
from hatchway.losses.sampled_softmax import SampledSoftmax
from hatchway.negatives.in_batch import InBatch
from hatchway.negatives.ledger import draw_ledger, with_masked
from hatchway.negatives.sources import SharedSource
from hatchway.negatives.uniform import Uniform
from hatchway.randomness import torch_stream
from hatchway.screening.engaged import engaged_columns

SEED = 7


class LedgerLoss(nn.Module):
    """The corrected softmax over the batch's positives and uniform draws from the catalogue.

    Args:
        model: the model that is trained.
        shop: the catalogue, and how often each listing is a positive.
        draws: uniform negatives of a batch.
    """

    def __init__(self, model: SentenceTransformer, shop: Shop, draws: int) -> None:
        super().__init__()
        self.model = model
        self.shop = shop
        self.sources: list[SharedSource] = [InBatch(ExactCounts(shop.counts)), Uniform(len(shop.titles), draws)]
        self.loss = SampledSoftmax(temperature=1.0)
        self.step = 0  # names the draws; a trainer that resumes sets it to the step it resumes at

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Return the mean loss; the labels are (row looked at, row saved)."""
        query, positive = (self.model(features)["sentence_embedding"] for features in sentence_features)
        looked_at, saved = labels.T
        ledger = draw_ledger(saved, self.sources, torch_stream(SEED, "negatives", self.step), "uncorrected")
        ledger = with_masked(ledger, engaged_columns(ledger, looked_at, torch.arange(len(saved) + 1)))
        self.step += 1
        drawn = [self.shop.titles[row] for row in ledger.items[len(saved) :].tolist()]
        uniform = self.model(self.model.preprocess(drawn))["sentence_embedding"]
        result: Tensor = self.loss(query, positive, torch.cat([positive, uniform]), ledger)
        return result


def word_model(titles: list[str]) -> SentenceTransformer:
    """Return a model whose words are those of the titles."""
    words = sorted({word for title in titles for word in title.split()})
    rows = {"[UNK]": 0} | {word: row for row, word in enumerate(words, 1)}
    tokenizer = Tokenizer(WordLevel(rows, unk_token="[UNK]"))  # noqa: S106  no password
    tokenizer.pre_tokenizer = Whitespace()
    return SentenceTransformer(
        modules=[StaticEmbedding(tokenizer, embedding_dim=32)], device="cpu", similarity_fn_name="dot"
    )


def recall(shop: Shop, model: SentenceTransformer) -> float:
    """Return recall@10 over the whole catalogue."""
    vectors = model.encode(shop.titles, convert_to_tensor=True)
    return shop.recall(vectors[shop.test_looked_at] @ vectors.T)


def main() -> None:
    """Train, and say what it brought."""
    torch.manual_seed(SEED)
    shop = small_shop()
    model = word_model(shop.titles)
    pairs = Dataset.from_dict(
        {
            "looked_at": [shop.titles[row] for row in shop.looked_at.tolist()],
            "saved": [shop.titles[row] for row in shop.saved.tolist()],
            "label": torch.stack([shop.looked_at, shop.saved], 1).tolist(),
        }
    )
    print(f"recall@10, untrained: {recall(shop, model):.3f}")
    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            num_train_epochs=5,
            per_device_train_batch_size=250,
            learning_rate=0.05,
            seed=SEED,
            use_cpu=True,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=pairs, loss=LedgerLoss(model, shop, draws=50)
        )
        trainer.train()
    print(f"recall@10, trained:   {recall(shop, model):.3f}")


if __name__ == "__main__":
    main()
