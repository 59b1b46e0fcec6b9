#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The layers of src/: which folder may include which. Fails on any other '#include "x/…"'.

Also prints how many lines the privileged program, berth-runtime, is made of, so that a review
sees it grow.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Folder: what it may include besides itself. The order is the order of the build.
LAYERS = {
    "base": "",
    "json": "base",
    "sys": "base",
    "oci": "base json",
    "plan": "base oci",
    "runtime": "base json sys oci plan",
    "scan": "base json",
    "gpu/probe": "base json sys oci scan",
    # The inventory is what probe found, as plain structs: the one header that grant may see of it.
    "gpu/grant": "base json oci scan gpu/probe/inventory.hpp",
    # What was granted, laid out on this machine: placeholders, links, the loader's cache.
    "gpu/place": "base json sys oci scan gpu/grant gpu/probe/inventory.hpp",
    "image": "base json sys oci",
    "transfer": "base json sys oci image scan",
    "monitor": "base json sys",
    "engine": "base json sys oci plan scan gpu/probe gpu/grant gpu/place image",
    "cli/core": "base json",
    "cli/berth": "base json cli/core engine",
    "cli/oci": "base json cli/core oci plan runtime",
}

# A program wires together what it is given: the folders that its link line may bring in.
PROGRAMS = {
    "berth": "base json sys oci plan scan gpu/probe gpu/grant gpu/place image engine "
             "cli/core cli/berth",
    "berth-transfer": "base json sys oci image scan transfer",
    "berth-runtime": "base json sys oci plan runtime cli/core cli/oci",
    "berth-monitor": "base json sys monitor",
    "berth-gpu-probe": "base json sys oci scan gpu/probe",
}

PRIVILEGED = "berth-runtime"
SOURCES = (".cpp", ".hpp", ".h", ".c")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def folder_of(path):
    """The layer that a path below src/ belongs to, or None."""
    parts = pathlib.PurePosixPath(path).parts
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if len(parts) > depth and (name in LAYERS or name == "bin"):
            return name
    return None


def may_include(allowed, included):
    return included in allowed or folder_of(included) in allowed


def allowed_in(source, folder):
    """What a file may include: its layer's list, or for a main() its program's."""
    if folder == "bin":
        return PROGRAMS.get(pathlib.PurePosixPath(source).stem, "").split()
    return [folder, *LAYERS[folder].split()]


def sources():
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in SOURCES:
            yield path.relative_to(ROOT / "src").as_posix(), path


def check():
    """One line for every include that the table does not allow."""
    faults = []
    for source, path in sources():
        folder = folder_of(source)
        if folder is None:
            faults.append(f"src/{source}: not in a folder of tools/layers.py")
            continue
        allowed = allowed_in(source, folder)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match and not may_include(allowed, match.group(1)):
                faults.append(f'src/{source}:{number}: {folder} may not include "{match.group(1)}"')
    return faults


def count_lines(program):
    """{folder: lines} of all that a program links, its main() under 'bin'."""
    counted = {}
    linked = PROGRAMS[program].split()
    for source, path in sources():
        folder = folder_of(source)
        mine = folder in linked or source == f"bin/{program}.cpp"
        if mine:
            counted[folder] = counted.get(folder, 0) + len(path.read_text().splitlines())
    return counted


def main():
    faults = check()
    print("\n".join(faults) if faults else "layers: every include is allowed")
    counted = count_lines(PRIVILEGED)
    parts = " + ".join(f"{folder} {lines}" for folder, lines in counted.items())
    print(f"{PRIVILEGED} links {sum(counted.values())} lines of ours: {parts}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
