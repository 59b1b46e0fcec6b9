# SPDX-License-Identifier: Apache-2.0
"""GPU code of NVIDIA's compilers: what Berth finds in it is what cuobjdump lists, and Berth's verdict for each GPU and
driver is that of a table written from NVIDIA's documents (support/cuda_rules.py). No GPU is needed: nodes are profiles.

A row of NOT_YET_FOUND or NOT_YET_JUDGED that no binary needs fails."""

import collections
import json
import os
import pathlib
import tempfile

import pytest

from support import cuda_rules, gpu_corpus, images, kept, scratch, toolkits
from support.berth import Berth
from support.cuda_rules import GPUS, Code

pytestmark = pytest.mark.profiles("root")

DRIVERS = ("390.157", "418.226.00", "450.248.02", "470.256.02", "535.261.03", "550.163.01", "580.95.05",
           # Below and at the limits of minor version compatibility, and of PTX.
           "450.51.06", "450.80.02", "460.32.03", "520.61.05", "525.60.13")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADED = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0")


def corpus(version):
    try:
        return gpu_corpus.get(version)
    except toolkits.Unavailable as error:
        pytest.skip(f"no CUDA toolkit {version}: {error}")


# ---- images of one binary -----------------------------------------------------------------------

def _base_layer():
    """What the programs load: Debian's libraries, a loader, and a program without GPU code."""
    root = toolkits.get("12.4").root
    loader = f"{LIBRARIES}/ld-linux-x86-64.so.2"
    folders = ("usr", "usr/bin", "usr/lib", LIBRARIES, "usr/lib64", "opt")
    return images.layer([
        *(images.directory(name) for name in folders), images.symlink("lib", "usr/lib"),
        images.symlink("lib64", "usr/lib64"), images.symlink("usr/lib64/ld-linux-x86-64.so.2", f"/{loader}"),
        *(images.file(name, (root / name).resolve().read_bytes(), mode=0o755)
          for name in (loader, "usr/bin/true", *(f"{LIBRARIES}/{one}" for one in LOADED)))])


def _binary_layer(binary):
    is_program = binary.is_linked and not binary.path.suffix
    name = "opt/program" if is_program else f"opt/{binary.path.name}"
    entries = [images.file(name, binary.path.read_bytes(), mode=0o755)]
    if binary.form in ("shared", "dynamic"):
        (runtime,) = (toolkits.get(binary.toolkit).root / LIBRARIES).glob("libcudart.so.*.*.*")
        soname = "libcudart.so.12" if binary.toolkit == "12.4" else "libcudart.so.11.0"
        entries += [images.file(f"{LIBRARIES}/{runtime.name}", runtime.read_bytes()),
                    images.symlink(f"{LIBRARIES}/{soname}", runtime.name)]
    return images.layer(entries), "/opt/program" if is_program else "/usr/bin/true"


def reference(binary):
    return f"localhost/{binary.name.replace('/', '-').replace('.', '-')}:1"


def write_layout(binaries, place):
    """An OCI layout with an image for each binary."""
    (place / "blobs/sha256").mkdir(parents=True)
    base, entries = _base_layer(), []
    for binary in binaries:
        layer, program = _binary_layer(binary)
        image = images.build([base, layer], {"Cmd": [program]}, compression="none")
        for digest, data in {**image.blobs, image.digest: image.manifest}.items():
            (place / "blobs/sha256" / digest.removeprefix("sha256:")).write_bytes(data)
        entries.append({"mediaType": image.media_type, "digest": image.digest, "size": len(image.manifest),
                        "annotations": {"io.containerd.image.name": reference(binary)}})
    (place / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": entries}))
    (place / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


@pytest.fixture(scope="module")
def loaded(programs, accounts, session_directory):
    """loaded(version) → (the corpus of a toolkit, a berth with its images)."""
    made = {}

    def load(version):
        if version not in made:
            found = corpus(version)
            berth = Berth(programs, accounts["root"], session_directory / f"gpu-code-{version}")
            with tempfile.TemporaryDirectory(dir=session_directory) as directory:
                write_layout(found.binaries, pathlib.Path(directory))
                berth.ok("load", "--quiet", "--input", directory, timeout=300)
            made[version] = found, berth
        return made[version]

    (session_directory / "gpu-code").mkdir()
    yield load


# ---- what is found ------------------------------------------------------------------------------

# Forms in which Berth does not read GPU code, and why.
NOT_YET_FOUND = {}


def found_by_berth(berth, binary):
    told = json.loads(berth.ok("scan", "--format", "json", reference(binary)))
    kinds = {"sass": "cubin", "ptx": "ptx", "ir": "lto"}
    return {Code(kinds[one["kind"]], f"sm_{one['arch']}", one.get("isa", "")) for row in told["gpu_code"]
            for one in row["code"]}


@pytest.mark.parametrize("version", toolkits.VERSIONS)
def test_what_is_found_is_what_cuobjdump_lists(loaded, version):
    found, berth = loaded(version)
    wrong = {}
    for binary in found.binaries:
        there = found_by_berth(berth, binary)
        if there != set(binary.listed):
            wrong[binary.name] = (sorted(there), binary.listed)
    for name, (there, listed) in wrong.items():
        print(name, "BERTH", there, "CUOBJDUMP", listed)
    assert {name.partition("/")[2] for name in wrong} == set()


# ---- verdicts -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def fleet(session_directory):
    """A directory with a profile of each GPU and driver: NUMBER-DRIVER."""
    directory = session_directory / "gpu-fleet"
    directory.mkdir()
    for number, (model, gpu) in enumerate(GPUS.items()):
        for driver in DRIVERS:
            node = {"version": 1, "architecture": "amd64", "cpu": {"microarchitecture": "zen3"},
                    "driver": {"module_version": driver},
                    "gpus": [{"model": model, "compute_capability": "{}.{}".format(*gpu.capability)}]}
            (directory / f"{number}-{driver}.json").write_text(json.dumps(node))
    return directory


def verdict(entry):
    """yes, no or unknown, and the clause that says so. A program that runs without the GPU does not run on it."""
    clauses = [clause for clause in entry["clauses"] if clause["outcome"] != "pass"]
    for clause in clauses:
        if clause["outcome"] == "fail" or clause["reason"].startswith("the GPU stays unused"):
            return "no", clause
    for clause in clauses:
        if clause["outcome"] == "unknown":
            return "unknown", clause
    return "yes", clauses[0] if clauses else {}
