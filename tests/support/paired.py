# SPDX-License-Identifier: Apache-2.0
"""Figures that were taken in pairs, one right after the other, and how sure their ratio is."""

import dataclasses
import random
import statistics

RESAMPLES = 2000


@dataclasses.dataclass
class Ratio:
    """The median of the ratios of all pairs, and its 95 % interval: of medians of as many pairs
    that are drawn from these with replacement (percentile bootstrap)."""
    median: float
    low: float
    high: float
    pairs: int

    def __str__(self):
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(ours, theirs):
    """Of figures that belong together in their order."""
    return of_ratios([a / b for a, b in zip(ours, theirs, strict=True)])


def of_ratios(ratios):
    """The same of ratios."""
    chance = random.Random(len(ratios))  # the same pairs, the same interval
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    return Ratio(statistics.median(ratios), medians[int(RESAMPLES * 0.025)],
                 medians[int(RESAMPLES * 0.975)], len(ratios))
