#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the attack suite against several OCI runtimes and prints the results as a Markdown table.

usage: table.py [--into FILE] [RUNTIME…]

Without RUNTIME: berth-runtime of build/release, and the crun and runc in PATH. --into FILE replaces
what is between the lines '<!-- attacks -->' and '<!-- /attacks -->'. BERTH_ATTACK_ROUNDS says how
many rounds a race gets (100 unless told).
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
BERTH = HERE.parent.parent / "build/release/bin/berth-runtime"
CVE = re.compile(r"CVE-(\d+)-(\d+)")


def title(runtime):
    """"crun 1.8.1"; what is built here has no version worth a column."""
    if runtime == BERTH:
        return "berth-runtime"
    line = subprocess.run([runtime, "--version"], check=True, capture_output=True,
                          text=True).stdout.splitlines()[0]
    return line.replace("version ", "")


def results(runtime):
    """{(CVE, what is attacked): outcome}"""
    with tempfile.NamedTemporaryFile() as file:
        environment = os.environ | {"RUNTIME": str(runtime), "BERTH_ATTACK_RESULTS": file.name}
        environment.setdefault("BERTH_ATTACK_ROUNDS", "100")
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", HERE], env=environment,
                              check=False, stdout=sys.stderr)
        if done.returncode not in (0, 1):
            sys.exit(f"table: the suite did not run with {runtime}")
        return {(cve, text): outcome for cve, text, outcome in json.loads(file.read())}


def table(runtimes):
    columns = [results(runtime) for runtime in runtimes]
    rows = sorted({key for column in columns for key in column},
                  key=lambda key: (*map(int, CVE.match(key[0]).groups()), key[1]))
    lines = ["| CVE | Attacked | " + " | ".join(map(title, runtimes)) + " |",
             "| --- | --- |" + " --- |" * len(columns)]
    for cve, text in rows:
        cells = (column.get((cve, text), "n/a") for column in columns)
        cells = ("**broken**" if cell == "broken" else cell for cell in cells)
        lines.append(f"| {cve.removeprefix('CVE-')} | {text} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("--into", type=Path)
    parser.add_argument("runtimes", nargs="*", type=lambda path: Path(path).resolve())
    options = parser.parse_args()
    others = [Path(found) for found in map(shutil.which, ("crun", "runc")) if found]
    made = table(options.runtimes or [BERTH, *others])
    if options.into is None:
        print(made, end="")
        return
    text = options.into.read_text(encoding="utf-8")
    before, rest = text.split("<!-- attacks -->\n")
    after = rest.split("<!-- /attacks -->")[1]
    options.into.write_text(f"{before}<!-- attacks -->\n{made}<!-- /attacks -->{after}",
                            encoding="utf-8")


if __name__ == "__main__":
    main()
