# SPDX-License-Identifier: Apache-2.0
"""The configuration that Docker made of '--device=/dev/nvidia0' in 2018, with the hook of its time:
the JSON of the slide "The Stack" (Kniep, High Performance Containers)."""

import json
import os

import pytest

from support.oci_fixtures import bundle, kind, place, runtime  # noqa: F401

pytestmark = pytest.mark.parametrize("kind", ["root"], indirect=True)

SLIDE = json.loads("""{
  "devices": [{
    "path": "/dev/nvidia0", "type": "c",
    "major": 195, "minor": 0, "fileMode": 8630,
    "uid": 0, "gid": 0
  }],
  "hooks": { "prestart": [ {"path": "/usr/local/bin/nvidia.sh"}] }
}""")


@pytest.fixture
def stack(bundle, place):
    """The bundle with the slide's members, its script being one that says what it was given."""
    script = place / "nvidia.sh"
    script.write_text(f"#!/bin/sh\nexport -p > {place}/environment\necho $# $0 > {place}/words\n"
                      f"cat > {place}/told\npwd > {place}/directory\n")
    script.chmod(0o755)
    bundle.linux["devices"] = SLIDE["devices"]
    bundle.config["hooks"] = SLIDE["hooks"]
    assert bundle.config["hooks"]["prestart"][0]["path"] == "/usr/local/bin/nvidia.sh"
    bundle.config["hooks"] = {"prestart": [{"path": str(script)}]}
    return bundle


def test_a_mode_with_its_type_bits_is_masked_and_not_refused(runtime, stack):
    assert SLIDE["devices"][0]["fileMode"] == 0o20666
    stack.args("/bin/stat", "-c", "%F %a %t:%T", "/dev/nvidia0")
    assert runtime.out(stack) == "character special file 666 c3:0\n"


def test_a_prestart_script_given_by_its_path_alone_has_the_environment_of_the_runtime(runtime, stack,
                                                                                      place):
    stack.process["env"] += ["LD_PRELOAD=/evil.so", "SECRET=1"]
    runtime.out(stack, env={"PATH": os.environ["PATH"], "OF_CALLER": "1"})
    names = {line.split()[1].split("=")[0] for line in
             (place / "environment").read_text().splitlines()}
    own = {"PWD", "OLDPWD", "SHLVL", "_", "BERTH_LIBEXEC_DIR"}  # of the shell, and where our programs lie
    assert names - own == {"PATH", "OF_CALLER"}
    assert (place / "words").read_text() == f"0 {place}/nvidia.sh\n"
    assert (place / "directory").read_text() == f"{stack.directory}\n"
    state = json.loads((place / "told").read_text())
    assert (state["id"], state["status"], state["bundle"]) == ("c1", "creating",
                                                               str(stack.directory))
    assert state["pid"] > 0
