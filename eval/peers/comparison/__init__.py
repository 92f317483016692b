"""Doppel and other near-duplicate tools on the same input, in one run: their costs and their findings."""
