"""How large the market is and how its people behave; the rules that use these numbers stand in docs/market.md."""

from pydantic import Field

from hatchway.settings import Settings


class MarketSettings(Settings):
    """The market's size, and the constants of its rules.

    The defaults of everything below ``days`` are the market: experiments vary the size and the seed, not the rules.
    """

    listings: int = Field(
        default=6_000, ge=100, le=100_000_000, description="Listings over the whole time, gone ones included."
    )
    buyers: int = Field(default=2_000, ge=10, le=100_000_000, description="Buyers.")
    days: int = Field(default=14, ge=1, le=365, description="Days that are simulated.")
    start: int = Field(default=1_772_323_200, ge=0, multiple_of=86_400, description="First second (2026-03-01, UTC).")

    initial_share: float = Field(default=0.6, gt=0, le=1, description="Share of listings there before the first day.")
    relist_share: float = Field(default=0.12, ge=0, le=0.5, description="Share that relist a seller's earlier listing.")
    objects_per_model: float = Field(default=2.5, ge=1, description="Objects of one model, on average, over sellers.")
    dealer_share: float = Field(default=0.06, ge=0, le=1, description="Share of objects sold by dealers, from stock.")
    makers_share: float = Field(
        default=0.25, ge=0, le=1, description="Share of sellers who use the maker's picture and words."
    )
    stale_share: float = Field(
        default=0.05, ge=0, le=1, description="Share of private objects whose seller forgot them."
    )
    niche_share: float = Field(default=0.1, ge=0, le=1, description="Share of models for the few, not for everybody.")
    lifetime_days: float = Field(default=35.0, gt=0, description="Days after which an unsold listing is taken down.")

    sessions_per_day: float = Field(default=0.35, gt=0, le=2, description="Sessions of the average buyer in a day.")
    need_days: float = Field(default=6.0, gt=1, description="Days that a buyer looks for the same kind of furniture.")
    drift: float = Field(default=0.35, ge=0, le=1, description="How far tastes have moved by the last day; 1: wholly.")

    slots: int = Field(default=8, ge=2, le=40, description="Listings shown on a page.")
    position_bias: float = Field(default=0.7, ge=0, description="Slot p is looked at with probability p^-this.")
    popularity_weight: float = Field(
        default=0.7, ge=0, description="How strongly the old recommender favours the popular."
    )
