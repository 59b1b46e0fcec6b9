#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a limit adds to an ordinary user's start, where his own systemd makes the cgroup; podman beside it.

A guest (tests/support/guest.py) that runs systemd, and a user who has logged in there by PAM. Every contender
runs once a round, in an order that is shuffled anew. The guest has no acceleration: only ratios count.

usage: ./dev bench scope [--runs N] [--suite SUITE] [--json FILE] [--plot FILE] [--check]
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))

from support import guest, logins, side_by_side  # noqa: E402
from support.side_by_side import Contender, version  # noqa: E402

PACKAGES = ("crun", "podman")
BERTH, LIMITED, PODMAN = "berth", "berth --memory", "podman --memory"
GOALS = {"with a limit ÷ without": (4.0, "×"), "with a limit ÷ podman's with it": (0.5, "×")}
INSIDE = "cd /payload/tests/bench; PYTHONDONTWRITEBYTECODE=1 python3 scope.py --inside {runs} >/dev/ttyS1\n"


# ---- in the guest -------------------------------------------------------------------------------

def commands():
    root = pathlib.Path.home() / "root"
    berth = ["/payload/bin/berth", "run", "--rm"]
    podman = ["podman", "run", "--rm", "--network", "none"]
    memory, container = ["--memory", "50m"], ["--rootfs", str(root), "true"]
    return [Contender(BERTH, [*berth, *container], version(berth[0], "--version")),
            Contender(LIMITED, [*berth, *memory, *container], version(berth[0], "--version")),
            Contender("podman", [*podman, *container], version("podman", "--version")),
            Contender(PODMAN, [*podman, *memory, *container], version("podman", "--version"))]


def measured_by_the_user(runs):
    os.environ["BERTH_NETWORK"] = "none"
    side_by_side.adopt_orphans()
    found = side_by_side.tried(commands())
    side_by_side.measure(found, runs, 2)
    print(json.dumps([vars(contender) for contender in found]))


def measured_after_a_login(runs):
    logins.PROGRAMS = "/payload/bin"
    with logins.made_user() as user:
        print(subprocess.run(["su", "--login", user.pw_name, "-c",
                              f"exec python3 {pathlib.Path(__file__).resolve()} --by-the-user {runs}"],
                             check=True, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL).stdout)


# ---- on this machine ----------------------------------------------------------------------------

def run_guest(options):
    machine = guest.Machine(guest.prepare((*guest.PACKAGES, *PACKAGES), options.suite))
    for program in sorted(options.programs.resolve().glob("berth*")):
        machine.add(f"bin/{program.name}", program)
    for name in ("support", "bench"):
        machine.add(f"tests/{name}", TESTS / name)
    script = INSIDE.format(runs=options.runs) + "uname -r >/dev/ttyS1" + guest.POWER_OFF
    ended = machine.run(guest.with_systemd(script, machine), deadline=600 + 40 * options.runs)
    written, _, kernel = ended.report.strip().rpartition("\n")
    if not written.strip():
        sys.exit(f"bench scope: the guest measured nothing:\n{ended.console[-3000:]}")
    return [Contender(**one) for one in json.loads(written)], kernel


def more_options(parser):
    parser.add_argument("--suite", default="trixie", help="the guest's Debian")
    parser.set_defaults(runs=15)


def main():
    options = side_by_side.begin("scope", __doc__, more_options)
    found, kernel = run_guest(options)
    times = {contender.name: contender.milliseconds for contender in found}
    values = {"with a limit ÷ without": statistics.median(a / b for a, b in zip(times[LIMITED], times[BERTH])),
              "with a limit ÷ podman's with it": statistics.median(
                  a / b for a, b in zip(times[LIMITED], times[PODMAN]))}
    print(f"a guest of {options.suite}, Linux {kernel}, {options.runs} runs each\n")
    side_by_side.tell(options, found, values, GOALS, {"suite": options.suite, "guest_kernel": kernel}, BERTH,
                      "milliseconds to start, in an emulated machine")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--inside"]:
        measured_after_a_login(sys.argv[2])
    elif sys.argv[1:2] == ["--by-the-user"]:
        measured_by_the_user(int(sys.argv[2]))
    else:
        main()
