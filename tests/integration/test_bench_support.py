# SPDX-License-Identifier: Apache-2.0
"""What './dev bench seeds' makes its figures and its data with."""

import struct

import pytest

from support import digits, paired


def test_a_ratio_is_the_median_of_the_pairs_and_not_the_ratio_of_medians():
    found = paired.ratio([10, 22, 3, 44, 5], [10, 20, 1, 40, 10])
    assert found.median == pytest.approx(1.1)
    assert (found.low, found.high) == (0.5, 3)  # of so few
    assert found.pairs == 5


def test_the_interval_of_a_ratio_narrows_with_the_pairs_and_is_the_same_again():
    ours = [100 + number % 7 for number in range(300)]
    found = paired.ratio(ours, [100] * 300)
    assert found == paired.ratio(ours, [100] * 300)
    assert 1.02 <= found.low <= found.median == 1.03 <= found.high <= 1.04


def test_figures_without_a_partner_are_no_pairs():
    with pytest.raises(ValueError):
        paired.ratio([1, 2], [1])


def test_digits_are_files_of_mnists_form_and_always_the_same():
    files = digits.files(50)
    assert files == digits.files(50)
    pictures, labels = files["train-images-idx3-ubyte"], files["train-labels-idx1-ubyte"]
    assert struct.unpack(">4I", pictures[:16]) == (0x803, 50, 28, 28)
    assert len(pictures) == 16 + 50 * 28 * 28
    assert struct.unpack(">2I", labels[:8]) == (0x801, 50)
    assert set(labels[8:]) == set(range(10))
