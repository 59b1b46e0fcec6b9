# SPDX-License-Identifier: Apache-2.0
"""`berth node`: what this machine has, saved profiles, and what is wrong with them, as root and as
ordinary users."""

import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import tomllib

import pytest

TESTS = pathlib.Path(__file__).resolve().parent.parent
STUB = pathlib.Path(os.environ.get("BERTH_TEST_PROGRAMS", TESTS.parent / "build/release/bin")
                    ).resolve().parent / "lib/libnvml_stub.so"
SCHEMA = json.loads((TESTS.parent / "docs/node-profile.schema.json").read_text(encoding="utf-8"))
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
BROADWELL = ("mmx sse sse2 pni ssse3 sse4_1 sse4_2 abm popcnt xsave lahf_lm cx16 aes pclmulqdq avx "
             "rdrand f16c movbe fma avx2 bmi1 bmi2 rdseed adx")
BY_HAND = """\
architecture = "amd64"
[cpu]
microarchitecture = "broadwell"
[driver]
module_version = "396.44"
[[gpus]]
compute_capability = "3.7"
"""


@pytest.fixture
def tree(work):
    """tree(kind, option…) → a driver tree of the test's own, to be added to."""
    count = iter(range(10))

    def make(kind="one", *options):
        path = work / f"driver{next(count)}"
        subprocess.run([sys.executable, TESTS / "support/driver_tree.py", kind, path, *options],
                       check=True, capture_output=True)
        return path
    return make


def put(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def shown(berth, *flags):
    return json.loads(berth.ok(*flags, "node", "show", "--format", "json"))


def write(berth, name, text):
    path = berth.directory / name
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    return path


def conforms(value, schema, place="profile"):
    """As far as our schema goes; every member has to be in it."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rpartition("/")[2]]
    if "enum" in schema:
        assert value in schema["enum"], place
        return
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool,
             "null": type(None)}
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    assert isinstance(value, tuple(kinds[name] for name in names)), place
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), (place, value)
    if isinstance(value, dict):
        assert set(schema.get("required", [])) <= set(value), place
        for name, member in value.items():
            conforms(member, schema["properties"][name], f"{place}.{name}")
    if isinstance(value, list):
        for element in value:
            conforms(element, schema["items"], f"{place}[]")


def members(schema):
    return set(schema["properties"])


def test_it_tells_this_machine(berth):
    told = shown(berth)
    assert told["name"] == platform.node()
    assert told["architecture"] == ARCHITECTURES[platform.machine()]
    assert told["kernel"]["release"] == platform.release()
    assert told["libc"] == "glibc " + os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert told["cpu"]["microarchitecture"]
    assert told["cpu"]["ancestors"] == [] or told["cpu"]["ancestors"][-1] == platform.machine()
    if platform.machine() == "x86_64":
        assert 1 <= told["cpu"]["level"] <= 4
        flags = re.search(r"^flags\s*: (.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
        assert told["cpu"]["features"] == sorted(set(flags.group(1).split()))
    assert "overlay" in told["kernel"]["abilities"]


@pytest.mark.profiles("user", "single_id")
def test_every_user_is_told_the_same_of_the_machine(berth):
    mine = shown(berth)
    told = json.loads(subprocess.run(
        [berth.programs / "berth", "--root", berth.directory / "r", "--state",
         berth.directory / "s", "node", "show", "--format", "json"],
        capture_output=True, text=True, check=True).stdout)
    assert {**mine, "gpus": None} == {**told, "gpus": None}


def test_what_it_tells_is_what_the_schema_says(berth, driver_tree):
    for kind in ("mig", "amd", "intel"):
        told = shown(berth, "--driver-root", driver_tree(kind))
        conforms(told, SCHEMA)
        assert set(told) == members(SCHEMA)
        gpu = SCHEMA["properties"]["gpus"]["items"]
        assert all(set(one) == members(gpu) for one in told["gpus"])
        for part in ("cpu", "kernel", "driver"):
            assert set(told[part]) == members(SCHEMA["properties"][part])


@pytest.mark.parametrize("kind, count, member, value", [
    ("eight", 8, "compute_capability", "9.0"), ("boards", 4, "compute_capability", "3.7"),
    ("amd", 8, "architecture", "gfx90a"), ("intel", 2, "vendor", "intel")])
def test_it_tells_the_gpus(berth, tree, kind, count, member, value):
    told = shown(berth, "--driver-root", tree(kind, "--nvml-stub", STUB))
    assert told["synthetic"] is True
    assert [gpu[member] for gpu in told["gpus"]] == [value] * count
    if kind in ("eight", "boards"):
        assert told["driver"]["module_version"] == "570.133.20"
        assert told["driver"]["cuda_version"] == "12.8"
        assert {gpu["brand"] for gpu in told["gpus"]} == {"nvidia"}  # as NVML 12 says it of all


def test_it_tells_slices(berth, tree):
    root = tree("mig", "--nvml-stub", STUB)
    gpu = shown(berth, "--driver-root", root)["gpus"][0]
    assert gpu["mig"] is True
    assert gpu["mig_profiles"] == ["1g.10gb"] * 7
    assert "MIG: 7 × 1g.10gb" in berth.ok("--driver-root", root, "node", "show")


def test_it_tells_the_glibc_that_the_driver_asks_for(berth, driver_tree):
    root = driver_tree("one", "--glibc", "2.27")
    assert shown(berth, "--driver-root", root)["driver"]["glibc_needed"] == "2.27"
    assert ", needs glibc 2.27\n" in berth.ok("--driver-root", root, "node", "show")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the CPU of the tree is of x86-64")
def test_a_tree_stands_for_another_machine(berth, tree):
    root = tree("one")
    put(root, "proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon E5\n"
                              f"flags\t\t: {BROADWELL}\n\n")
    put(root, "proc/sys/kernel/osrelease", "4.18.0-553.el8\n")
    put(root, "sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n")
    put(root, "opt/rocm/.info/version", "6.2.0-66\n")
    text = berth.ok("--driver-root", root, "node", "show")
    lines = dict(re.split(r":\s+", line, maxsplit=1) for line in text.splitlines())
    assert lines["CPU"] == "broadwell (Xeon E5)"
    assert lines["x86-64 level"] == "3"
    assert lines["Runs code for"].startswith("haswell ivybridge ")
    assert lines["Kernel"] == "4.18.0-553.el8"
    assert lines["Fabric"] == "infiniband"
    assert lines["ROCm"] == "6.2.0"
    assert lines["NVIDIA driver"].startswith("570.133.20")
    assert lines["Node"].endswith(" (GPUs of a tree made for tests)")


def test_a_hostile_cpuinfo_is_no_trouble(berth, tree):
    root = tree("one")
    put(root, "proc/cpuinfo", "vendor_id : \x1b]0;title\x07\nmodel name : \x1b[2J\n"
                              "flags :" + " avx2" * 300_000 + "\n")
    out = berth.ok("--driver-root", root, "node", "show")
    assert "\x1b" not in out and "\x07" not in out


def test_a_template_picks_members(berth, driver_tree):
    out = berth.ok("--driver-root", driver_tree("boards"), "node", "show", "--format",
                   "{{.driver.module_version}} {{len .gpus}}")
    assert out == "570.133.20 4\n"


def test_both_forms_come_back_as_they_were_saved(berth, tree):
    root = tree("mig")
    here = shown(berth, "--driver-root", root)
    for name in ("node1.toml", "node1.json"):
        assert berth.ok("--driver-root", root, "node", "save", name) == ""
        saved = json.loads(berth.ok("node", "show", "--node", name, "--format", "json"))
        assert saved == {**here, "name": "node1"}
        good = berth.ok("--driver-root", root, "node", "check", name)
        assert good == f"{name}: good: this machine is as it says\n"
    saved = tomllib.loads((berth.directory / "node1.toml").read_text(encoding="utf-8"))
    assert saved["cpu"] == {k: v for k, v in here["cpu"].items() if v not in ("", [])}
    assert json.loads(berth.ok("--driver-root", root, "node", "save")) == here
    assert json.loads(berth.ok("--driver-root", root, "node", "save", "-")) == here
    assert {path.name for path in berth.directory.iterdir() if "node1" in path.name} == {
        "node1.toml", "node1.json"}


def test_check_names_what_has_changed(berth, tree):
    root = tree("one")
    berth.ok("--driver-root", root, "node", "save", "before.json")
    other = tree("eight", "--version", "580.65.06")
    done = berth.run("--driver-root", other, "node", "check", "before.json")
    assert done.returncode == 1
    rows = [re.split(r" {3,}", line) for line in done.stdout.splitlines()]
    assert rows[0] == ["MEMBER", "WRITTEN", "HERE"]
    assert ["driver.module_version", "570.133.20", "580.65.06"] in rows
    assert ["gpus", "1 of them", "8 of them"] in rows
    done = berth.run("--driver-root", other, "node", "check", "--format", "json", "before.json")
    assert done.returncode == 1
    assert {"member": "gpus", "written": "1 of them", "here": "8 of them"} in \
        json.loads(done.stdout)["differences"]


def test_check_compares_only_what_a_file_says(berth, driver_tree):
    architecture = ARCHITECTURES[platform.machine()]
    write(berth, "hand.toml", f'architecture = "{architecture}"\n[driver]\n'
                              'module_version = "570.133.20"\n[[gpus]]\nvendor = "nvidia"\n')
    berth.ok("--driver-root", driver_tree("one"), "node", "check", "hand.toml")


def test_a_profile_by_hand_is_filled(berth):
    write(berth, "k80.toml", BY_HAND)
    told = json.loads(berth.ok("node", "show", "--node", "k80.toml", "--format", "json"))
    assert told["name"] == "k80"
    assert told["cpu"]["level"] == 3
    assert "avx2" in told["cpu"]["features"]
    assert told["driver"]["cuda_version"] == "9.2"
    assert told["gpus"][0]["vendor"] == "nvidia"
    text = berth.ok("node", "show", "--node", "k80.toml")
    assert "GPU 0:          nvidia, sm 3.7\n" in text


@pytest.mark.parametrize("verb", [("show", "--node"), ("check",)])
@pytest.mark.parametrize("name, text, line", [
    ("a.toml", BY_HAND.replace("broadwell", "brodwell"),
     "a.toml: cpu.microarchitecture: unknown microarchitecture 'brodwell'; did "
     "you mean 'broadwell'?"),
    ("b.toml", BY_HAND.replace('"396.44"', "396.44"),
     "b.toml: driver.module_version: expected a string, got a number"),
    ("c.json", '{"version": 2, "architecture": "amd64"}',
     "c.json: version: this Berth reads profiles of version 1, this one is of 2"),
    ("d.yaml", BY_HAND, "'d.yaml': a profile's name ends in .json or .toml"),
])
def test_a_wrong_file_is_one_line(berth, verb, name, text, line):
    write(berth, name, text)
    assert berth.fail("node", *verb, name, status=1) == f"berth: {line}"


def test_a_file_that_is_not_there_is_one_line(berth):
    assert berth.fail("node", "check", "none.toml", status=1).startswith("berth: open 'none.toml'")


@pytest.mark.profiles("user", "single_id")
def test_saving_where_nobody_may_write_leaves_nothing(berth):
    line = berth.fail("node", "save", "/etc/berth-node.json", status=1)
    assert "/etc" in line and "Permission denied" in line
    assert not list(pathlib.Path("/etc").glob("*berth-node*"))


def test_saving_replaces_the_file_in_one_go(berth, driver_tree):
    path = write(berth, "node.json", "{}")
    os.chown(path, *os.stat(berth.directory)[4:6])
    with open(path, encoding="utf-8") as before:
        berth.ok("--driver-root", driver_tree("one"), "node", "save", "node.json")
        assert before.read() == "{}"
    assert json.loads(path.read_text(encoding="utf-8"))["version"] == 1
