# SPDX-License-Identifier: Apache-2.0
"""Which code for AMD's GPUs runs where, by LLVM's public documents. It is the judge of Berth's verdicts, so it has
nothing of Berth: a change of it is founded on these documents, not on src/match.

Sources:
  [usage]    LLVM, User Guide for AMDGPU Backend: tables "AMDGPU Processors" and "AMDGPU Generic Processors"; "Generic
             Processor Versioning"; "Target Features"; "Target ID"; "Code Object V2 to V3 Target ID"
  [bundler]  Clang, Clang Offload Bundler, "Target ID": which code object runs on which target

    runs(["gfx90a:xnack+", "gfx1030"], "gfx90a:sramecc+:xnack-")       # Answer(False, …)
"""

import dataclasses
import re

# [usage] The target features that a target ID of a processor may name.
XNACK, SRAMECC = "xnack", "sramecc"
BOTH = (SRAMECC, XNACK)
PROCESSORS = {
    "gfx700": (), "gfx701": (), "gfx702": (), "gfx703": (), "gfx704": (), "gfx705": (),
    "gfx801": (XNACK,), "gfx802": (), "gfx803": (), "gfx805": (), "gfx810": (XNACK,),
    "gfx900": (XNACK,), "gfx902": (XNACK,), "gfx904": (XNACK,), "gfx906": BOTH, "gfx908": BOTH, "gfx909": (XNACK,),
    "gfx90a": BOTH, "gfx90c": (XNACK,), "gfx942": BOTH, "gfx950": BOTH,
    "gfx1010": (XNACK,), "gfx1011": (XNACK,), "gfx1012": (XNACK,), "gfx1013": (XNACK,),
    **{f"gfx103{last}": () for last in range(7)}, **{f"gfx110{last}": () for last in range(4)},
    **{f"gfx115{last}": () for last in range(4)}, "gfx1200": (), "gfx1201": (),
}
# [usage] The processors that run the code of a generic one, and the features of that. Of all of them the code objects
# are of version 1, with which each processor was added.
GENERIC = {
    "gfx9-generic": (("gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"), (XNACK,)),
    "gfx9-4-generic": (("gfx942", "gfx950"), BOTH),
    "gfx10-1-generic": (("gfx1010", "gfx1011", "gfx1012", "gfx1013"), (XNACK,)),
    "gfx10-3-generic": (tuple(f"gfx103{last}" for last in range(7)), ()),
    "gfx11-generic": ((*(f"gfx110{last}" for last in range(4)), *(f"gfx115{last}" for last in range(4))), ()),
    "gfx12-generic": (("gfx1200", "gfx1201"), ()),
}
# GPUs, with the settings of those features that a process on them has.
GPUS = {
    "FirePro W9100": "gfx701", "Radeon RX 480": "gfx803", "Radeon Instinct MI25": "gfx900:xnack-",
    "Ryzen 5 2400G": "gfx902:xnack+", "Radeon Instinct MI50": "gfx906:sramecc+:xnack-",
    "Radeon VII": "gfx906:sramecc-:xnack-", "AMD Instinct MI100": "gfx908:sramecc+:xnack-",
    "AMD Instinct MI250X": "gfx90a:sramecc+:xnack-", "AMD Instinct MI250X, XNACK": "gfx90a:sramecc+:xnack+",
    "AMD Instinct MI210, no ECC": "gfx90a:sramecc-:xnack-", "Ryzen 7 4700G": "gfx90c:xnack-",
    "AMD Instinct MI300X": "gfx942:sramecc+:xnack-", "AMD Instinct MI300A": "gfx942:sramecc+:xnack+",
    "AMD Instinct MI350X": "gfx950:sramecc+:xnack-", "Radeon RX 5700 XT": "gfx1010:xnack-",
    "Radeon RX 5500 XT": "gfx1012:xnack-", "Radeon RX 6800 XT": "gfx1030", "Radeon RX 6700 XT": "gfx1031",
    "Steam Deck": "gfx1033", "Radeon 680M": "gfx1035", "Radeon RX 7900 XTX": "gfx1100",
    "Radeon RX 7800 XT": "gfx1101", "Radeon RX 7600": "gfx1102", "Radeon 780M": "gfx1103", "Radeon 890M": "gfx1150",
    "Radeon 8060S": "gfx1151", "Radeon RX 9060 XT": "gfx1200", "Radeon RX 9070 XT": "gfx1201",
}


@dataclasses.dataclass(frozen=True)
class Answer:
    runs: bool
    why: str


def parse(target):
    """(processor, {feature: "+" or "-"}) of a target ID; ValueError for what is none."""
    processor, *words = target.split(":")
    features = {word[:-1]: word[-1] for word in words}
    known = PROCESSORS.get(processor)
    if known is None:
        known = GENERIC[processor][1] if processor in GENERIC else None
    if known is None or not set(features) <= set(known) or not set(features.values()) <= {"+", "-"}:
        raise ValueError(f"'{target}' is no target ID")
    return processor, features


def canonical(target):
    """[usage] Of a target ID: features in alphabetic order. V2 and V3 name those that are on: 'gfx906+xnack'."""
    if old := re.fullmatch(r"(gfx[0-9a-f]+)((?:\+[a-z]+)+)", target):
        target = ":".join([old[1], *(f"{one}+" for one in old[2][1:].split("+"))])
    processor, *words = target.split(":")
    return ":".join([processor, *sorted(words)])


def _one(target, gpu):
    processor, wanted = parse(target)
    model, settings = parse(gpu)
    if processor in GENERIC:
        if model not in GENERIC[processor][0]:
            return Answer(False, f"{processor} does not support {model} [usage]")
    elif processor != model:
        return Answer(False, f"{processor} is not {model} [bundler]")
    for feature, setting in wanted.items():
        if settings[feature] != setting:
            return Answer(False, f"{feature}{setting} needs a process with that setting [usage]")
    return Answer(True, f"{target} runs on {gpu} [usage]")


def runs(targets, gpu):
    """Whether a program with code for these targets runs on `gpu`: one of them is enough [bundler]."""
    answers = [_one(target, gpu) for target in targets]
    return next((one for one in answers if one.runs), answers[0] if answers else Answer(False, "no code"))
