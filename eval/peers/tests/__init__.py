"""Tests of the comparison: `python3 -m unittest discover -s eval/peers/tests -t eval/peers`."""
