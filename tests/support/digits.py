#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Images of digits in two files in MNIST's format, for the benchmark's network, which reads its data from the
container image. They are drawn from 5 × 7 dots of three pixels each, at varying positions, with noise; the
same parameters give the same files.

usage: digits.py DIRECTORY [COUNT]
"""

import pathlib
import random
import struct
import sys

SIDE = 28
DOT = 3
DOTS = {  # rows from the top, five dots each
    0: "01110 10001 10011 10101 11001 10001 01110", 1: "00100 01100 00100 00100 00100 00100 01110",
    2: "01110 10001 00001 00010 00100 01000 11111", 3: "11111 00010 00100 00010 00001 10001 01110",
    4: "00010 00110 01010 10010 11111 00010 00010", 5: "11111 10000 11110 00001 00001 10001 01110",
    6: "00110 01000 10000 11110 10001 10001 01110", 7: "11111 00001 00010 00100 01000 01000 01000",
    8: "01110 10001 10001 01110 10001 10001 01110", 9: "01110 10001 10001 01111 00001 00010 01100",
}
DIM = bytes(value // 5 for value in range(256))  # noise


def strokes(digit):
    """(row, column of the first pixel) for each row of each dot."""
    rows = DOTS[digit].split()
    return [(DOT * y + line, DOT * x) for y, row in enumerate(rows) for x, dot in enumerate(row)
            if dot == "1" for line in range(DOT)]


def picture(digit, chance):
    pixels = bytearray(chance.randbytes(SIDE * SIDE).translate(DIM))
    down, right = chance.randint(0, SIDE - 7 * DOT), chance.randint(0, SIDE - 5 * DOT)
    ink = bytes([chance.randint(160, 255)]) * DOT
    for row, column in strokes(digit):
        start = (row + down) * SIDE + column + right
        pixels[start:start + DOT] = ink
    return bytes(pixels)


def files(count):
    """{name: bytes} of `count` images and their labels."""
    chance = random.Random(count)
    labels = bytes(chance.randrange(10) for _ in range(count))
    pictures = b"".join(picture(digit, chance) for digit in labels)
    return {"train-images-idx3-ubyte": struct.pack(">4I", 0x803, count, SIDE, SIDE) + pictures,
            "train-labels-idx1-ubyte": struct.pack(">2I", 0x801, count) + labels}


def write(directory, count=10_000):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for name, content in files(count).items():
        (directory / name).write_bytes(content)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: digits.py DIRECTORY [COUNT]")
    write(sys.argv[1], *map(int, sys.argv[2:]))
