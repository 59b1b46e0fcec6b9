# SPDX-License-Identifier: Apache-2.0
"""A model of how long the nodes of a job take to get an image, with pieces of a blob and links.

Each node sends piece by piece to those that ask it, one after the other, as fast as its link and its program
permit; it forwards a piece as soon as it has arrived. A piece is unpacked once it and the previous one are
there. Not in the model: lost packets, other jobs, switches with less bandwidth than their links, registries
with a slow start, disks slower than unpacking, nodes of different speed.
"""

import dataclasses

PIECE = 4 << 20


@dataclasses.dataclass(frozen=True)
class Machine:
    """Bytes and seconds. `given`: what one node's program can send, to itself included; `unpacked`:
    compressed bytes that one node unpacks per second; `hop`: from a piece's arrival to the arrival of its
    first byte at the next node; `start`: before the first request."""
    registry: float
    link: float
    given: float
    unpacked: float
    hop: float
    start: float


@dataclasses.dataclass(frozen=True)
class Job:
    """When the last node has the image, and how many bytes the registry has sent."""
    seconds: float
    registry_bytes: int


def pieces_of(size):
    return [PIECE] * (size // PIECE) + ([size % PIECE] if size % PIECE else [])


def _send(arrived, pieces, children, rate, hop):
    """The arrival times at the children: [[time of each piece] of each child]."""
    out = [[] for _ in range(children)]
    free = 0.0
    for came, size in zip(arrived, pieces):
        for times in out:
            free = max(free, came) + size / rate
            times.append(free + hop)
    return out


def _unpack(arrived, pieces, rate):
    done = 0.0
    for came, size in zip(arrived, pieces):
        done = max(done, came) + size / rate
    return done


def simulate(machine, nodes, arity, size):
    """`arity` 0: every node asks the registry; 1: a chain."""
    pieces = pieces_of(size)
    at_registry = [machine.start] * len(pieces)
    if arity == 0:
        rate = min(machine.registry, machine.link * nodes)
        # All are served alike, so the last one's last piece decides.
        last = _send(at_registry, [piece * nodes for piece in pieces], 1, rate, machine.hop)[0]
        return Job(_unpack(last, pieces, machine.unpacked), size * nodes)
    arrived = {0: _send(at_registry, pieces, 1, min(machine.registry, machine.link),
                        machine.hop)[0]}
    end = 0.0
    for node in range(nodes):
        times = arrived.pop(node)
        end = max(end, _unpack(times, pieces, machine.unpacked))
        below = range(node * arity + 1, min(node * arity + arity + 1, nodes))
        if not below:
            continue
        # Its own unpacking uses a part of what the program can send.
        rate = min(machine.link, machine.given * len(below) / (len(below) + 1))
        sent = _send(times, pieces, len(below), rate, machine.hop)
        arrived.update(zip(below, sent))
    return Job(end, size)
