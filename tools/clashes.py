#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds names local to a file that another file of the same library also defines, and function names that
clash with std's.

The files of a library are compiled in batches (cmake/Berth.cmake, berth_unite), across its rooms. In a batch,
a file sees the names in the unnamed namespaces of the files before it. Each new file changes the batches, so
such a name must be unique in the library. Functions may share a name if their parameters differ by more than
the kind of string. Aliases may share a name if they are the same.

A call of our function with a std::string also considers std's functions that accept any argument
(argument-dependent lookup), so which one is called depends on the included headers: from g++ 14 on 'quoted'
was <iomanip>'s.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# ctags skips a constant with braces in its value: size_t{16} << 20.
CONSTANT = re.compile(r"^constexpr [^=;({]*?\b(k[A-Z]\w*)(?:\[\w*\])? ?[={]", re.MULTILINE)
# Templates of std that accept any arguments, and their number of arguments.
OF_STD = {"quoted": (1, 3), "empty": (1, 1), "size": (1, 1), "ssize": (1, 1), "data": (1, 1), "begin": (1, 1),
          "end": (1, 1), "rbegin": (1, 1), "rend": (1, 1), "next": (1, 2), "prev": (1, 2), "advance": (2, 2),
          "distance": (2, 2), "swap": (2, 2), "exchange": (2, 2), "move": (1, 1), "forward": (1, 1), "ref": (1, 1),
          "cref": (1, 1), "bind": (1, 99), "bind_front": (1, 99), "invoke": (1, 99), "apply": (2, 2),
          "visit": (1, 99), "tie": (0, 99), "as_const": (1, 1), "addressof": (1, 1), "to_array": (1, 1),
          "make_pair": (2, 2), "make_tuple": (0, 99), "make_optional": (1, 99), "make_any": (1, 99),
          "erase": (2, 2), "erase_if": (2, 2), "min": (1, 3), "max": (1, 3), "clamp": (3, 4), "find": (3, 3),
          "count": (3, 3), "equal": (3, 6), "copy": (3, 3), "fill": (3, 3), "get": (1, 1), "hex": (1, 1),
          "uppercase": (1, 1), "left": (1, 1), "right": (1, 1), "internal": (1, 1)}
KINDS = {"function", "variable", "struct", "class", "enum", "union", "typedef"}


def parameters(signature):
    """'(const std::string& path, int count = 0)' → [('text',), ('text', 'int')]: the types of each possible
    call; all kinds of string count as one."""
    inner = signature.partition("(")[2].rpartition(")")[0]
    types, depth, start = [], 0, 0
    for at, letter in enumerate(inner + ","):
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and not depth:
            types.append(inner[start:at])
            start = at + 1
    calls, plain = [], []
    for text in types:
        if "=" in text:
            calls.append(tuple(plain))
        text = re.sub(r"=.*|\bconst\b|\bstruct\b|&|(?<=[\w>&*]) +\w+ *$", " ", text.strip())
        text = re.sub(r"(std::)?string(_view)?\b|char *\*", "text", re.sub(r"\s+", " ", text).strip())
        plain.append(text)
    return [*calls, tuple(plain)]


def own_names(sources):
    """name → {file: {(kind, what distinguishes it from others of this name)}} for the unnamed namespaces of
    the sources."""
    if len(sources) < 2:
        return {}
    ctags = subprocess.run(
        ["ctags", "--options=NONE", "--output-format=json", "--languages=C++", "--kinds-C++=+px", "--fields=+SKsZ",
         "-f", "-", *sources], check=True, capture_output=True, text=True)
    names = collections.defaultdict(lambda: collections.defaultdict(set))
    for line in ctags.stdout.splitlines():
        tag = json.loads(line)
        scope = tag.get("scope", "").split("::")[-1]
        if tag["kind"] not in KINDS or not scope.startswith("__anon") or tag.get("scopeKind") != "namespace":
            continue
        marks = [""]
        if tag["kind"] == "function":
            marks = parameters(tag.get("signature", "()"))
        elif tag["kind"] == "typedef":
            marks = [re.sub(r"\s+", " ", tag["pattern"])]
        names[tag["name"]][tag["path"]].update((tag["kind"], mark) for mark in marks)
    for source in sources:
        for match in CONSTANT.finditer(source.read_text(encoding="utf-8")):
            names[match[1]][str(source)].add(("variable", ""))
    return names


def clashes(names):
    for name, files in sorted(names.items()):
        uses = [use for of_file in files.values() for use in of_file]
        kinds = {kind for kind, _ in uses}
        if len(files) < 2:
            continue
        if kinds == {"function"} and len(set(uses)) == len(uses):
            continue
        if kinds == {"typedef"} and len(set(uses)) == 1:
            continue
        yield name, sorted(files)


def taken_by_std(sources):
    """(file, name) of functions for which a call may find one of std that accepts the same arguments."""
    ctags = subprocess.run(
        ["ctags", "--options=NONE", "--output-format=json", "--languages=C++", "--kinds-C++=fp", "--fields=+SKs",
         "-f", "-", *sources], check=True, capture_output=True, text=True)
    for line in ctags.stdout.splitlines():
        tag = json.loads(line)
        least, most = OF_STD.get(tag["name"], (1, 0))
        of_class = tag.get("scopeKind") in ("class", "struct", "union")
        if of_class or "std::" not in tag.get("signature", ""):
            continue
        if any(least <= len(call) <= most for call in parameters(tag["signature"])):
            yield pathlib.Path(tag["path"]).relative_to(ROOT).as_posix(), tag["name"]


def batched():
    """The sources that are compiled in batches: for each library, with its rooms, and for its unit test."""
    libraries = collections.defaultdict(list)
    for top in (ROOT / "src", ROOT / "tests/unit"):
        for path in sorted(top.rglob("*.cpp")):
            folder = path.relative_to(top).parent
            owners = (one for one in (folder, *folder.parents) if (ROOT / "src" / one / "CMakeLists.txt").exists())
            library = next(owners, folder)
            libraries[top / library].append(path)
    libraries.pop(ROOT / "src/bin", None)
    return list(libraries.values())


def main(folders):
    found = 0
    for together in [sorted(folder.glob("*.cpp")) for folder in folders] or batched():
        for name, files in clashes(own_names(together)):
            found += 1
            places = ", ".join(pathlib.Path(path).relative_to(ROOT).as_posix() for path in files)
            print(f"clashes: '{name}' is a name of its own in {places}; give each another")
    sources = [path for top in ("src", "tests", "bench") for path in sorted((ROOT / top).rglob("*.[ch]pp"))]
    for place, name in [] if folders else sorted(set(taken_by_std(sources))):
        found += 1
        print(f"clashes: '{name}' in {place} is a name of std's as well, which takes the same; give it another")
    if not found:
        print("clashes: no two files of a library have a name of their own in common")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main([pathlib.Path(name).resolve() for name in sys.argv[1:]]))
