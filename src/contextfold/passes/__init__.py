"""One compaction: the question, the decision, and how it is performed."""
