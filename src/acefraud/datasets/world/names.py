"""Invented people and merchants, so that no text can be recognised by who is in it."""

from __future__ import annotations

from acefraud.datasets.world.dice import Dice

_FIRST = (
    "Mara", "Tobias", "Ines", "Rafael", "Priya", "Owen", "Leila", "Marcus", "Hana", "Diego", "Freya", "Samuel", "Noor",
    "Elliot", "Camila", "Jonas", "Aisha", "Victor", "Greta", "Kenji", "Paula", "Dmitri", "Rosa", "Callum", "Yara",
    "Felix", "Anneke", "Tariq", "Bianca", "Hugo",
)  # fmt: skip
_LAST = (
    "Lindqvist", "Okafor", "Brandt", "Moreau", "Castellan", "Whitlock", "Ibarra", "Novak", "Haddad", "Petrov", "Sato",
    "Delgado", "Fenwick", "Rossi", "Achterberg", "Mbeki", "Larsen", "Quigley", "Tanaka", "Vogel", "Santoro", "Pryce",
)  # fmt: skip
_FRONT = (
    "North", "Blue", "Silver", "Harbor", "Maple", "Summit", "Crown", "River", "Amber", "Stone", "Lark", "Orchard",
    "Beacon", "Copper", "Juniper", "Atlas", "Willow", "Pine", "Vista", "Ember",
)  # fmt: skip
_BACK = (
    "line", "gate", "field", "mark", "wood", "point", "way", "crest", "works", "haven", "bridge", "port", "dale",
)  # fmt: skip

KINDS: dict[str, tuple[str, ...]] = {
    "electronics": (
        "an electronics store",
        "an electronics retailer",
        "an electronics shop",
        "a consumer electronics seller",
    ),
    "groceries": ("a grocery store", "a groceries merchant", "a grocery chain", "a seller of groceries"),
    "jewellery": ("a jewellery store", "a jeweller", "a jewellery boutique", "a jewelry shop"),
    "travel": ("a travel agency", "a travel company", "a travel booking service", "a travel merchant"),
    "gift cards": ("a gift card shop", "a seller of gift cards", "a gift cards store", "a gift card retailer"),
    "crypto exchange": ("a crypto exchange", "a cryptocurrency exchange", "a crypto exchange platform"),
    "furniture": ("a furniture store", "a furniture retailer", "a furniture showroom", "a furniture seller"),
    "restaurant": ("a restaurant", "a neighbourhood restaurant", "a restaurant chain"),
    "pharmacy": ("a pharmacy", "a pharmacy chain", "a retail pharmacy"),
    "fashion": ("a fashion store", "a fashion boutique", "a fashion retailer", "a fashion label"),
    "gaming": ("a gaming platform", "a gaming merchant", "a gaming store", "a video gaming service"),
    "fuel": ("a fuel station", "a filling station (fuel)", "a fuel stop", "a fuel merchant"),
    "marketplace": ("a marketplace seller", "a marketplace", "a general marketplace"),
    "money transfer": ("a money transfer service", "a money transfer provider", "a money transfer firm"),
    "office supplies": ("an office supplies vendor", "a supplier of office supplies", "an office supplies dealer"),
}


def person(dice: Dice) -> str:
    """A customer's name, or the handle they go by."""
    first, last = dice.pick(_FIRST), dice.pick(_LAST)
    ways = (
        f"{first} {last}", f"{first} {last}", f"{first[0]}. {last}", f"'{first.lower()}_{last.lower()}'",
        f"'{first.lower()}{dice.whole(10, 99)}'", f"user {first.lower()}.{last.lower()}",
        f"customer #{dice.whole(10000, 99999)}",
    )  # fmt: skip
    return dice.pick(ways)


def merchant(dice: Dice) -> str:
    """A merchant's name, which says nothing of its trade."""
    name = dice.pick(_FRONT) + dice.pick(_BACK)
    partners = f"{dice.pick(_FRONT)} & {dice.pick(_LAST)}"
    return dice.pick((name, f"'{name}'", f"{name} Ltd", f"{name} Group", f"{name}.com", partners))
