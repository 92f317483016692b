"""Number of bands for rensa, which leaves the choice to its caller."""

from comparison.settings import Settings


def bands(settings: Settings) -> int:
    """Returns the requested bands. By default, the fewest that divide the permutations and find half of the pairs at the threshold.

    Pairs of similarity s share one of b bands of r rows with probability 1 - (1 - s^r)^b, which is about one half at
    (1/b)^(1/r).
    """
    if settings.bands is not None:
        return settings.bands
    for number in range(1, settings.permutations + 1):
        rows = settings.permutations // number
        if settings.permutations % number == 0 and (1 / number) ** (1 / rows) <= float(settings.threshold):
            return number
    return settings.permutations
