# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster with images in `--container`: packaging/slurm and the lines of docs/slurm.md."""

import pathlib
import re

from support.slurm import Cluster, version
from support.slurm_containers import STARTER

TOP = pathlib.Path(__file__).parents[2]
PLACE = "/var/spool/berth/slurm"


def lines_of_guide(first):
    """The lines of docs/slurm.md's example that starts with this pattern."""
    guide = (TOP / "docs/slurm.md").read_text()
    found = re.search(rf"^```\n({first}.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    return found[1].splitlines()


def lines_of_oci_conf():
    """The guide's lines for the installed Slurm."""
    lines = lines_of_guide(r"ContainerPath=\S+%j/")
    if version() >= (23, 2):
        return lines
    old = lines_of_guide(r"ContainerPath=\S+%j\.")
    return old + [line for line in lines if line.startswith("RunTime") and not line.startswith("RunTimeRun=")]


def with_images(directory, programs, lines=(), **options):
    """A Cluster as in the guide, with everything below a directory of the tests."""
    starters = directory / "starters"
    starters.mkdir(parents=True)
    (starters / "berth").write_text(STARTER.format(programs=programs, place=""))
    (starters / "berth").chmod(0o755)
    runtime = f"{programs}/berth-runtime --root {directory}/states/$(id -u)"
    (starters / "berth-runtime").write_text(f'#!/bin/sh\nexec {runtime} "$@"\n')
    (starters / "berth-runtime").chmod(0o755)
    (directory / "states").mkdir()
    (directory / "states").chmod(0o1777)
    script = directory / "image-bundles"

    def placed(text):
        return (text.replace(PLACE, str(directory / "spool"))
                .replace("/usr/local/share/berth/slurm/image-bundles", str(script))
                .replace("/usr/local/bin/berth ", f"env BERTH_LIBEXEC_DIR={starters} {programs}/berth ")
                .replace("/usr/local/bin/berth-runtime", str(starters / "berth-runtime")))

    script.write_text(placed((TOP / "packaging/slurm/image-bundles").read_text()))
    script.chmod(0o755)
    lines = [*lines, *map(placed, lines_of_guide("CliFilterPlugins"))]
    cluster = Cluster(directory, lines=lines, **options)
    cluster.spool = directory / "spool"
    cluster.write("oci.conf", *map(placed, lines_of_oci_conf()))
    cluster.write("cli_filter.lua", placed((TOP / "packaging/slurm/cli_filter.lua").read_text()))
    return cluster
