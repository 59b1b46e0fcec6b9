#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions of a start in user mode, by program, beside those of another build.

They hardly vary from run to run (by some hundred in millions), so a change of one percent shows on
any machine, even a busy one. Single-stepping is slow: a comparison takes about seven minutes. The kernel's part does not show here: './dev bench runtime' has the
system calls. The starts: 'berth run --rm --network none IMAGE /bin/true' of an imported image, and
'berth-runtime run' of a bundle with Docker's seccomp profile. Each is run twice before it is counted.

Against an older state of this tree:
    git worktree add /tmp/before REVISION && (cd /tmp/before && ./dev build release)
    ./dev bench instructions --against /tmp/before/build/release/bin --check

usage: ./dev bench instructions [--against DIRECTORY] [--json FILE] [--check]
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TESTS))
sys.path.insert(0, str(TESTS / "bench"))

import runtime  # noqa: E402
from support import side_by_side  # noqa: E402
from support.side_by_side import run, version  # noqa: E402

MOST = 1.03  # of the other build's


def make_rootfs(directory):
    (directory / "bin").mkdir(parents=True)
    for name in ("proc", "sys", "dev", "etc"):
        (directory / name).mkdir()
    shutil.copy("/bin/busybox", directory / "bin/true")
    return directory


def starts(programs, work, rootfs):
    """{what is started: its command}, with state and files of this build alone."""
    work.mkdir()
    berth = [str(programs / "berth"), "--root", str(work / "store"), "--state", str(work / "state")]
    archive = work / "rootfs.tar"
    run("tar", "-C", rootfs, "-cf", archive, ".")
    run(*berth, "import", archive, "bench:1")
    bundle = work / "bundle"
    bundle.mkdir()
    (bundle / "config.json").write_text(json.dumps(
        runtime.make_config(rootfs, "instructions", ["/bin/true"])))
    return {
        "berth run": [*berth, "run", "--rm", "--network", "none", "bench:1", "/bin/true"],
        "berth-runtime run": [str(programs / "berth-runtime"), "--root", str(work / "runtime"), "run",
                              "--bundle", str(bundle), "bench-instructions"],
    }


def count(counter, argv):
    """{program: instructions}, after two runs that fill caches."""
    for _ in range(2):
        run(*argv)
    done = subprocess.run([counter, *argv], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(argv)}: {done.returncode}: {done.stderr}")
    found = json.loads(done.stderr.splitlines()[-1])
    return {"all": found["instructions"], **found["programs"]}


def rows(ours, theirs):
    """(start, program, instructions, the other build's or None), the sum of each start first."""
    for start, programs in ours.items():
        for program, instructions in programs.items():
            other = theirs.get(start, {}).get(program) if theirs else None
            yield start, program, instructions, other


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    parser.add_argument("--against", type=pathlib.Path, metavar="DIRECTORY", help="the programs of another build")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--check", action="store_true", help=f"fail if a start takes more than {MOST} of the other's")
    options = parser.parse_args()
    if options.check and not options.against:
        parser.error("--check needs --against")
    side_by_side.enter_private_mounts()
    builds = {"here": options.programs.resolve()}
    if options.against:
        builds["against"] = options.against.resolve()
    counter = str(builds["here"] / "bench_count_steps")

    found = {}
    with tempfile.TemporaryDirectory(prefix="berth-bench-", ignore_cleanup_errors=True) as work:
        work = pathlib.Path(work)
        rootfs = make_rootfs(work / "rootfs")
        try:
            for name, programs in builds.items():
                commands = starts(programs, work / name, rootfs)
                found[name] = {}
                for start, argv in commands.items():
                    print(f"counting: {start}, {name}", file=sys.stderr, flush=True)
                    found[name][start] = count(counter, argv)
        finally:
            runtime.remove_cgroups()

    for name, programs in builds.items():
        print(f"{name}: {programs} ({version(str(programs / 'berth'), '--version')})")
    print(f"\n{'start':<20}{'program':<16}{'instructions':>14}{'against':>14}{'ratio':>8}")
    too_many = []
    for start, program, ours, theirs in rows(found["here"], found.get("against")):
        ratio = ours / theirs if theirs else None
        print(f"{start:<20}{program:<16}{ours:>14,}" + (f"{theirs:>14,}{ratio:>8.3f}" if theirs else ""))
        if program == "all" and ratio and ratio > MOST:
            too_many.append(f"{start}: {ratio:.3f}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    if options.check and too_many:
        sys.exit(f"more than {MOST} of the other build's instructions: " + "; ".join(too_many))


if __name__ == "__main__":
    main()
