# SPDX-License-Identifier: Apache-2.0
"""Tables in documents that tests generate and check, between two invisible comments."""

import os

BEGIN, END = "<!-- made by ./dev test versions -->\n", "<!-- until here -->\n"


def compare(page, parse, merge, seen):
    """Compares parse(the table) with `seen`, from this machine; BERTH_ACCEPT=1 writes merge(the table)."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    kept, after = rest.split(END)
    if os.environ.get("BERTH_ACCEPT"):
        page.write_text(before + BEGIN + merge(kept) + END + after, encoding="utf-8")
    else:
        assert parse(kept) == seen
