"""What calls cost, by the list prices that come with `genai-prices` or by prices of one's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from acefraud.errors import ConfigurationError
from acefraud.llm.calling import Call, Role

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    input: float
    output: float = 0.0

    def __post_init__(self) -> None:
        if not (0 <= self.input < float("inf") and 0 <= self.output < float("inf")):
            raise ConfigurationError(f"a price is a number of US dollars from 0 up, not {self.input} and {self.output}")


def price_of(model: str, input_tokens: int, output_tokens: int, own: Mapping[str, Price]) -> float | None:
    """US dollars for so many tokens; None where nobody gave a price.

    >>> price_of("openai:mine", 1_000_000, 500_000, {"openai:mine": Price(input=0.2, output=0.8)})
    0.6
    """
    price = own.get(model)
    if price is not None:
        return round((input_tokens * price.input + output_tokens * price.output) / _MILLION, 12)
    return _list_price(model, input_tokens, output_tokens)


def most_it_can_cost(call: Call, own: Mapping[str, Price]) -> float | None:
    """The highest price of a call before it is sent; None where nobody gave a price."""
    written = 0 if call.role is Role.EMBEDDING else call.max_tokens
    return price_of(call.model, call.most_input_tokens, written, own)


def _list_price(model: str, input_tokens: int, output_tokens: int) -> float | None:
    try:
        from genai_prices import Usage, calc_price  # noqa: PLC0415 - an optional package, and slow to load
    except ModuleNotFoundError:
        return None
    provider, _, name = model.partition(":")
    tokens = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        # The prices that came with the package: nothing is downloaded here.
        priced = calc_price(tokens, name, provider_id=provider.removesuffix("-chat").removesuffix("-responses"))
    except LookupError:
        return None
    return float(priced.total_price)
