"""One request: from messages to a view, what is remembered between calls, and recovery after a refusal."""
