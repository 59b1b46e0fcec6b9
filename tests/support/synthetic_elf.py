# SPDX-License-Identifier: Apache-2.0
"""Writes small ELF files and loader caches, byte by byte, for test trees and images."""
import struct

MACHINES = {"x86_64": 62, "aarch64": 183}
MACHINES_32 = {"x86_64": 3, "aarch64": 40}


# ---- ELF ----------------------------------------------------------------------------------------

def note(owner, kind, content):
    owner = owner.encode() + b"\0"
    pad = lambda data: data + b"\0" * (-len(data) % 4)
    return struct.pack("<III", len(owner), len(content), kind) + pad(owner) + pad(content)


def elf_hash(name):
    """The System V hash of a name, as in version tables."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        value = (value ^ (value & 0xF0000000) >> 24) & 0x0FFFFFFF
    return value


def elf(machine, bits, soname, needed=(), note_section=None, note_bytes=b"", glibc=None):
    """A shared object that ld.so and musl's loader accept: one segment, a dynamic section, a hash table with
    only the null symbol; and section headers for readers that need them. `glibc`: the version that it needs
    of libc.so.6, which is then in `needed`."""
    wide = bits == 64
    header_size, phdr_size, shdr_size = (64, 56, 64) if wide else (52, 32, 40)
    word = "Q" if wide else "I"
    strings = b"\0" + soname.encode() + b"\0"
    needed_at = []
    for name in needed:
        needed_at.append(len(strings))
        strings += name.encode() + b"\0"
    versions = b""
    if glibc:
        name = f"GLIBC_{glibc}"
        file_at = needed_at[list(needed).index("libc.so.6")]
        versions = struct.pack("<HHIII", 1, 1, file_at, 16, 0)
        versions += struct.pack("<IHHII", elf_hash(name), 0, 2, len(strings), 0)
        versions += struct.pack("<H", 0)  # for the null symbol
        strings += name.encode() + b"\0"
    segments = 4 if note_bytes else 3
    at = header_size + segments * phdr_size
    align = lambda value: (value + 7) & ~7
    dynsym_at = align(at)
    dynsym = b"\0" * (24 if wide else 16)
    hash_at = align(dynsym_at + len(dynsym))
    hash_table = struct.pack("<IIII", 1, 1, 0, 0)
    strings_at = align(hash_at + len(hash_table))
    note_at = align(strings_at + len(strings))
    versions_at = align(note_at + len(note_bytes))
    dynamic_at = align(versions_at + len(versions))
    version_tags = [(0x6FFFFFFE, versions_at), (0x6FFFFFFF, 1),
                    (0x6FFFFFF0, versions_at + 32)] if versions else []
    tags = [(14, 1)] + [(1, offset) for offset in needed_at] + version_tags + [
        (4, hash_at), (5, strings_at), (6, dynsym_at), (10, len(strings)), (11, len(dynsym)), (0, 0)]
    dynamic = b"".join(struct.pack("<" + word * 2, tag, value) for tag, value in tags)
    loaded_end = dynamic_at + len(dynamic)
    names = b"\0.dynsym\0.hash\0.dynstr\0.dynamic\0.shstrtab\0"
    note_name = len(names)
    if note_section:
        names += note_section.encode() + b"\0"
    names_at = loaded_end
    sections_at = align(names_at + len(names))

    def segment(kind, flags, offset, size, alignment):
        if wide:
            return struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, alignment)
        return struct.pack("<IIIIIIII", kind, offset, offset, offset, size, size, flags, alignment)

    def section(name, kind, flags, offset, size, link=0, info=0, entry=0, alignment=8):
        form = "<IIQQQQIIQQ" if wide else "<IIIIIIIIII"
        return struct.pack(form, name, kind, flags, offset if flags else 0, offset, size, link, info,
                           alignment, entry)

    headers = segment(1, 6, 0, loaded_end, 0x1000)                       # PT_LOAD, read and write
    headers += segment(2, 6, dynamic_at, len(dynamic), 8)                # PT_DYNAMIC
    headers += segment(0x6474E551, 6, 0, 0, 16)                          # PT_GNU_STACK, no execution
    if note_bytes:
        headers += segment(4, 4, note_at, len(note_bytes), 4)            # PT_NOTE
    at_name = lambda name: names.index(name)
    table = section(0, 0, 0, 0, 0, alignment=0)
    table += section(at_name(b".dynsym"), 11, 2, dynsym_at, len(dynsym), 3, 1, len(dynsym))
    table += section(at_name(b".hash"), 5, 2, hash_at, len(hash_table), 1, entry=4)
    table += section(at_name(b".dynstr"), 3, 2, strings_at, len(strings), alignment=1)
    table += section(at_name(b".dynamic"), 6, 3, dynamic_at, len(dynamic), 3, entry=16 if wide else 8)
    table += section(at_name(b".shstrtab"), 3, 0, names_at, len(names), alignment=1)
    count = 6
    if note_section:
        table += section(note_name, 7, 2, note_at, len(note_bytes), alignment=4)
        count += 1

    ident = b"\x7fELF" + bytes([2 if wide else 1, 1, 1, 0]) + b"\0" * 8
    head = ident + struct.pack("<HHI" + word * 3 + "IHHHHHH", 3, machine, 1, 0, header_size,
                               sections_at, 0, header_size, phdr_size, segments, shdr_size, count, 5)
    image = bytearray(sections_at + len(table))
    for offset, part in ((0, head), (header_size, headers), (dynsym_at, dynsym), (hash_at, hash_table),
                         (strings_at, strings), (note_at, note_bytes),
                         (versions_at, versions), (dynamic_at, dynamic), (names_at, names), (sections_at, table)):
        image[offset:offset + len(part)] = part
    return bytes(image)


# ---- loader cache -------------------------------------------------------------------------------

def cache_key(name):
    """Sorts as glibc's _dl_cache_libcmp does: runs of digits as numbers, after other characters."""
    parts, i = [], 0
    while i < len(name):
        if name[i].isdigit():
            j = i
            while j < len(name) and name[j].isdigit():
                j += 1
            parts.append((2, int(name[i:j])))
            i = j
        else:
            parts.append((1, ord(name[i])))
            i += 1
    return parts + [(0, 0)]


def loader_cache(entries, old_header):
    """entries: (soname, path, flags). Returns the bytes of an ld.so.cache."""
    entries = sorted(entries, key=lambda e: (cache_key(e[0]), e[2]), reverse=True)
    size = 48 + 24 * len(entries)
    strings, table = b"", b""
    for soname, path, flags in entries:
        key = size + len(strings)
        strings += soname.encode() + b"\0"
        value = size + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack("<iIIIQ", flags, key, value, 0, 0)
    new = b"glibc-ld.so.cache1.1" + struct.pack("<II", len(entries), len(strings))
    new += struct.pack("<B3xI12x", 2, 0) + table + strings
    if not old_header:
        return new
    old = b"ld.so-1.7.0\0" + struct.pack("<I", 0)
    return old + b"\0" * (-len(old) % 8) + new
