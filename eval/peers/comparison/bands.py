"""Bands and rows that fit a threshold, for tools that leave the choice to their caller."""

STEPS = 1_000
"""Number of steps of the sums that approximate integrals."""


def fitting(threshold: float, permutations: int) -> tuple[int, int]:
    """Returns the bands and rows with the fewest false positives and false negatives, by the rule of datasketch and text-dedup.

    Pairs of similarity s share one of b bands of r rows with probability 1 - (1 - s^r)^b. False positives are the
    integral of this probability below the threshold. False negatives are the integral of its complement above the threshold.
    """
    choices = [
        (bands, rows)
        for bands in range(1, permutations + 1)
        for rows in range(1, permutations // bands + 1)
    ]
    return min(choices, key=lambda choice: _wrong(threshold, *choice))


def _wrong(threshold: float, bands: int, rows: int) -> float:
    def missed(similarity: float) -> float:
        return (1 - similarity**rows) ** bands

    def mean(begin: float, end: float) -> float:
        width = (end - begin) / STEPS
        return sum(missed(begin + (step + 0.5) * width) for step in range(STEPS)) * width

    return threshold - mean(0, threshold) + mean(threshold, 1)
