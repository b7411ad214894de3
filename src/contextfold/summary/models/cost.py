"""What requests to a model cost, by the price tables of genai-prices.

What belongs here: looking a price up. What does not: counting tokens. Uses no network.
"""

from __future__ import annotations


def price(name: str, input_tokens: int, output_tokens: int) -> float | None:
    """US dollars for these tokens of the model ``name``, ``PROVIDER:MODEL``; None for others, and if it is not known.

    Input counts in full, also where the provider had it cached.
    """
    provider, colon, model = name.partition(":")
    if not colon:
        return None
    from genai_prices import Usage, calc_price  # 1.6 MB of tables: only when there is something to price

    usage = Usage(input_tokens=input_tokens, output_tokens=output_tokens)
    try:
        found = calc_price(usage, model, provider_id=provider)
    except (LookupError, ValueError):
        return None
    return float(found.total_price)
