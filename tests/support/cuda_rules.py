# SPDX-License-Identifier: Apache-2.0
"""Which GPU code runs where, by NVIDIA's public documents. It is the judge of Berth's verdicts, so it has nothing of
Berth: a change of it is founded on these documents, not on src/match.

Sources:
  [guide]   CUDA C++ Programming Guide, "Binary Compatibility", "PTX Compatibility", "Compute Capabilities" with the
            table of feature set families
  [compat]  CUDA Compatibility, "Minor Version Compatibility" (docs.nvidia.com/deploy/cuda-compatibility)
  [notes]   CUDA Toolkit Release Notes, "CUDA Toolkit and Corresponding Driver Versions", and "CUDA Driver: deprecated
            architectures" of 11.0 to 13.0
  [ptx]     Parallel Thread Execution ISA, "Release Notes", table "PTX Release History"; ".target"
  [nvcc]    CUDA Compiler Driver NVCC, "GPU Feature List", "Link-time optimization", "Separate compilation"

    code = [Code("cubin", "sm_80"), Code("ptx", "sm_80", "8.4")]
    runs(code, "12.4", GPUS["NVIDIA A10"], "535.261.03")       # Answer(True, "cubin sm_80 …")
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True, order=True)
class Code:
    """One piece of GPU code. `kind`: cubin, ptx, or lto, which is an input of a linker only."""
    kind: str
    target: str    # "sm_90a"
    isa: str = ""  # of PTX: "8.4"


@dataclasses.dataclass(frozen=True)
class Gpu:
    capability: tuple     # (8, 6)
    tegra: bool = False
    last_branch: int = 0  # the last branch of drivers that drives it [notes]; 0: the newest does


@dataclasses.dataclass(frozen=True)
class Answer:
    runs: bool
    why: str


KEPLER, UNTIL_VOLTA = 470, 580
GPUS = {
    "Tesla K40m": Gpu((3, 5), last_branch=KEPLER),
    "Tesla K80": Gpu((3, 7), last_branch=KEPLER),
    "NVIDIA GeForce GTX 750 Ti": Gpu((5, 0), last_branch=UNTIL_VOLTA),
    "Tesla M60": Gpu((5, 2), last_branch=UNTIL_VOLTA),
    "Tesla P100-PCIE-16GB": Gpu((6, 0), last_branch=UNTIL_VOLTA),
    "NVIDIA GeForce GTX 1080 Ti": Gpu((6, 1), last_branch=UNTIL_VOLTA),
    "Tesla V100-SXM2-32GB": Gpu((7, 0), last_branch=UNTIL_VOLTA),
    "Tesla T4": Gpu((7, 5)),
    "NVIDIA A100-SXM4-80GB": Gpu((8, 0)),
    "NVIDIA A10": Gpu((8, 6)),
    "NVIDIA GeForce RTX 3090": Gpu((8, 6)),
    "Orin": Gpu((8, 7), tegra=True),
    "NVIDIA L4": Gpu((8, 9)),
    "NVIDIA GeForce RTX 4090": Gpu((8, 9)),
    "NVIDIA H100 80GB HBM3": Gpu((9, 0)),
    "NVIDIA H200": Gpu((9, 0)),
    "NVIDIA B200": Gpu((10, 0)),
    "NVIDIA B300": Gpu((10, 3)),
    "NVIDIA GeForce RTX 5090": Gpu((12, 0)),
    "NVIDIA GB10": Gpu((12, 1)),
}

# [notes] The driver that comes with a toolkit, Linux x86_64. 'CUDA x.y GA', the first of each.
DRIVER_OF_CUDA = {
    "6.5": "340.29", "7.0": "346.46", "7.5": "352.31", "8.0": "367.48", "9.0": "384.81", "9.1": "390.46",
    "9.2": "396.26", "10.0": "410.48", "10.1": "418.39", "10.2": "440.33", "11.0": "450.51.05", "11.1": "455.23",
    "11.2": "460.27.03", "11.3": "465.19.01", "11.4": "470.42.01", "11.5": "495.29.05", "11.6": "510.39.01",
    "11.7": "515.43.04", "11.8": "520.61.05", "12.0": "525.60.13", "12.1": "530.30.02", "12.2": "535.54.03",
    "12.3": "545.23.06", "12.4": "550.54.14", "12.5": "555.42.02", "12.6": "560.28.03", "12.8": "570.26",
    "12.9": "575.51.03", "13.0": "580.65.06",
}
# [compat] Minor version compatibility: the lowest driver of a major version. 11: with 450.80.02, not with the
# driver of 11.0 itself (footnote 1).
LOWEST_OF_MAJOR = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
# [ptx] The toolkit of a PTX version; its driver is the one that comes with it. 8.5 is also 12.6's; 8.6 is 12.7's,
# which was not released alone: its branch is r565.
CUDA_OF_PTX = {
    "4.1": "6.5", "4.2": "7.0", "4.3": "7.5", "5.0": "8.0", "6.0": "9.0", "6.1": "9.1", "6.2": "9.2", "6.3": "10.0",
    "6.4": "10.1", "6.5": "10.2", "7.0": "11.0", "7.1": "11.1", "7.2": "11.2", "7.3": "11.3", "7.4": "11.4",
    "7.5": "11.5", "7.6": "11.6", "7.7": "11.7", "7.8": "11.8", "8.0": "12.0", "8.1": "12.1", "8.2": "12.2",
    "8.3": "12.3", "8.4": "12.4", "8.5": "12.5", "8.6": "12.8", "8.7": "12.8", "8.8": "12.9", "9.0": "13.0",
}
# [ptx] The first toolkit that has a target, so the first driver that drives such a GPU.
FIRST_CUDA = {
    (3, 5): "6.5", (3, 7): "6.5", (5, 0): "6.5", (5, 2): "6.5", (6, 0): "8.0", (6, 1): "8.0", (7, 0): "9.0",
    (7, 5): "10.0", (8, 0): "11.0", (8, 6): "11.1", (8, 7): "11.4", (8, 9): "11.8", (9, 0): "11.8", (10, 0): "12.8",
    (10, 3): "12.9", (12, 0): "12.8", (12, 1): "12.9",
}
# [guide] GPUs that run the code of a family (suffix f), by the target's capability.
FAMILIES = {(10, 0): {(10, 0), (10, 3)}, (10, 3): {(10, 3)}, (11, 0): {(11, 0)}, (12, 0): {(12, 0), (12, 1)},
            (12, 1): {(12, 1)}}
TEGRA = {(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)}


def version(text):
    """Comparable: "550.54.14" → (550, 54, 14)."""
    return tuple(int(part) for part in text.split("."))


def cuda_of_driver(driver):
    """The newest CUDA version that a driver implements."""
    found = [cuda for cuda, first in DRIVER_OF_CUDA.items() if version(first) <= version(driver)]
    return max(found, key=version, default="0.0")


def exists(gpu, driver):
    """Whether this driver drives this GPU at all."""
    is_new_enough = version(cuda_of_driver(driver)) >= version(FIRST_CUDA[gpu.capability])
    return is_new_enough and not (gpu.last_branch and version(driver)[0] > gpu.last_branch)


def _parse(target):
    number, suffix = re.fullmatch(r"(?:sm|compute|lto)_(\d+)([af]?)", target).groups()
    return (int(number[:-1]), int(number[-1])), suffix


def is_tegra(target):
    return _parse(target)[0] in TEGRA


def is_in_order(target, gpu):
    """Whether the numbers alone would let a cubin run."""
    capability, suffix = _parse(target)
    return not suffix and gpu.capability[0] == capability[0] and gpu.capability >= capability


def cubin_fits(target, gpu):
    """[guide] 'A cubin object generated for compute capability X.y will only execute on devices of compute capability
    X.z where z≥y', not between desktop and Tegra. Code of sm_XXa runs on that very capability, of sm_XXf in its
    family."""
    capability, suffix = _parse(target)
    if suffix == "a":
        return gpu.capability == capability
    if suffix == "f":
        return gpu.capability in FAMILIES.get(capability, {capability})
    if is_tegra(target) != gpu.tegra:
        return False
    if gpu.tegra:  # 'It is not supported for Tegra'
        return gpu.capability == capability
    return is_in_order(target, gpu)


def ptx_fits(target, gpu):
    """[guide] PTX of a capability compiles for any equal or higher one; of XXa for that one alone, of XXf for its
    family."""
    capability, suffix = _parse(target)
    if suffix:
        return cubin_fits(target, gpu)
    return gpu.capability >= capability


def driver_takes_runtime(cuda, driver):
    """[compat] Whether a program of this toolkit starts with this driver."""
    if version(cuda_of_driver(driver)) >= version(cuda):
        return True
    lowest = LOWEST_OF_MAJOR.get(version(cuda)[0])
    return bool(lowest) and version(driver) >= version(lowest)


def driver_takes_ptx(isa, driver):
    """[compat] 'PTX … will not work on older drivers': minor version compatibility does not include it."""
    return version(cuda_of_driver(driver)) >= version(CUDA_OF_PTX[isa])


def lowest_driver(cuda):
    """The lowest driver for programs of a toolkit, without PTX."""
    return LOWEST_OF_MAJOR.get(version(cuda)[0], DRIVER_OF_CUDA[cuda])


def lowest_driver_of_ptx(isa):
    return DRIVER_OF_CUDA[CUDA_OF_PTX[isa]]


def runs(codes, cuda, gpu, driver):
    """Whether a program of toolkit `cuda` with these pieces of code runs. One piece that fits is enough: the driver
    takes the best one."""
    if not driver_takes_runtime(cuda, driver):
        return Answer(False, f"CUDA {cuda} needs driver {lowest_driver(cuda)}")
    for code in sorted(codes):
        if code.kind == "cubin" and cubin_fits(code.target, gpu):
            return Answer(True, f"cubin {code.target}")
    fitting = [code for code in sorted(codes) if code.kind == "ptx" and ptx_fits(code.target, gpu)]
    for code in fitting:
        if driver_takes_ptx(code.isa, driver):
            return Answer(True, f"PTX {code.isa} of {code.target}")
    if fitting:
        return Answer(False, f"PTX {fitting[0].isa} needs driver {lowest_driver_of_ptx(fitting[0].isa)}")
    return Answer(False, f"no code for {gpu.capability[0]}.{gpu.capability[1]}")
