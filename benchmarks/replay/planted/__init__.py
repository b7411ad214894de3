"""Facts that are planted into real conversations, to see for how long a strategy can tell them."""
