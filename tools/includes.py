#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Finds headers of the standard library that are included only by chance.

usage: includes.py [--fix]

A file must include the standard headers that it uses, directly or through our own headers: which standard
headers another library header includes differs between releases. Also reports includes of private headers of
a library. With --fix adds the missing lines; clang-format sorts them.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.M)
NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"', re.S)
PRIVATE = re.compile(r"(^|/)(bits|impl|detail|details|internal|private)/")

# Header: its names in std::. For several headers in one key any will do; --fix adds the first.
STANDARD = {
    "algorithm": "adjacent_find all_of any_of binary_search clamp copy copy_if copy_n count count_if equal "
                 "equal_range fill fill_n find find_if find_if_not for_each generate includes is_sorted "
                 "lexicographical_compare lower_bound max max_element merge min min_element minmax mismatch "
                 "none_of nth_element partial_sort prev_permutation remove_if replace replace_if reverse rotate "
                 "search set_difference set_intersection set_union sort stable_partition stable_sort transform "
                 "unique upper_bound",
    "array": "array",
    "atomic": "atomic atomic_flag memory_order_relaxed memory_order_acquire memory_order_release",
    "barrier": "barrier",
    "bit": "endian countr_zero countl_zero bit_width bit_floor bit_ceil popcount has_single_bit rotl rotr bit_cast",
    "bitset": "bitset",
    "cctype": "isalnum isalpha isdigit islower isprint isspace isupper isxdigit tolower toupper",
    "charconv": "from_chars to_chars",
    "chrono": "chrono chrono_literals",
    "cmath": "ceil cos fabs floor isfinite isnan log log2 lround pow round sin sqrt trunc",
    "compare": "partial_ordering strong_ordering weak_ordering",
    "concepts": "convertible_to floating_point integral invocable same_as signed_integral unsigned_integral",
    "condition_variable": "condition_variable",
    "cstddef": "byte max_align_t nullptr_t ptrdiff_t",
    "cstdio": "FILE fclose fflush fopen fprintf fputc fputs fread fwrite perror printf putchar puts snprintf vsnprintf",
    "cstdlib": "_Exit abort atexit exit free getenv malloc rand realloc strtod strtol strtoul strtoull system",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strerror strlen strncmp strncpy strrchr strstr",
    "ctime": "gmtime localtime mktime strftime time time_t timespec tm",
    "deque": "deque",
    "exception stdexcept": "exception exception_ptr current_exception rethrow_exception terminate",
    "filesystem": "filesystem",
    "fstream": "fstream ifstream ofstream",
    "functional": "bind_front function greater hash invoke less mem_fn not_fn reference_wrapper",
    "future": "async future future_status launch packaged_task promise",
    "initializer_list": "initializer_list",
    "ios fstream sstream iostream istream ostream": "hex dec ios streamoff streamsize",
    "iostream": "cerr cin clog cout",
    "iterator": "back_inserter distance inserter istreambuf_iterator make_move_iterator ostream_iterator",
    "iterator vector string array map set": "next prev size begin end",
    "limits": "numeric_limits",
    "list": "list",
    "map": "map multimap",
    "memory": "addressof allocator enable_shared_from_this make_shared make_unique make_unique_for_overwrite "
              "shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "new": "align_val_t bad_alloc nothrow",
    "numeric": "accumulate gcd iota lcm reduce",
    "optional": "make_optional nullopt optional",
    "ostream iostream sstream fstream": "endl flush ostream",
    "queue": "priority_queue queue",
    "random": "mt19937 mt19937_64 random_device uniform_int_distribution uniform_real_distribution",
    "ranges algorithm": "ranges",
    "regex": "regex regex_match regex_replace regex_search smatch",
    "semaphore": "binary_semaphore counting_semaphore",
    "set": "multiset set",
    "shared_mutex": "shared_lock shared_mutex",
    "source_location": "source_location",
    "span": "as_bytes span",
    "sstream": "istringstream ostringstream stringstream",
    "stdexcept": "domain_error invalid_argument logic_error out_of_range runtime_error",
    "stop_token thread": "stop_source stop_token",
    "string": "getline stod stoi stol stoul stoull string string_literals to_string u16string",
    "string_view string": "string_view string_view_literals",
    "system_error charconv": "errc",
    "system_error": "error_code generic_category system_category system_error",
    "thread": "jthread this_thread thread",
    "tuple": "apply make_tuple tie tuple tuple_size_v",
    "type_traits": "conditional_t decay_t enable_if_t false_type has_unique_object_representations_v is_arithmetic_v "
                   "is_convertible_v is_enum_v is_integral_v is_invocable_v is_same_v is_signed_v make_unsigned_t "
                   "remove_cvref_t remove_reference_t true_type type_identity underlying_type_t",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    # Every container header provides pair, move and swap, in all implementations.
    "utility algorithm array deque functional list map memory optional set span string string_view thread tuple "
    "unordered_map unordered_set variant vector": "forward move pair swap",
    "utility": "as_const cmp_less declval exchange in_place in_place_index in_range index_sequence integer_sequence "
               "make_pair",
    "variant": "get_if holds_alternative monostate variant variant_size_v visit",
    "vector": "vector",
}
HEADERS = {name: headers.split() for headers, names in STANDARD.items() for name in names.split()}
INTEGER = re.compile(r"(?<!\w)(?:u?int(?:8|16|32|64|max|ptr)_t|U?INT(?:8|16|32|64)_(?:MAX|MIN))\b")
OTHERS = {
    "cstdint stdint.h": INTEGER,
    "cerrno errno.h": re.compile(r"(?<![\w.>])errno\b"),
    "fmt/ranges.h": re.compile(r"\bfmt::join\b"),
}
SAME = {"stdint.h": "cstdint", "string.h": "cstring", "stdio.h": "cstdio", "stdlib.h": "cstdlib", "time.h": "ctime",
        "errno.h": "cerrno", "stddef.h": "cstddef", "ctype.h": "cctype", "math.h": "cmath"}


class Tree:
    """The sources, and the headers that each includes."""

    def __init__(self):
        self.texts, self.brought = {}, {}
        for folder in ("src", "tests", "bench"):
            for path in (ROOT / folder).rglob("*.[ch]pp"):
                self.texts[path] = path.read_text(encoding="utf-8")

    def ours(self, path, name):
        for place in (ROOT / "src", ROOT / "tests", ROOT, path.parent):
            if (found := place / name) in self.texts:
                return found
        return None

    def brings(self, path, through=frozenset()):
        """The library headers that `path` includes, directly or through ours."""
        if path in self.brought:
            return self.brought[path]
        found = set()
        for mark, name in INCLUDE.findall(self.texts[path]):
            header = self.ours(path, name) if mark == '"' else None
            if header is None:
                found.add(SAME.get(name, name))
            elif header not in through:
                found |= self.brings(header, through | {path})
        self.brought[path] = found
        return found

    def wants(self, path):
        """(name, the headers that have it) for each name that the file uses without an include."""
        code = NOT_CODE.sub(" ", self.texts[path])
        used = {(f"std::{name}", tuple(HEADERS[name])) for name in re.findall(r"\bstd::(\w+)", code) if name in HEADERS}
        for headers, pattern in OTHERS.items():
            found = pattern.search(INCLUDE.sub("", code))
            if found:
                used.add((found.group(), tuple(headers.split())))
        brought = self.brings(path)
        return sorted((headers[0], name) for name, headers in used if not brought & set(headers))


def add(text, headers):
    """The text with lines for them among its other library headers, else after the first header."""
    lines = "".join(f"#include <{header}>\n" for header in headers)
    first = re.search(r"^#include <[a-z_]+>\n", text, re.M) or re.search(r"^#include <", text, re.M)
    if first:
        return text[:first.start()] + lines + text[first.start():]
    once = re.search(r"^#pragma once\n", text, re.M) or re.search(r'^#include "[^"]+"\n', text, re.M)
    if once:
        return text[:once.end()] + "\n" + lines + text[once.end():]
    line = re.search(r"^(?!//)", text, re.M)
    return text[:line.start()] + lines + "\n" + text[line.start():]


def main():
    tree, faults = Tree(), 0
    for path in sorted(tree.texts):
        place = path.relative_to(ROOT)
        for mark, name in INCLUDE.findall(tree.texts[path]):
            if mark == "<" and PRIVATE.search(name):
                print(f"{place}: <{name}> is a private header of its library")
                faults += 1
        wanted = {}
        for header, name in tree.wants(path):
            wanted.setdefault(header, name)
        if not wanted:
            continue
        if "--fix" in sys.argv:
            path.write_text(add(tree.texts[path], sorted(wanted)), encoding="utf-8")
        for header, name in wanted.items():
            print(f"{place}: {name} needs <{header}>")
            faults += 1
    if not faults:
        print("includes: every file brings what it uses of the standard library")
    return 1 if faults and "--fix" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
