# SPDX-License-Identifier: Apache-2.0
"""Figures measured in pairs, one directly after the other, and the confidence interval of their ratio."""

import dataclasses
import random
import statistics

RESAMPLES = 2000


@dataclasses.dataclass
class Ratio:
    """The median of the ratios of all pairs, and its 95 % interval: from the medians of as many pairs drawn
    from these with replacement (percentile bootstrap)."""
    median: float
    low: float
    high: float
    pairs: int

    def __str__(self):
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def ratio(ours, theirs):
    """For two lists in the same order."""
    return of_ratios([a / b for a, b in zip(ours, theirs, strict=True)])


def of_ratios(ratios):
    """The same for ratios."""
    chance = random.Random(len(ratios))  # deterministic
    medians = sorted(statistics.median(chance.choices(ratios, k=len(ratios)))
                     for _ in range(RESAMPLES))
    return Ratio(statistics.median(ratios), medians[int(RESAMPLES * 0.025)],
                 medians[int(RESAMPLES * 0.975)], len(ratios))
