# SPDX-License-Identifier: Apache-2.0
"""The steps of run.py. Each returns (result, text, facts):

    same      in a container it is as on the machine, or as it was told to be
    differs   it is not
    no card   the machine itself computes nothing: containers were compared with that
    refused   Berth says that it cannot, with a reason that is the text
    cannot    something that the step needs is missing here

and facts: what was compared, and "tables" for the summary.
"""

import collections
import json
import pathlib
import re
import shutil
import statistics
import tarfile
import tempfile
import time
import xml.etree.ElementTree

Step = collections.namedtuple("Step", "name about seconds run")
# What a program sees of a GPU wherever it runs.
KEPT = ("right", "sum", "error", "count", "driver", "name", "capability", "multiprocessors", "pci", "total_mib")
# What the image mode needs of the driver.
OF_DRIVER = ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-nvvm", "libnvidia-gpucomp")


class Cannot(Exception):
    """A step needs what this machine does not have; the text says what."""


class OutOfTime(Exception):
    def __init__(self, words):
        super().__init__("during '%s'" % " ".join(words)[:200])


def picked(answer):
    return {name: answer.get(name) for name in KEPT}


def libcuda(machine):
    """The machine's, as Berth has found it, or None."""
    try:
        told = json.loads(machine.berth("doctor", "--format", "json", "gpu").out)["checks"]
    except (ValueError, KeyError):
        return None
    causes = [one["cause"] for one in told if one["id"] == "gpu.libraries" and (one["cause"] or "").startswith("/")]
    return pathlib.Path(causes[0]) if causes and pathlib.Path(causes[0]).exists() else None


def bare_words(machine, program):
    """For the machine itself; of a driver root its libraries."""
    found = libcuda(machine) if machine.options.driver_root else None
    return [*(["env", "LD_LIBRARY_PATH=%s" % found.parent] if found else []), program]


def bare(machine):
    """What the program says on the machine itself; asked once."""
    if "bare" not in machine.shared:
        done = machine.run(*bare_words(machine, machine.place / "programs/card"))
        if not done.json():
            raise Cannot("the program does not run on the machine itself: %s" % done.why())
        machine.shared["bare"] = done.json()
    return machine.shared["bare"]


def has_card(machine):
    return bool(bare(machine).get("right"))


def image(machine, name, *words):
    """The words for `run`, after the flags. The store is as root's Berth made it, and an ordinary user's would change
    its layers by berth-transfer, which is not here: the user has the same files as a directory."""
    if machine.is_root:
        return ["localhost/%s:1" % name, *words]
    place = pathlib.Path(tempfile.mkdtemp(prefix="root-", dir=machine.place))
    unpack_root(machine, place)
    for program in (machine.place / "store").rglob("opt/%s" % name):
        shutil.copy2(program, place / "opt" / name)
    return ["--rootfs", place, *(words or ["/opt/%s" % name])]


def unpack_root(machine, place):
    """What each image has beside its program."""
    place.chmod(0o755)
    with tarfile.open(machine.place / "root.tar") as tar:
        if hasattr(tarfile, "fully_trusted_filter"):
            tar.extraction_filter = staticmethod(tarfile.fully_trusted_filter)  # we made it
        tar.extractall(place)


def asks_gpus(machine):
    """Flags for all GPUs, or Cannot where Berth finds none."""
    if "gpus" not in machine.shared:
        done = machine.berth("gpu", "list", "--format", "json")
        try:
            machine.shared["gpus"] = json.loads(done.out)
        except ValueError:
            raise Cannot("berth gpu list: %s" % done.why())
    if not machine.shared["gpus"]["gpus"]:
        raise Cannot("Berth finds no GPU")
    return ["--gpus", "all"]


def judge(machine, wrong):
    """The result of a comparison with the machine."""
    if wrong:
        return "differs"
    return "same" if has_card(machine) else "no card"


# ---- what is there ------------------------------------------------------------------------------

def _address(text):
    """0000:1b:00.0 of 00000000:1B:00.0."""
    domain, _, rest = text.lower().partition(":")
    return "%s:%s" % (domain[-4:], rest)


def _told_by_smi(root):
    found = {}
    for gpu in root.iter("gpu"):
        def text(path, of=gpu):
            node = of.find(path)
            return (node.text or "").strip() if node is not None else ""
        memory = re.match(r"(\d+) MiB", text("fb_memory_usage/total"))
        found[text("uuid")] = {
            "address": _address(gpu.get("id", "")), "model": text("product_name"),
            "minor": text("minor_number"), "memory_mib": int(memory.group(1)) if memory else None,
            "mig": text("mig_mode/current_mig") == "Enabled"}
    return found


def inventory(machine):
    asks_gpus(machine)
    doctor = machine.berth("doctor", "gpu")
    told = machine.shared["gpus"]
    ours = {gpu["uuid"]: {"address": gpu["pci_address"], "model": gpu["model"], "minor": str(gpu["minor"]),
                          "memory_mib": gpu["memory_bytes"] and gpu["memory_bytes"] >> 20, "mig": gpu["mig_mode"]}
            for gpu in told["gpus"]}
    problems = re.findall(r"^  problem +(.*)$", doctor.out, re.M)
    facts = {"berth": ours, "doctor": problems}
    done = machine.nvidia_smi("-q", "-x")
    if not done.ok:
        raise Cannot("nvidia-smi -q -x: %s; Berth lists %d GPUs" % (done.why(), len(ours)))
    (machine.out / "nvidia-smi.xml").write_text(done.out)
    root = xml.etree.ElementTree.fromstring(done.out)
    theirs = _told_by_smi(root)
    driver = {"driver": (told["driver"]["module_version"], (root.findtext("driver_version") or "").strip()),
              "CUDA": (told["driver"]["cuda_version"], (root.findtext("cuda_version") or "").strip())}
    facts.update({"nvidia-smi": theirs, "versions": driver})
    rows = [(name, *pair) for name, pair in driver.items() if pair[0] != pair[1]]
    for uuid in sorted(set(ours) | set(theirs)):
        here, there = ours.get(uuid, {}), theirs.get(uuid, {})
        rows += [("%s %s" % (uuid, key), here.get(key), there.get(key)) for key in sorted(set(here) | set(there))
                 if here.get(key) != there.get(key)]
    if rows:
        facts["tables"] = {"Inventory": [("What", "Berth", "nvidia-smi"), *rows]}
    text = "%d GPUs, driver %s; %d differences; doctor names %d problems" % (
        len(ours), driver["driver"][0], len(rows), len(problems))
    return ("differs" if rows else "same"), text, facts


# ---- the driver in a container ------------------------------------------------------------------

def _driver_files(machine):
    """The libraries of this machine's driver beside libcuda, of its version."""
    found = libcuda(machine)
    if not found:
        return []
    ending = ".so.%s" % found.name.partition(".so.")[2]
    return [path for path in found.parent.iterdir() if path.name.endswith(ending)
            and path.name.partition(".so")[0] in OF_DRIVER]


def _root_with_driver(machine, place):
    """The image's root with the program and this machine's driver in it."""
    unpack_root(machine, place)
    shutil.copy2(machine.place / "programs/card", place / "opt/card")
    files = _driver_files(machine)
    libraries = place / "usr/lib/x86_64-linux-gnu"
    for path in files:
        shutil.copy2(path, libraries / path.name)
        (libraries / ("%s.so.1" % path.name.partition(".so")[0])).symlink_to(path.name)
    return files


def _in_image_mode(machine, gpus):
    with tempfile.TemporaryDirectory(dir=machine.place) as directory:
        place = pathlib.Path(directory)
        if not _root_with_driver(machine, place):
            return None
        return machine.berth("run", "--rm", *gpus, "--gpu-driver", "image", "--rootfs", place, "/opt/card")


def modes(machine):
    gpus = asks_gpus(machine)
    wanted, rows, wrong, facts = picked(bare(machine)), [], 0, {"bare": bare(machine)}
    for mode in ("bind", "volume", "copy", "image"):
        done = (_in_image_mode(machine, gpus) if mode == "image" else
                machine.berth("run", "--rm", *gpus, "--gpu-driver", mode, *image(machine, "card")))
        if done is None:
            rows.append((mode, "cannot", "Berth has not found libcuda"))
            continue
        if done.status == 125:
            rows.append((mode, "refused", done.why()))
            continue
        facts[mode] = done.json()
        differ = [key for key in wanted if wanted[key] != picked(done.json())[key]] if done.json() else ["no answer"]
        wrong += bool(differ)
        rows.append((mode, "differs" if differ else "same", ", ".join(differ) + ("" if done.json() else done.why())))
    facts["tables"] = {"Driver modes": [("Mode", "Result", "What differs"), *rows]}
    text = "; ".join("%s: %s" % row[:2] for row in rows)
    return judge(machine, wrong) if len(facts) > 2 else "refused", text, facts


def smi(machine):
    gpus = asks_gpus(machine)
    there = machine.nvidia_smi("-L")
    if not there.ok:
        raise Cannot("nvidia-smi on the machine: %s" % there.why())
    inside = machine.berth("run", "--rm", *gpus, *image(machine, "card", "nvidia-smi", "-L"))
    same = inside.out == there.out
    return ("same" if same else "differs"), (there.out.strip() if same else inside.why()), {}


# ---- shares and limits --------------------------------------------------------------------------

def _start(machine, name, *flags):
    return machine.berth("run", "-d", "--name", name, "--stop-timeout", "0", *flags,
                         *image(machine, "card", "/opt/card", "hold", "300"))


def _ask(machine, name, *words):
    done = machine.berth("exec", name, "/opt/card", *words)
    return done.json() or {"error": None, "message": done.why()}


def tenants(machine):
    """Two containers with a quarter and a half of the multiprocessors each."""
    gpus, whole = asks_gpus(machine), bare(machine)
    rows, facts = [], {"bare": whole}
    for name, percent in (("quarter", 25), ("half", 50)):
        done = _start(machine, name, *gpus, "--gpu-cores", str(percent))
        if not done.ok:
            return "refused", done.why(), facts
        answer = facts[name] = _ask(machine, name)
        share = answer.get("multiprocessors")
        rows.append((name, percent, share, whole.get("multiprocessors"), answer.get("right"), answer.get("message")))
    facts["use"] = machine.berth("gpu", "list", "--format", "json").out[:4000]
    machine.berth("rm", "--force", "quarter", "half")
    for _ in range(10):
        left = [line for line in machine.run("ps", "-eo", "args").out.splitlines() if "nvidia-cuda-mps" in line]
        if not left:
            break
        time.sleep(1)
    facts["left"] = left
    facts["tables"] = {"MPS": [("Tenant", "Percent", "Multiprocessors", "Of", "Computed", "Message"), *rows]}
    if not has_card(machine):
        return "no card", "both tenants started", facts
    wrong = [row for row in rows if not row[4] or not row[2] or row[2] > row[3] * row[1] / 100 + 2]
    text = "; ".join("%s: %s of %s multiprocessors" % (row[0], row[2], row[3]) for row in rows)
    return ("differs" if wrong or left else "same"), text + ("; daemons are left" if left else ""), facts


def memory(machine):
    gpus = asks_gpus(machine)
    asks = ("card", "/opt/card", "memory", "4096")
    free = machine.berth("run", "--rm", *gpus, *image(machine, *asks))
    facts = {"unlimited": free.json()}
    held = machine.berth("run", "--rm", *gpus, "--gpu-memory", "2g", *image(machine, *asks))
    if held.status == 125:
        return "refused", held.why(), facts
    facts["limited"] = held.json()
    if not has_card(machine):
        return "no card", "no memory was asked for: %s" % held.json().get("message"), facts
    most, got = facts["unlimited"].get("allocated_mib", 0), held.json().get("allocated_mib", 0)
    text = "%s MiB without a limit (4096 asked for), %s MiB with 2 GiB" % (most, got)
    return ("same" if most == 4096 and 0 < got <= 2048 else "differs"), text, facts


def live(machine):
    gpus = asks_gpus(machine)
    if not machine.is_root:
        raise Cannot("only root's containers get or lose GPUs while they run")
    done = machine.berth("run", "-d", "--name", "live", "--stop-timeout", "0", *gpus,
                         *image(machine, "card", "sleep", "300"))
    if not done.ok:
        return "differs", done.why(), {}
    rows, nodes = [], "ls /dev | sed -n /^nvidia[0-9]/p | tr '\\n' ' '"
    for what, words in (("started", None), ("removed", "none"), ("added", "all")):
        changed = machine.berth("update", "--gpus", words, "live") if words else done
        answer = _ask(machine, "live") if changed.ok else {"message": changed.why()}
        seen = machine.berth("exec", "live", "sh", "-c", nodes).out.strip()
        rows.append((what, answer.get("right"), answer.get("message"), seen))
    facts = {"tables": {"A running container": [("Then", "Computes", "Message", "Nodes"), *rows]}}
    nodes_right = bool(rows[0][3]) and not rows[1][3] and rows[2][3] == rows[0][3]
    works = [bool(row[1]) for row in rows] == [True, False, True]
    text = "; ".join("%s: %s" % (row[0], row[3] or "no node") for row in rows)
    if not has_card(machine):
        return ("no card" if nodes_right else "differs"), text, facts
    return ("same" if works and nodes_right else "differs"), text, facts


# ---- programs of ./dev bench seeds --------------------------------------------------------------

def _pairs(machine, there, inside, count=5):
    """Ratios of the programs' own times, in pairs; and (checksums agree, what went wrong)."""
    ratios, sums = [], set()
    for _ in range(count):
        pair = []
        for words in (there, inside):
            done = machine.berth(*words[1:], seconds=90) if words[0] == "berth" else machine.run(*words, seconds=90)
            if not done.ok or not done.json():
                return ratios, False, "%s: %s" % (words[0], done.why())
            sums.add(done.json().get("checksum"))
            pair.append(done.json())
        ratios.append(pair[1]["real_s"] / pair[0]["real_s"])
    return ratios, len(sums) == 1, ""


def _compared(machine, there, inside):
    ratios, agree, why = _pairs(machine, there, inside)
    if why:
        return ("differs" if has_card(machine) else "no card"), why, {}
    middle = statistics.median(ratios)
    text = "%d pairs, container to machine %.3f (%.3f to %.3f)%s" % (
        len(ratios), middle, min(ratios), max(ratios), "" if agree else "; checksums differ")
    return ("same" if agree and middle < 1.05 else "differs"), text, {"ratios": ratios}


def pooling(machine):
    gpus = asks_gpus(machine)
    program = machine.place / "programs/pooling"
    if not program.exists():
        raise Cannot("the pack has no program of pooling")
    return _compared(machine, bare_words(machine, program), ["berth", "run", "--rm", *gpus,
                                                             *image(machine, "pooling")])


def networks(machine):
    gpus = asks_gpus(machine)
    place = machine.place / "networks"
    if shutil.which("nvcc") is None or not place.exists():
        raise Cannot("no nvcc here to compile the networks, and cuBLAS is too large to be carried")
    program = machine.place / "programs/networks"
    done = machine.run("nvcc", "-std=c++17", "-O3", *(["-arch=native"] if has_card(machine) else []), "-I%s" % place,
                       place / "networks.o", place / "bench/networks/device_cuda.cu", place / "libberth_base.a",
                       "-lcublas", "-o", program, seconds=180)
    if not done.ok:
        errors = [line for line in done.err.splitlines() if "error" in line or "undefined" in line]
        raise Cannot("nvcc: %s" % (errors[0][:300] if errors else done.why()))
    libraries = {path for path in re.findall(r"=> (/\S*(?:cublas|cudart)\S*)", machine.run("ldd", program).out)}
    if not libraries:
        raise Cannot("the program does not find cuBLAS")
    directory = str(pathlib.Path(sorted(libraries)[0]).resolve().parent)
    words = ["--network", "alexnet", "--batches", "10", "--burn-in", "2"]
    inside = ["berth", "run", "--rm", *gpus, "-v", "%s:/cuda:ro" % directory, "-v", "%s:/networks:ro" % program,
              "-e", "LD_LIBRARY_PATH=/cuda", *image(machine, "card", "/networks", *words)]
    return _compared(machine, [program, *words], inside)


# ---- verdicts -----------------------------------------------------------------------------------

def verdict_of(told):
    """yes, no or unknown, and why, of `match --format json`. A program that runs without the GPU is a no."""
    clauses = [one for one in told["entries"][0]["clauses"] if one["outcome"] != "pass"]
    for one in clauses:
        if one["outcome"] == "fail" or one["about"] == "driver" and one["outcome"] == "runs-but" \
                or one["reason"].startswith("the GPU stays unused"):
            return "no", one["reason"]
    for one in clauses:
        if one["outcome"] == "unknown":
            return "unknown", one["reason"]
    return "yes", clauses[0]["reason"] if clauses else ""


def verdicts(machine):
    gpus, judged = asks_gpus(machine), machine.pack()["judged"]
    if not machine.is_root:
        raise Cannot("the packed layers are in the form of root's: match would see no files")
    rows, counts = [], collections.Counter()
    for name in sorted(judged):
        done = machine.berth("match", "--local", "--format", "json", "localhost/%s:1" % name)
        try:
            told = json.loads(done.out)
            said, why = verdict_of(told[0] if isinstance(told, list) else told)
        except (ValueError, KeyError, IndexError):
            said, why = "error", done.why()
        ran = machine.berth("run", "--rm", *gpus, *image(machine, name))
        answer = ran.json() or {"message": ran.why()}
        does = "yes" if answer.get("right") else "no"
        counts["%s, and it %s" % (said, "runs" if does == "yes" else "does not")] += 1
        rows.append((name, said, does, answer.get("message"), why))
    facts = {"counts": dict(counts), "tables": {
        "Verdicts": [("Program", "match", "The card", "Message", "Reason of match"), *rows]}}
    text = "; ".join("%s: %d" % pair for pair in sorted(counts.items()))
    if not has_card(machine):
        return "no card", text, facts
    wrong = [row for row in rows if row[1] in ("yes", "no", "error") and row[1] != row[2]]
    return ("differs" if wrong else "same"), text, facts


STEPS = (
    Step("inventory", "inventory against `nvidia-smi -q -x`", 30, inventory),
    Step("modes", "a CUDA program in each driver mode against the machine", 90, modes),
    Step("smi", "`nvidia-smi -L` in a container", 30, smi),
    Step("tenants", "two tenants with `--gpu-cores`", 60, tenants),
    Step("memory", "`--gpu-memory`", 60, memory),
    Step("live", "a GPU removed from a running container, and added", 60, live),
    Step("verdicts", "verdicts of `match` against the card", 150, verdicts),
    Step("pooling", "pooling of `bench seeds`", 90, pooling),
    Step("networks", "networks of `bench seeds`", 200, networks),
)
