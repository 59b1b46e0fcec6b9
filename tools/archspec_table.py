#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""archspec_table.py JSON OUT: writes the database of third_party/archspec as C++ tables, which
src/node/archspec.cpp includes. The build calls it. An unknown member in the database is an error, so that
nothing is lost silently.
"""

import json
import pathlib
import sys

MEMBERS = {"from", "vendor", "features", "compilers", "generation", "cpupart"}
ALIAS_MEMBERS = {"reason", "any_of", "families"}
WORD = 64


def fail(why):
    sys.exit(f"archspec_table.py: {why}")


def quoted(text):
    if not text.isascii() or not text.isprintable() or '"' in text or "\\" in text:
        fail(f"{text!r} is no plain word")
    return f'"{text}"'


def ancestors_of(name, known, path=()):
    """The names of all ancestors of `name`."""
    if name in path:
        fail(f"{name!r} descends from itself")
    found = set()
    for parent in known[name]["from"]:
        if parent not in known:
            fail(f"{name!r} descends from {parent!r}, which is not there")
        found |= {parent} | ancestors_of(parent, known, (*path, name))
    return found


def check(known, aliases):
    for name, entry in known.items():
        if not entry.keys() <= MEMBERS:
            fail(f"{name!r} has members that are new: {sorted(entry.keys() - MEMBERS)}")
    for alias, rule in aliases.items():
        if not rule.keys() <= ALIAS_MEMBERS or len(rule.keys() - {"reason"}) != 1:
            fail(f"alias {alias!r} is of a new form")


def feature_words(features, names):
    bits = sum(1 << names.index(feature) for feature in features)
    count = (len(names) + WORD - 1) // WORD
    return ", ".join(f"0x{bits >> (WORD * i) & (2**WORD - 1):x}" for i in range(count))


def table(database):
    known = database["microarchitectures"]
    aliases = database["feature_aliases"]
    check(known, aliases)
    names = sorted(known)
    features = sorted({feature for entry in known.values() for feature in entry["features"]})
    above = {name: ancestors_of(name, known) for name in names}

    def nearest_first(name):
        return (-len(above[name]), -len(known[name]["features"]), name)

    lines = [f"constexpr size_t kFeatureWords = {(len(features) + WORD - 1) // WORD};"]
    lines.append(f"constexpr std::array<std::string_view, {len(features)}> kFeatureNames = {{")
    lines += [f"    {quoted(feature)}," for feature in features]
    lines.append("};")

    order = []
    rows = []
    for name in names:
        entry = known[name]
        roots = [one for one in above[name] | {name} if not known[one]["from"]]
        if len(roots) != 1:
            fail(f"{name!r} is of several families")
        mine = sorted(above[name], key=nearest_first)
        rows.append(
            f"    {{{quoted(name)}, {quoted(entry['vendor'])}, {quoted(entry.get('cpupart', ''))}, "
            f"{int(entry.get('generation', 0))}, {names.index(roots[0])}, {len(order)}, "
            f"{len(mine)}, {len(set(entry['features']))}, "
            f"{{{{{feature_words(set(entry['features']), features)}}}}}}},")
        order += [names.index(one) for one in mine]
    lines.append(f"constexpr std::array<Entry, {len(rows)}> kEntries = {{{{")
    lines += rows
    lines.append("}};")
    lines.append(f"constexpr std::array<uint16_t, {len(order)}> kAncestors = {{")
    lines += [f"    {', '.join(map(str, order[i:i + 20]))}," for i in range(0, len(order), 20)]
    lines.append("};")

    rules = [(alias, other, "") for alias, rule in sorted(aliases.items())
             for other in rule.get("any_of", [])]
    rules += [(alias, "", family) for alias, rule in sorted(aliases.items())
              for family in rule.get("families", [])]
    lines.append(f"constexpr std::array<Alias, {len(rules)}> kAliases = {{{{")
    lines += [f"    {{{', '.join(map(quoted, rule))}}}," for rule in rules]
    lines.append("}};")

    vendors = sorted(database["conversions"]["arm_vendors"].items())
    lines.append(f"constexpr std::array<ArmVendor, {len(vendors)}> kArmVendors = {{{{")
    lines += [f"    {{{quoted(code)}, {quoted(name)}}}," for code, name in vendors]
    lines.append("}};")
    return "\n".join(lines) + "\n"


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    text = table(json.loads(source.read_text(encoding="utf-8")))
    out.write_text(f"// Made by {pathlib.Path(__file__).name} of {source.name}.\n" + text,
                   encoding="utf-8")


if __name__ == "__main__":
    main()
