"""How the service keeps up with its catalogue, what it takes, and what it writes down."""

from typing import Literal

import pydantic

from hatchway.settings import Settings


class ServingSettings(Settings):
    """The service's own settings; how the pages look is in :class:`~hatchway.serving.listings.PageSettings`.

    Attributes:
        poll_seconds: how often the pointer of a nights folder is looked at.
        writers: who may post listings: programs of this machine, or of any.
        batch_limit: the most listings in one post.
        body_limit: the most bytes in the body of a request.
        new_limit: the most new listings that are held; a new bundle that knows them makes room.
        ahead_seconds: how far ahead of the server's clock the times of a post may be; such a post holds from now on.
        forget_days: what was posted is kept for as many days of data, also where a bundle has come to say the same.
        exact_up_to: where at most this many items pass a filter, all of them are scored.
        deepest: how deep the index is searched before all items that may be shown are scored.
        log_rows: write down what was shown.
        flush_seconds: the most seconds of shown rows that a crash may lose.
        flush_rows: written earlier where as many rows are waiting.
        waiting_limit: the most rows that wait to be written; what is beyond it is counted and dropped.
        buyer_ids: the type of the buyers' ids in the store that shown rows are imported into.
    """

    poll_seconds: float = pydantic.Field(default=1.0, gt=0)
    writers: Literal["this machine", "anyone"] = "this machine"
    batch_limit: int = pydantic.Field(default=1_000, ge=1)
    body_limit: int = pydantic.Field(default=8 * 2**20, ge=1_024)
    new_limit: int = pydantic.Field(default=200_000, ge=0)
    ahead_seconds: int = pydantic.Field(default=3_600, ge=0)
    forget_days: int = pydantic.Field(default=60, ge=0)
    exact_up_to: int = pydantic.Field(default=20_000, ge=0)
    deepest: int = pydantic.Field(default=2_048, ge=1)
    log_rows: bool = True
    flush_seconds: float = pydantic.Field(default=2.0, gt=0)
    flush_rows: int = pydantic.Field(default=20_000, ge=1)
    waiting_limit: int = pydantic.Field(default=1_000_000, ge=1)
    buyer_ids: Literal["string", "integer"] = "string"
