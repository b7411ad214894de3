"""contextfold keeps a long agent conversation inside a model's context window and accounts for every message."""

__version__ = "0.1.0"
