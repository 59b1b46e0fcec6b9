# SPDX-License-Identifier: Apache-2.0
"""Programs that really cannot run on a machine or in an image."""

import functools
import pathlib
import subprocess
import tempfile

from support import images, loader_images

START = 'void _start(void) { __asm__ volatile("%s"); for (;;) __asm__ volatile("hlt"); }'
# By flag of /proc/cpuinfo: an instruction that needs it.
INSTRUCTIONS = {"avx512f": "vpxord %zmm0, %zmm0, %zmm0",
                "amx_tile": ".byte 0xc4, 0xe2, 0x78, 0x49, 0xc0"}  # tilerelease
# The header of a program for Arm.
FOREIGN = b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\0\xb7\0" + bytes(44)


@functools.cache
def compiled(source, *flags):
    with tempfile.TemporaryDirectory() as directory:
        program = pathlib.Path(directory, "program")
        subprocess.run(["gcc", "-x", "c", "-", "-o", program, *flags], input=source, text=True,
                       check=True)
        return program.read_bytes()


def instruction(text):
    """A static program with one instruction."""
    return compiled(START % text, "-nostdlib", "-static", "-ffreestanding")


def missing_instruction():
    """An instruction that this processor lacks, or None."""
    text = pathlib.Path("/proc/cpuinfo").read_text().partition("\n\n")[0]
    for flag, code in INSTRUCTIONS.items():
        if flag not in text.split():
            return code
    return None


def newer_glibc():
    """A dynamic program that needs GLIBC_2.94."""
    program = compiled("#include <stdio.h>\nint main(void) { puts(\"runs\"); return 0; }\n", "-s")
    assert program.count(b"GLIBC_2.34\0") == 1
    return program.replace(b"GLIBC_2.34\0", b"GLIBC_2.94\0")


@functools.cache
def missing_library():
    """A dynamic program that needs libnobody.so.7."""
    with tempfile.TemporaryDirectory() as directory:
        library = pathlib.Path(directory, "libnobody.so")
        subprocess.run(["gcc", "-x", "c", "-", "-shared", "-Wl,-soname,libnobody.so.7", "-o", library],
                       input="int nobody(void) { return 0; }\n", text=True, check=True)
        program = pathlib.Path(directory, "program")
        subprocess.run(["gcc", "-x", "c", "-", "-o", program, "-x", "none", library],
                       input="int nobody(void);\nint main(void) { return nobody(); }\n", text=True,
                       check=True)
        return program.read_bytes()


def marked(level):
    """A static program that is marked for a level of x86-64, and dies of ud2."""
    return compiled(START % "ud2", "-nostdlib", "-static", "-ffreestanding", f"-Wl,-z,x86-64-v{level}")


def image():
    """busybox, glibc's loader and libraries, and these programs in /opt."""
    entries = [images.directory("opt"), images.directory("lib64"), images.directory("lib"),
               images.directory("lib/x86_64-linux-gnu")]
    for path, real in loader_images.probe()[1]:
        entries.append(images.file(path.lstrip("/"), pathlib.Path(real).read_bytes(), mode=0o755))
    programs = {"ud2": instruction("ud2"), "newer-glibc": newer_glibc(),
                "missing-library": missing_library(),
                "foreign": FOREIGN}
    missing = missing_instruction()
    if missing:
        programs["instruction"] = instruction(missing)
    entries += [images.file(f"opt/{name}", data, mode=0o755) for name, data in programs.items()]
    return images.build([images.busybox_layer(), images.layer(entries)])
