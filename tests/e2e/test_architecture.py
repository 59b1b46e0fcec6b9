# SPDX-License-Identifier: Apache-2.0
"""docs/architecture.md says what is: each function of its walks is in the room that it names."""

import pathlib
import re

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
WALKS = re.split(r"\n(?=`berth run )", (TOP / "docs/architecture.md").read_text()
                 .split("### Two call paths")[1].split("\n## ")[0])[1:]


DECIDED = (TOP / "docs/architecture.md").read_text().split("### Where it is decided")[1].split("\n## ")[0]
PLACES = re.findall(r"`([\w/.-]+\.[ch]pp)`: `(\w+)`", DECIDED)


def rooms_of(walk):
    return [(room, re.findall(r"`(\w+)`", functions))
            for room, functions in re.findall(r"^\| `([\w/]+)` \| (.*) \|$", walk, re.MULTILINE)]


def defines(room, function):
    """Whether a file of the room itself, and of none below it, has the function's body."""
    pattern = re.compile(rf"^[\w:<>,&*\s]*\b(?:\w+::)?{function}\((?:[^;{{]|\n)*?\)[\w\s]*\{{", re.MULTILINE)
    return any(pattern.search(path.read_text()) for path in (TOP / "src" / room).glob("*.cpp"))


def test_there_are_two_walks():
    assert len(WALKS) == 2


@pytest.mark.parametrize("walk", WALKS, ids=["gpus", "image"])
def test_a_walk_enters_at_most_twelve_rooms_each_once(walk):
    rooms = [room for room, _ in rooms_of(walk)]
    assert 0 < len(rooms) <= 12 and len(set(rooms)) == len(rooms)


@pytest.mark.parametrize("walk", WALKS, ids=["gpus", "image"])
def test_each_function_of_a_walk_is_in_its_room(walk):
    missing = [f"{room}: {function}" for room, functions in rooms_of(walk)
               for function in functions if not defines(room, function)]
    assert not missing
    assert all(functions for _, functions in rooms_of(walk))


def test_a_function_that_is_elsewhere_is_missed():
    assert not defines("engine/run", "resolve") and not defines("engine/decide", "launch")


def test_each_file_has_the_name_that_the_table_gives():
    rows = [line for line in DECIDED.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 40 and not [row for row in rows if not re.search(r"`: `\w+`", row)]
    assert not [f"{file}: {name}" for file, name in PLACES
                if not re.search(rf"\b{name}\b", (TOP / "src" / file).read_text())]
