"""What was decided: the compaction record, and the view that follows from it and a history."""
