# SPDX-License-Identifier: Apache-2.0
"""The parts of docs/docker-compat.md about single command lines, generated from the data that the tests
replay."""

import collections
import itertools
import pathlib
import tomllib

DATA = pathlib.Path(__file__).resolve().parent.parent / "tests/data"
NOT_MENDED = "BUG: "
SHOWN = 3  # example lines for each difference


def documents(folder):
    for path in sorted((DATA / folder).glob("*.toml")):
        yield path.stem, tomllib.loads(path.read_text(encoding="utf-8"))


def code(line):
    """A shell line, or several lines of one case, as a table cell."""
    text = "; ".join([line] if isinstance(line, str) else line)
    text = " ".join(text.split()).replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def differences():
    """{difference: lines} for the lines that are compared with Docker's, in the order of the data; and the
    number of lines compared."""
    found, count = collections.defaultdict(list), 0
    for _, document in documents("docker_lines"):
        for group in document.values():
            count += len(group.get("lines", []))
            for others in group.get("others", []):
                count += len(others["lines"])
                if "docker-compat.md" not in others["differs"]:  # its table of flags has them
                    found[others["differs"]] += others["lines"]
    return found, count


def table_of_differences():
    found, count = differences()
    rows = [f"{count} command lines are run with `docker` and with `berth`, and status, output and the kind of "
            "message are compared. These differ:", "", "| Line | With Berth |", "| --- | --- |"]
    for why, lines in found.items():
        more = f" and {len(lines) - SHOWN} more" if len(lines) > SHOWN else ""
        words = f"not as it should be: {why.removeprefix(NOT_MENDED)}" if why.startswith(NOT_MENDED) else why
        rows.append(f"| {'<br>'.join(map(code, lines[:SHOWN]))}{more} | {words} |")
    return rows


def table_of_typed_lines():
    """The outcome of lines that people type for other programs too."""
    counts = collections.defaultdict(collections.Counter)
    for _, document in documents("typed_lines"):
        for typed in document["typed"]:
            counts[typed["program"]][typed["expect"]] += 1
    total = sum(map(collections.Counter.total, counts.values()))
    rows = [f"{total} lines for other programs, from manuals, READMEs and scripts, are run with `berth` in place of "
            "the program. Berth does the same as the program, refuses a line that the program refuses, too, or prints "
            "what to type instead:", "",
            "| Program | same | refused by both | what to type instead |", "| --- | --- | --- | --- |"]
    for program, classes in sorted(counts.items(), key=lambda item: -item[1].total()):
        cells = [str(classes[kind] or "") for kind in ("same", "same-refusal", "refused")]
        rows.append(f"| `{program}` | {' | '.join(cells)} |")
    return rows


def text():
    return "\n".join(itertools.chain(
        ["## Lines that differ", ""], table_of_differences(),
        ["", "## Lines for other programs", ""], table_of_typed_lines())) + "\n"
