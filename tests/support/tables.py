# SPDX-License-Identifier: Apache-2.0
"""Tables of the documents that tests make and check, between two comments that nobody sees."""

import os

BEGIN, END = "<!-- made by ./dev test versions -->\n", "<!-- until here -->\n"


def compare(page, parse, merge, seen):
    """`seen` is what parse(the table) has of this machine; BERTH_ACCEPT=1 writes merge(the table) there."""
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    kept, after = rest.split(END)
    if os.environ.get("BERTH_ACCEPT"):
        page.write_text(before + BEGIN + merge(kept) + END + after, encoding="utf-8")
    else:
        assert parse(kept) == seen
