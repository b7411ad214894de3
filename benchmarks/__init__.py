"""Measurements of contextfold: how well it compacts beside others (``replay``), and scripts for single questions."""
