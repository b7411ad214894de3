"""What is there: groups, pins, the history, its fingerprint, the ledger, and how broken lists are repaired."""
