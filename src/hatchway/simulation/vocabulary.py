"""The words of the market: its categories, styles, woods, fabrics and sizes, and how sellers spell them.

Everything inside the market is a small integer; the words appear only in titles, searches and catalogue columns.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Category:
    """One kind of furniture.

    Attributes:
        name: as it stands in the catalogue.
        share: relative share of the models that are of this kind.
        price: typical price, in the market's currency.
        upholstered: whether fabric shows (otherwise wood does).
        nouns: what sellers call it; the first one is what buyers type.
        sizes: how the three sizes are called, small to large.
        width: typical width in centimetres of the middle size.
    """

    name: str
    share: float
    price: float
    upholstered: bool
    nouns: tuple[str, str, str]
    sizes: tuple[str, str, str]
    width: int


CATEGORIES = (
    Category("sofa", 16, 420, True, ("sofa", "couch", "settee"), ("2-seater", "3-seater", "corner"), 205),
    Category("armchair", 11, 180, True, ("armchair", "easy chair", "lounge chair"), ("small", "classic", "wide"), 82),
    Category("chair", 11, 65, False, ("chair", "dining chair", "side chair"), ("single", "two", "four"), 46),
    Category(
        "dining table", 9, 320, False, ("dining table", "kitchen table", "table"), ("4-seat", "6-seat", "8-seat"), 165
    ),
    Category(
        "coffee table", 9, 110, False, ("coffee table", "side table", "low table"), ("small", "medium", "large"), 95
    ),
    Category("desk", 7, 190, False, ("desk", "writing desk", "work table"), ("compact", "standard", "large"), 130),
    Category("bed", 8, 340, True, ("bed", "bed frame", "bedstead"), ("single", "double", "king-size"), 150),
    Category("wardrobe", 6, 300, False, ("wardrobe", "armoire", "closet"), ("1-door", "2-door", "3-door"), 110),
    Category("bookcase", 7, 140, False, ("bookcase", "bookshelf", "shelving unit"), ("low", "tall", "wide"), 90),
    Category("sideboard", 6, 360, False, ("sideboard", "credenza", "buffet"), ("2-door", "3-door", "4-door"), 160),
    Category("lamp", 6, 55, False, ("lamp", "floor lamp", "standing lamp"), ("small", "medium", "tall"), 40),
    Category("rug", 5, 130, True, ("rug", "carpet", "area rug"), ("small", "medium", "large"), 200),
    Category("mirror", 4, 90, False, ("mirror", "wall mirror", "looking glass"), ("small", "medium", "large"), 70),
)

STYLES = ("mid-century", "scandinavian", "industrial", "rustic", "art deco", "bohemian", "victorian", "modern")

# What sellers write for a style; every style has four spellings.
STYLE_WORDS = (
    ("mid-century", "60s", "mid-century modern", "retro"),
    ("scandinavian", "scandi", "nordic", "danish design"),
    ("industrial", "loft", "factory style", "industrial"),
    ("rustic", "farmhouse", "country", "cottage"),
    ("art deco", "deco", "1930s", "art déco"),
    ("bohemian", "boho", "boho chic", "bohemian"),
    ("victorian", "antique", "victorian style", "19th century"),
    ("modern", "contemporary", "minimalist", "modern"),
)

WOODS = ("teak", "oak", "walnut", "pine", "mahogany", "birch", "sheesham", "rattan", "black", "white")
FABRICS = (
    "grey", "navy", "forest green", "mustard", "terracotta", "cream",
    "blush", "charcoal", "tan leather", "oxblood", "teal", "sage",
)  # fmt: skip

# Invented makers' names for models; a seller who knows the name writes it.
MAKERS = (
    "Halden", "Ostra", "Linnea", "Brackwell", "Merrow", "Tofta", "Calder", "Vesper",
    "Arden", "Sorrel", "Kestrel", "Junia", "Marlow", "Fenwick", "Isola", "Dunmore",
    "Hazel", "Corvid", "Petra", "Wexley", "Bramble", "Nordby", "Lyra", "Ashcombe",
)  # fmt: skip

# Names that makers gave to their models: a beginning and an end.
NAME_BEGINS = (
    "Al", "Bor", "Cas", "Dor", "El", "Fal", "Gre", "Hol", "Iv", "Jos", "Kal", "Lun", "Mal", "Nor", "Ol",
    "Pel", "Quin", "Ros", "Sal", "Tor", "Ul", "Var", "Wil", "Yor", "Zel", "Bra", "Cle", "Fro", "Sten", "Tri",
)  # fmt: skip
NAME_ENDS = (
    "ina", "by", "mar", "vik", "den", "esta", "ora", "wick", "una", "holm",
    "ette", "ano", "ley", "sund", "is", "orra", "elle", "ton", "ika", "umn",
)  # fmt: skip
NAMES = len(NAME_BEGINS) * len(NAME_ENDS)

# What can be said of a model beside its looks; every kind of furniture has twelve such details, a model two of them.
DETAILS_OF_KIND = {
    "sofa": "buttoned back, loose cushions, sleeper function, storage inside, tapered legs, rolled arms, high back, "
    "chaise on the left, washable covers, feather filling, piped seams, castors in front",
    "armchair": "wingback, swivel base, with footstool, recliner, cane sides, open arms, deep seat, barrel shape, "
    "buttoned back, rocking, turned legs, loose cushion",
    "chair": "woven seat, ladder back, spindle back, stackable, padded seat, with arms, bentwood, folding, cross back, "
    "carved crest, splayed legs, plywood shell",
    "dining table": "extendable, drop leaf, pedestal foot, trestle legs, round top, oval top, drawer at one end, "
    "glass top, hairpin legs, live edge, tiled top, two spare leaves",
    "coffee table": "lower shelf, lift top, glass top, nesting, with drawer, hairpin legs, round top, tray top, "
    "tiled top, on wheels, waterfall edge, kidney shape",
    "desk": "roll top, three drawers, keyhole cover, leather top, sit-stand frame, secret drawer, corner shape, "
    "hutch on top, filing drawer, trestle legs, fold-down front, cable tray",
    "bed": "slatted base, storage drawers, four-poster, upholstered headboard, sleigh shape, metal feet, "
    "trundle below, lift-up base, canopy frame, spindle headboard, low platform, carved posts",
    "wardrobe": "mirror door, sliding doors, hanging rail, shelves inside, hat box above, drawer below, flat-pack, "
    "louvred doors, key and lock, shoe rack, panelled sides, cornice on top",
    "bookcase": "glass doors, adjustable shelves, open back, ladder rail, wall-mounted, cupboard below, revolving, "
    "room divider, stepped shape, brass fittings, cubes, arched top",
    "sideboard": "sliding doors, wine rack, three drawers, tambour front, fluted doors, marble top, cutlery tray, "
    "brass handles, raised feet, cane doors, record space, mirrored back",
    "lamp": "arc shape, tripod foot, pleated shade, glass globe, dimmer switch, brass stem, reading arm, paper shade, "
    "marble foot, pull cord, adjustable height, two arms",
    "rug": "hand-knotted, flat-woven, fringed, reversible, wool pile, jute, round, runner, shaggy, washable, "
    "kilim pattern, tufted",
    "mirror": "arched top, bevelled edge, gilt frame, full length, round, sunburst, with shelf, tilting, oval, "
    "carved frame, foxed glass, hinged wings",
}  # fmt: skip
DETAILS = tuple(tuple(DETAILS_OF_KIND[category.name].split(", ")) for category in CATEGORIES)

CONDITIONS = ("like new", "very good condition", "good condition", "some wear", "needs love")

# Asking price relative to the typical one, by style and by condition.
STYLE_PRICE = (1.25, 1.05, 1.0, 0.85, 1.35, 0.8, 1.15, 1.0)
CONDITION_PRICE = (1.2, 1.05, 0.95, 0.75, 0.5)
SIZE_PRICE = (0.75, 1.0, 1.4)
