"""contextfold keeps a long agent conversation inside a model's context window and accounts for every message."""
