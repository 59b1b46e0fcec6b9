# SPDX-License-Identifier: Apache-2.0
"""Code for AMD's GPUs by the clangs of three of Debian's suites: what Berth finds in it is what LLVM's own programs
list, and Berth's verdict for each GPU is that of a table written from LLVM's documents (support/amd_rules.py). No GPU
is needed: nodes are profiles.

A row of NOT_YET_FOUND that no binary needs fails."""

import collections
import json
import pathlib
import tempfile

import pytest

from support import amd_corpus, amd_rules, images, vendor_roots
from support.berth import Berth

pytestmark = pytest.mark.profiles("root")

ENDS = (0, 10, 11, 12)  # of match: 125 is an error
# Forms in which Berth does not read GPU code, and why.
NOT_YET_FOUND = {
    "object": "relocatable ELF files of the host are not read",
}


def corpus(suite):
    try:
        return amd_corpus.get(suite)
    except vendor_roots.Unavailable as error:
        pytest.skip(f"no clang of {suite}: {error}")


def reference(binary):
    name = "".join(one if one.isalnum() else "-" for one in binary.name.replace("+", "-on").lower())
    return f"localhost/amd-{name.strip('-')}:1"


def images_of(binaries):
    """(reference, image) of each binary, which is its image's only file."""
    for binary in binaries:
        name = f"opt/kernels{binary.path.suffix}"
        layer = images.layer([images.directory("opt"), images.file(name, binary.path.read_bytes(), mode=0o755)])
        yield reference(binary), images.build([layer], {"Cmd": [f"/{name}"]}, compression="none")


@pytest.fixture(scope="module")
def loaded(programs, accounts, session_directory):
    """loaded(suite) → ([Binary], a berth with their images)."""
    made = {}

    def load(suite):
        if suite not in made:
            found = corpus(suite)
            berth = Berth(programs, accounts["root"], session_directory / f"amd-code-{suite}")
            with tempfile.TemporaryDirectory(dir=session_directory) as directory:
                images.write_layout(pathlib.Path(directory), images_of(found))
                berth.ok("load", "--quiet", "--input", directory, timeout=300)
            made[suite] = found, berth
        return made[suite]

    return load


def found_by_berth(berth, binary):
    told = json.loads(berth.ok("scan", "--format", "json", reference(binary)))
    codes = [one for row in told["gpu_code"] for one in row["code"]]
    assert {one["kind"] for one in codes} <= {"gfx"}
    return sorted(amd_rules.canonical(one["arch"]) for one in codes)


@pytest.mark.parametrize("suite", vendor_roots.SUITES)
def test_what_is_found_is_what_llvm_lists(loaded, suite):
    found, berth = loaded(suite)
    assert len(found) >= 20
    wrong = {binary.name: (binary.form, there, binary.listed) for binary in found
             if (there := found_by_berth(berth, binary)) != binary.listed}
    print("\n".join(f"{name}: Berth {there}, LLVM {listed}" for name, (_, there, listed) in wrong.items()))
    assert {form for form, _, _ in wrong.values()} == {one.form for one in found} & set(NOT_YET_FOUND)
    assert all(not there for _, there, _ in wrong.values()), "found in part"


# ---- verdicts -----------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def fleet(session_directory):
    """A directory with a profile of each GPU: NUMBER.json."""
    directory = session_directory / "amd-fleet"
    directory.mkdir()
    for number, (model, architecture) in enumerate(amd_rules.GPUS.items()):
        node = {"version": 1, "architecture": "amd64", "cpu": {"microarchitecture": "zen3"},
                "gpus": [{"vendor": "amd", "model": model, "architecture": architecture}]}
        (directory / f"{number}.json").write_text(json.dumps(node))
    return directory


def verdict(entry):
    """yes, no or unknown, and the reason. A program that runs, but not on the GPU, is a no."""
    clauses = [clause for clause in entry["clauses"] if clause["about"] == "gpu" and clause["outcome"] != "pass"]
    for clause in clauses:
        if clause["outcome"] == "fail" or clause["reason"].startswith("the GPU stays unused"):
            return "no", clause["reason"]
    return (clauses[0]["outcome"], clauses[0]["reason"]) if clauses else ("yes", "")


def judged(berth, fleet, binary):
    """[(GPU's name, Answer, Berth's verdict, its reason)]"""
    names = list(amd_rules.GPUS)
    done = berth.run("match", "--local", "--fleet", fleet, "--format", "json", reference(binary))
    assert done.returncode in ENDS, done.stderr
    for row in json.loads(done.stdout):
        model = names[int(row["node"])]
        yield model, amd_rules.runs(binary.listed, amd_rules.GPUS[model]), *verdict(row["entries"][0])


@pytest.mark.parametrize("suite", vendor_roots.SUITES)
def test_verdicts_are_those_of_the_documents(loaded, fleet, suite):
    found, berth = loaded(suite)
    counts, left = collections.Counter(), []
    for binary in found:
        if binary.form in NOT_YET_FOUND:
            continue
        for model, answer, said, reason in judged(berth, fleet, binary):
            counts[said] += 1
            if said != ("yes" if answer.runs else "no"):
                left.append([binary.name, model, amd_rules.GPUS[model], answer.why, f"Berth: {said}: {reason}"])
    print(f"{suite}: {sum(counts.values())} verdicts of {len(amd_rules.GPUS)} GPUs:", dict(counts))
    assert left == []
    assert counts["yes"] > 30 and counts["no"] > 300
