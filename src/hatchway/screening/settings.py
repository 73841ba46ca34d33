"""What may not stand as a negative, as settings: each reason can be switched off by itself."""

import pydantic

from hatchway.settings import Settings


class ScreeningSettings(Settings):
    """Which candidates are hidden positives; docs/screening.md says what each reason finds and what it misses.

    Attributes:
        engaged_days: a buyer's engagements of so many days before the row are no negatives for it. Where the log has no
            times, all of the buyer's training engagements. 0 switches the reason off.
        seller: what the positive's own seller offers is no negative for it (column ``seller``).
        seller_share: a seller of more than this share of the catalogue is a shop whose things are no relists of each
            other: not screened by seller.
        photo: near-identical photos are no negatives for each other (column ``photo``).
        photo_radius: at most so many of the 64 bits of two photos' hashes differ.
        photo_difference: where image files are at hand, photos with near hashes are laid over each other, and the worst
            hundredth may differ by this share of what they show.
        photo_variants: where image files are at hand, a photo is also compared mirrored and cropped.
        photo_most: a photo that is like more than so many others is a placeholder and matches none.
        title: titles that say the same are no negatives for each other (column ``title``).
        title_threshold: how similar two titles must be, after normalisation; 1 is equal.
        title_bits: how much more two titles must say in common than would single one item out of the catalogue, in
            bits; with each bit, half as many titles are alike by chance.
        title_most: a title that is like more than so many others says too little and matches none.
    """

    engaged_days: float = pydantic.Field(default=30.0, ge=0)
    seller: bool = True
    seller_share: float = pydantic.Field(default=0.1, gt=0, le=1)
    photo: bool = True
    photo_radius: int = pydantic.Field(default=8, ge=0, le=16)
    photo_difference: float = pydantic.Field(default=0.12, gt=0, le=1)
    photo_variants: bool = True
    photo_most: int = pydantic.Field(default=200, ge=1)
    title: bool = True
    title_threshold: float = pydantic.Field(default=0.9, gt=0, le=1)
    title_bits: float = 2.0
    title_most: int = pydantic.Field(default=200, ge=1)
