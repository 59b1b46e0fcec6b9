# SPDX-License-Identifier: Apache-2.0
"""What './dev bench seeds' and './dev bench fetch' make their figures with."""

import dataclasses
import struct

import pytest

from support import digits, fetch_model, paired


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


# ---- the model of './dev bench fetch' -----------------------------------------------------------

MACHINE = fetch_model.Machine(registry=1e9, link=3e9, given=2e9, unpacked=0.5e9, hop=0.01, start=1)
SIZE = 1_000_000_000


def seconds(nodes, arity, **other):
    machine = dataclasses.replace(MACHINE, **other)
    return fetch_model.simulate(machine, nodes, arity, SIZE).seconds


def test_a_node_alone_is_as_slow_as_the_slowest_of_its_parts():
    for arity in (0, 1, 2, 8):
        assert seconds(1, arity) == pytest.approx(1 + SIZE / 0.5e9, rel=0.02)
        assert seconds(1, arity, registry=0.1e9) == pytest.approx(1 + SIZE / 0.1e9, rel=0.02)
        assert seconds(1, arity, link=0.2e9) == pytest.approx(1 + SIZE / 0.2e9, rel=0.02)


def test_without_a_tree_the_registry_gives_as_many_images_as_there_are_nodes():
    assert fetch_model.simulate(MACHINE, 100, 0, SIZE).registry_bytes == 100 * SIZE
    assert fetch_model.simulate(MACHINE, 100, 4, SIZE).registry_bytes == SIZE
    assert seconds(100, 0) == pytest.approx(1 + 100 * SIZE / 1e9, rel=0.02)


def test_a_chain_costs_a_hop_and_a_piece_for_each_node():
    each = 0.01 + fetch_model.PIECE / (2e9 / 2)
    assert seconds(101, 1) - seconds(1, 1) == pytest.approx(100 * each, rel=0.02)


def test_who_gives_to_more_gives_less_to_each():
    assert seconds(17, 16) == pytest.approx(1 + SIZE * 17 / 2e9, rel=0.02)
    assert seconds(3, 2) < seconds(17, 16)


def test_a_deep_tree_costs_next_to_nothing_where_bytes_are_given_on_while_they_come():
    assert seconds(1023, 2, hop=0) == pytest.approx(seconds(3, 2, hop=0), rel=0.05)
