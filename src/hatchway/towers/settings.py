"""What a model is made of."""

from typing import Literal, Self

import pydantic

from hatchway.data.contexts import HistoryOf
from hatchway.settings import Settings


class ItemSettings(Settings):
    """The item tower.

    Attributes:
        id: give every item a vector of its own; without it an item is what its columns say.
        categories: catalogue columns whose values are names.
        numbers: catalogue columns that are numbers; missing values are marked, not guessed.
        texts: catalogue columns that are read as words and character n-grams.
        vectors: catalogue columns that hold ready-made vectors, all of one length.
        length: ``one``: the vectors of a normalised model have length 1. ``learned``: every item's has a length of its
            own, so that a score can be higher for whatever the query, as of an item that many want, and the direction
            is left to say for whom.
        id_dropout: the share of items in a training batch whose own vector is hidden, so that the columns alone learn
            to place an item; only where there are columns.
        value_dropout: the share of the categories in a training batch that are read as unknown, so that a later item of
            a category that was not there at training is placed by what else is known of it.
        hidden: width of the hidden layer over the columns.
    """

    id: bool = True
    categories: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    length: Literal["one", "learned"] = "one"
    id_dropout: float = pydantic.Field(default=0.1, ge=0, lt=1)
    value_dropout: float = pydantic.Field(default=0.05, ge=0, lt=1)
    hidden: int = pydantic.Field(default=128, ge=1)

    @property
    def columns(self) -> tuple[str, ...]:
        """All catalogue columns that the tower reads."""
        return (*self.categories, *self.numbers, *self.texts, *self.vectors)

    @pydantic.model_validator(mode="after")
    def _something(self) -> Self:
        if not self.id and not self.columns:
            raise ValueError("an item tower without id needs at least one of categories, numbers, texts, vectors")
        repeated = [name for name in self.columns if self.columns.count(name) > 1]
        if repeated:
            raise ValueError(f"column {repeated[0]!r} is named twice; an item column is read one way")
        return self


class ContextSettings(Settings):
    """The context tower.

    Attributes:
        query_item: use the listing that is being looked at.
        history: L, how many of the buyer's last engagements to use; 0 for none.
        history_of: what a training row's history holds. ``before``: what its buyer did before it, weighted by place.
            ``others``: everything else that its buyer did, all alike (SVD++, Koren 2008), for logs that do not say
            when.
        pools: how many means of the history are taken, each with weights of its own for the places counted from the
            most recent; with ``history_of = "before"`` only. The first begins with all places alike, the next with the
            very last ones, and each further one looks back four times as far.
        vectors: what stands for an item that is looked at, or in a history. ``own``: a vector for either purpose.
            ``item``: the vector that the item tower has of the item's id; a third of the numbers to be learned.
        text: use the query text, where the log has one.
        buyer: give every buyer a vector of its own as well; unknown buyers have none.
        hidden: width of the hidden layer; 0 for none, the query is then the sum of its parts.
    """

    query_item: bool = True
    history: int = pydantic.Field(default=20, ge=0)
    history_of: HistoryOf = "before"
    pools: int = pydantic.Field(default=1, ge=1, le=16)
    vectors: Literal["own", "item"] = "own"
    text: bool = True
    buyer: bool = False
    hidden: int = pydantic.Field(default=128, ge=0)

    @pydantic.model_validator(mode="after")
    def _something(self) -> Self:
        if not (self.query_item or self.history or self.text or self.buyer):
            raise ValueError("a context tower needs at least one of query_item, history, text, buyer")
        if self.pools > 1 and (not self.history or self.history_of == "others"):
            raise ValueError(f"context.pools is {self.pools}, but there is no history whose places have an order")
        return self


class ModelSettings(Settings):
    """A two-tower model.

    Attributes:
        kind: ``context`` (query item, history, text) or ``factorisation`` (one vector a buyer, one an item).
        dimension: d, the width of the vectors that are compared.
        normalise: scale both vectors to length 1, so that the score is a cosine; the served score is the trained one.
        initial_scale: standard deviation of the tables at the start.
        text_buckets: rows of the tables of text n-grams.
        item: the item tower.
        context: the context tower; not used by ``factorisation``.
    """

    kind: Literal["context", "factorisation"] = "context"
    dimension: int = pydantic.Field(default=64, ge=1, le=4096)
    normalise: bool = True
    initial_scale: float = pydantic.Field(default=0.1, gt=0)
    text_buckets: int = pydantic.Field(default=2**17, ge=1)
    item: ItemSettings = ItemSettings()
    context: ContextSettings = ContextSettings()

    @pydantic.model_validator(mode="after")
    def _fit(self) -> Self:
        if self.item.length == "learned" and not (self.normalise and self.item.id):
            raise ValueError("item.length is 'learned', which needs normalise and item.id; without them leave it 'one'")
        if self.kind == "context" and self.context.vectors == "item" and not self.item.id:
            raise ValueError("context.vectors is 'item', but item.id is false: there are no such vectors")
        return self
