# SPDX-License-Identifier: Apache-2.0
"""GPU code of NVIDIA's compilers: what Berth finds in it is what cuobjdump lists, and Berth's verdict for each GPU and
driver is that of a table written from NVIDIA's documents (support/cuda_rules.py). No GPU is needed: nodes are profiles."""

import collections
import html.parser
import json
import pathlib
import tempfile
import time

import pytest

from support import cuda_rules, gpu_corpus, images, kept, toolkits
from support.berth import Berth
from support.cuda_rules import GPUS, Code

pytestmark = pytest.mark.profiles("root")

DRIVERS = ("390.157", "418.226.00", "450.248.02", "470.256.02", "535.261.03", "550.163.01", "580.95.05",
           # Below and at the limits of minor version compatibility, and of PTX.
           "450.51.06", "450.80.02", "460.32.03", "520.61.05", "525.60.13")
CORPORA = (*toolkits.VERSIONS, "others")
LIBRARIES = "usr/lib/x86_64-linux-gnu"
LOADED = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0")


def corpus(version):
    try:
        return gpu_corpus.others() if version == "others" else gpu_corpus.get(version).binaries
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


def images_of(binaries):
    """(reference, image) of each binary."""
    base = _base_layer()
    for binary in binaries:
        layer, program = _binary_layer(binary)
        yield reference(binary), images.build([base, layer], {"Cmd": [program]}, compression="none")


@pytest.fixture(scope="module")
def loaded(programs, accounts, session_directory):
    """loaded(version) → ([Binary], a berth with their images)."""
    made = {}

    def load(version):
        if version not in made:
            found = corpus(version)
            berth = Berth(programs, accounts["root"], session_directory / f"gpu-code-{version}")
            with tempfile.TemporaryDirectory(dir=session_directory) as directory:
                images.write_layout(pathlib.Path(directory), images_of(found))
                berth.ok("load", "--quiet", "--input", directory, timeout=300)
            made[version] = found, berth
        return made[version]

    return load


# ---- what is found ------------------------------------------------------------------------------

# What a linker reads. It is listed, but no program runs it, so there are no verdicts.
FOR_LINKERS = ("archive", "object", "lto-object")


def found_by_berth(berth, binary):
    told = json.loads(berth.ok("scan", "--format", "json", reference(binary)))
    kinds = {"sass": "cubin", "ptx": "ptx", "ir": "lto"}
    sets = told.get("linker_code", []) + ([] if binary.form in FOR_LINKERS else told["gpu_code"])
    codes = [one for row in sets for one in row["code"]]
    return {Code("amd", one["arch"]) if one["kind"] not in kinds else
            Code(kinds[one["kind"]], f"sm_{one['arch']}", one.get("isa", "")) for one in codes}


@pytest.mark.parametrize("version", CORPORA)
def test_what_is_found_is_what_cuobjdump_lists(loaded, version):
    found, berth = loaded(version)
    wrong = {binary.name: (sorted(there), binary.listed) for binary in found
             if (there := found_by_berth(berth, binary)) != set(binary.listed)}
    assert wrong == {}


ENDS = (0, 10, 11, 12)  # of match: 125 is an error


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
    """yes, no or unknown, and the reason. A program that runs, but not on the GPU, is a no."""
    clauses = [clause for clause in entry["clauses"] if clause["outcome"] != "pass"]
    for clause in clauses:
        if clause["outcome"] == "fail" or clause["about"] == "driver" and clause["outcome"] == "runs-but" \
                or clause["reason"].startswith("the GPU stays unused"):
            return "no", clause["reason"]
    for clause in clauses:
        if clause["outcome"] == "unknown":
            return "unknown", clause["reason"]
    return "yes", clauses[0]["reason"] if clauses else ""


def judged(berth, fleet, binary):
    """[(GPU's name, driver, Answer, Berth's verdict, its reason)] for the nodes that can exist."""
    names = list(GPUS)
    done = berth.run("match", "--local", "--fleet", fleet, "--format", "json", reference(binary))
    assert done.returncode in ENDS, done.stderr
    for row in json.loads(done.stdout):
        number, _, driver = row["node"].partition("-")
        model = names[int(number)]
        if cuda_rules.exists(GPUS[model], driver):
            answer = cuda_rules.runs(binary.asked, binary.toolkit, GPUS[model], driver)
            yield model, driver, answer, *verdict(row["entries"][0])


def write_results(version, counts, left):
    """Beside the corpus, for people."""
    text = {"counts": {" ".join(key).strip(): count for key, count in sorted(counts.items())}, "not as the table": left}
    (kept.cache() / f"gpu-code-results-{version}.json").write_text(json.dumps(text, indent=1))


@pytest.mark.parametrize("version", CORPORA)
def test_verdicts_are_those_of_the_documents(loaded, fleet, version):
    found, berth = loaded(version)
    counts, left = collections.Counter(), []
    for binary in found:
        if binary.form in FOR_LINKERS or not binary.toolkit:
            continue
        for model, driver, answer, said, reason in judged(berth, fleet, binary):
            wanted = "yes" if answer.runs else "no"
            if said == wanted:
                counts["same", said] += 1
                continue
            kind = {"yes": "wrong", "no": "refused", "unknown": "unknown"}[said]
            counts[kind, ""] += 1
            left.append([binary.name, model, driver, f"table: {wanted}: {answer.why}", f"Berth: {said}: {reason}"])
    write_results(version, counts, left)
    print(f"{version}: {sum(counts.values())} verdicts:", *(f"{count} {' '.join(key).strip()};"
                                                             for key, count in sorted(counts.items())))
    assert left == []


# ---- the page of a fleet ------------------------------------------------------------------------

PAIRS = 400  # of image and node, at least


class Cells(html.parser.HTMLParser):
    """The signs of the matrix, by row."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.in_cell, self.in_matrix = [], False, False
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag == "table":
            self.in_matrix = ("class", "matrix") in attributes
        elif tag == "tr" and self.in_matrix:
            self.rows.append([])
        self.in_cell = tag == "td" or self.in_cell and tag == "a"
        if tag == "td" and self.in_matrix:
            self.rows[-1].append("")

    def handle_data(self, text):
        if self.in_cell and self.in_matrix:
            self.rows[-1][-1] += text

    def handle_endtag(self, tag):
        self.in_cell = self.in_cell and tag != "td"


def test_a_page_of_images_and_nodes_says_what_the_documents_say(loaded, fleet):
    found, berth = loaded("12.4")
    binaries = [one for one in found if one.form not in FOR_LINKERS]
    references = [reference(one) for one in binaries]
    arguments = ("match", "--local", "--fleet", fleet)
    rows = json.loads(berth.run(*arguments, "--format", "json", *references).stdout)
    begin = time.monotonic()
    done = berth.run(*arguments, "--html", *references)
    seconds = time.monotonic() - begin
    page = [row for row in Cells(done.stdout).rows if row]
    nodes = sorted({row["node"] for row in rows})
    assert [len(row) for row in page] == len(nodes) * [len(binaries)]
    signs = {(node, name): sign[0] for node, row in zip(nodes, page) for name, sign in zip(references, row)}
    names, pairs = list(GPUS), []
    by_reference = {reference(one): one for one in binaries}
    for row in rows:
        number, _, driver = row["node"].partition("-")
        gpu = GPUS[names[int(number)]]
        if not cuda_rules.exists(gpu, driver):
            continue
        binary = by_reference[row["reference"]]
        answer = cuda_rules.runs(binary.asked, binary.toolkit, gpu, driver)
        said, reason = verdict(row["entries"][0])
        pairs.append({"image": binary.name, "gpu": names[int(number)], "driver": driver,
                      "documents": ["no", "yes"][answer.runs], "why": answer.why, "berth": said, "reason": reason,
                      "page": signs[row["node"], row["reference"]]})
    (kept.cache() / "gpu-fleet-pairs.json").write_text(json.dumps(pairs, indent=1))
    (kept.cache() / "gpu-fleet.html").write_text(done.stdout)
    print(f"{len(pairs)} pairs of {len(page) * len(page[0])}, a page of {len(done.stdout)} bytes in {seconds:.2f} s")
    assert len(pairs) >= PAIRS
    assert [pair for pair in pairs if pair["berth"] != pair["documents"]] == []
    assert [pair for pair in pairs if (pair["page"], pair["documents"]) in (("✓", "no"), ("✗", "yes"))] == []


# ---- what would help ----------------------------------------------------------------------------

def needed_driver(binary, gpu):
    """The lowest driver with which a binary runs on a GPU, or None."""
    drivers = sorted(cuda_rules.DRIVER_OF_CUDA.values(), key=cuda_rules.version)
    return next((one for one in drivers if cuda_rules.runs(binary.asked, binary.toolkit, gpu, one).runs), None)


def lifts(berth, fleet, binary, number, driver):
    done = berth.run("match", "--local", "--node", fleet / f"{number}-{driver}.json", "--format", "json",
                     reference(binary))
    row = json.loads(done.stdout)
    return [clause["lift"] for clause in row["entries"][0]["clauses"] if clause["lift"]]


@pytest.mark.parametrize("name, model, driver", [
    ("dynamic-80-p80", "NVIDIA A10", "470.256.02"),
    ("dynamic-p75", "NVIDIA A10", "525.60.13"), ("dynamic-p75", "NVIDIA A10", "470.256.02"),
    ("80-p80", "NVIDIA H200", "470.256.02")])
def test_the_driver_that_is_needed_is_named(loaded, fleet, name, model, driver):
    found, berth = loaded("12.4")
    (binary,) = (one for one in found if one.name == f"12.4/{name}")
    branch = needed_driver(binary, GPUS[model]).partition(".")[0]
    assert f"driver={branch}" in lifts(berth, fleet, binary, list(GPUS).index(model), driver)


def test_what_would_help_is_a_word_of_what_if(loaded, fleet):
    found, berth = loaded("12.4")
    (binary,) = (one for one in found if one.name == "12.4/dynamic-p75")
    number = list(GPUS).index("NVIDIA A10")
    words = lifts(berth, fleet, binary, number, "525.60.13")
    done = berth.run("what-if", "--local", "--node", fleet / f"{number}-525.60.13.json", reference(binary), *words)
    assert done.returncode in ENDS, done.stderr
