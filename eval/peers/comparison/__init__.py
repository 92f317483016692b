"""Doppel and other near-duplicate tools on the same input, in one run: what they cost, and what they find."""
