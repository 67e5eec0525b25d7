"""What calls cost: your own prices, or the list prices that come with `genai-prices`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from acefraud.llm.call import Call, Role

Price: TypeAlias = tuple[float, float]
"""US dollars for a million input tokens and for a million output tokens."""


def price_of(model: str, input_tokens: int, output_tokens: int, own: Mapping[str, Price]) -> float | None:
    """US dollars for these tokens; None if no price is known.

    >>> price_of("openai:mine", 1_000_000, 500_000, {"openai:mine": (0.2, 0.8)})
    0.6
    """
    if model in own:
        per_input, per_output = own[model]
        return round((input_tokens * per_input + output_tokens * per_output) / 1_000_000, 12)
    return _list_price(model, input_tokens, output_tokens)


def highest_cost(call: Call, own: Mapping[str, Price]) -> float | None:
    """The most that a call can cost, known before it is sent; None if no price is known."""
    output_tokens = 0 if call.role is Role.EMBEDDING else call.max_tokens
    return price_of(call.model, call.most_input_tokens, output_tokens, own)


def _list_price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - an optional package, and slow to load
    except ModuleNotFoundError:
        return None
    provider, _, name = model.partition(":")
    tokens = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        # The prices that come with the package: nothing is downloaded.
        priced = calc_price(tokens, name, provider_id=provider.removesuffix("-chat").removesuffix("-responses"))
    except LookupError:
        return None
    return float(priced.total_price)
