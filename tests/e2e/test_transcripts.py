# SPDX-License-Identifier: Apache-2.0
"""Command lines with all that they print.

transcripts/NAME.cmd holds "STATUS COMMAND": the exit status that is expected and one line of bash
that is run in an empty directory with a store of its own. NAME.out and NAME.err hold what it
prints; $WORK stands for that directory, LINE for a line of our sources. BERTH_ACCEPT=1 rewrites
them: read the difference before committing it.
"""

import os
import pathlib
import re
import subprocess

import pytest
from conftest import PROGRAMS

FOLDER = pathlib.Path(__file__).parent / "transcripts"
ACCEPT = os.environ.get("BERTH_ACCEPT") == "1"


def run(command, work):
    environment = {
        "PATH": f"{PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(work),
        "XDG_DATA_HOME": str(work / "data"),
        "XDG_RUNTIME_DIR": str(work / "runtime"),
        "LC_ALL": "C.UTF-8",
        "WORK": str(work),
    }
    shell = f"berth() {{ command berth --root $WORK/root --state $WORK/state \"$@\"; }}\n{command}"
    done = subprocess.run(["bash", "-c", shell], cwd=work, env=environment, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    return done.returncode, normal(done.stdout, work), normal(done.stderr, work)


def normal(text, work):
    """Without what differs from run to run, or with every edit of a source."""
    return re.sub(r"(\.cpp):\d+", r"\1:LINE", text.replace(str(work), "$WORK"))


def check(path, text):
    if ACCEPT:
        path.write_text(text) if text else path.unlink(missing_ok=True)
        return
    expected = path.read_text() if path.exists() else ""
    assert text == expected, f"{path.name} differs; BERTH_ACCEPT=1 rewrites it"


def test_there_are_transcripts():
    assert len(list(FOLDER.glob("*.cmd"))) > 20


def test_every_output_has_its_command():
    commands = {path.stem for path in FOLDER.glob("*.cmd")}
    assert {path.stem for path in FOLDER.iterdir()} == commands


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.cmd")))
def test_prints_what_the_transcript_says(name, tmp_path):
    status, command = (FOLDER / f"{name}.cmd").read_text().strip().split(" ", 1)
    got, out, err = run(command, tmp_path)
    check(FOLDER / f"{name}.out", out)
    check(FOLDER / f"{name}.err", err)
    assert got == int(status), err
