# SPDX-License-Identifier: Apache-2.0
"""The checks that keep the house in order can themselves fail."""

import io
import json
import os
import shutil
import subprocess
import sys

import build_progress
import build_report
import clashes
import ctest_report
import layers
import pytest
import rounds
from support import kept

JUNIT = """<testsuite>
<testcase name="unit/sys" time="0.6" status="run"/>
<testcase name="lint/shell" time="0" status="disabled"><skipped message="Disabled"/></testcase>
</testsuite>"""
PROGRAM = """<testsuites><testsuite name="Mount">
<testcase name="binds" classname="Mount"><skipped message="a_test.cc:1&#x0A;needs root"/></testcase>
<testcase name="moves" classname="Mount"/>
</testsuite></testsuites>"""

TIMES = """{"fixture": "registry", "scope": "session", "seconds": 1.5}
{"test": "test_pull.py::test_pulls", "seconds": 0.25}
{"fixture": "registry", "scope": "session", "seconds": 0.5}
{"session": "unit/sys", "seconds": 0.5, "cpu": 0.125}
"""


def report(tmp_path, allowed):
    (tmp_path / "junit.xml").write_text(JUNIT)
    (tmp_path / "gtest").mkdir()
    (tmp_path / "gtest/unit_sys.xml").write_text(PROGRAM)
    (tmp_path / "times").mkdir()
    (tmp_path / "times/1.jsonl").write_text(TIMES)
    (tmp_path / "allowed").write_text(allowed)
    return subprocess.run([sys.executable, ctest_report.__file__, tmp_path / "junit.xml",
                           tmp_path / "gtest", tmp_path / "times", tmp_path / "allowed"],
                          input="1/2 Test\n100% tests passed, 0 tests failed out of 2\n\nTotal\n",
                          text=True, capture_output=True, check=False)


def test_a_skip_that_is_not_listed_fails_the_run(tmp_path):
    done = report(tmp_path, "# nothing\n")
    assert done.returncode == 1
    assert "unit_sys/Mount.binds: needs root  NOT in tests/allowed-skips" in done.stdout
    assert "lint/shell: Disabled  NOT in tests/allowed-skips" in done.stdout


def test_a_listed_skip_passes_and_ctests_summary_comes_last(tmp_path):
    done = report(tmp_path, "unit_sys/*: needs *\nlint/*: *\n")
    assert done.returncode == 0
    assert done.stdout.endswith("100% tests passed, 0 tests failed out of 2\n\nTotal\n")


def test_the_slowest_come_first_with_what_they_set_up(tmp_path):
    printed = report(tmp_path, "*: *\n").stdout
    assert "      0.60 s     0.12 s  unit/sys\n" in printed
    assert "      0.25 s  test_pull.py::test_pulls\n" in printed
    assert "      2.00 s  registry, set up 2 times\n" in printed
    facts = json.loads((tmp_path / "junit.json").read_text())
    assert [entry["entry"] for entry in facts["entries"]] == ["unit/sys", "lint/shell"]


def test_a_skip_is_listed_with_its_reason(tmp_path):
    assert report(tmp_path, "unit_sys/*: another reason\nlint/*: *\n").returncode == 1


def test_layers_names_the_include_that_is_not_allowed(tmp_path, monkeypatch):
    for name, text in (("sys/fd/a.cpp", '#include "sys/fd/a.hpp"\n#include "base/b.hpp"\n'),
                       ("base/b.hpp", "#include <string>\n"),
                       ("base/c.cpp", '\n#include "sys/fd/a.hpp"\n'),
                       ("stray/d.cpp", "")):
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    assert layers.check() == ['src/base/c.cpp:2: base may not include "sys/fd/a.hpp"',
                              "src/stray/d.cpp: not in a folder of tools/layers.py"]


@pytest.mark.parametrize("line, fault", (
    ("::fchmodat(dir, name, mode, 0);", "'::fchmodat' goes by name; use sys/file/mode.hpp"),
    ("::fchmodat(AT_FDCWD, path.c_str(), mode, 0);", "'::fchmodat' goes by name; use sys/file/mode.hpp"),
    ("::fchownat(dir.get(), name, 1, 2, AT_SYMLINK_NOFOLLOW);",
     "'::fchownat' goes by name; use sys/file/mode.hpp"),
    ("::lsetxattr(path, key, value, 1, 0);", "'::lsetxattr' goes by name; use sys/file/mode.hpp"),
    ("std::filesystem::permissions(path, all);", "'permissions' goes by name; use sys/file/mode.hpp"),
    ('::fchownat(fd.get(), "", 1, 2, AT_EMPTY_PATH);', None),
    ("::fchmodat(AT_FDCWD, fd_path(fd).c_str(), mode, 0);", None),
    ("::fchmod(fd.get(), mode);", None),
))
def test_layers_refuse_a_mode_owner_time_or_attribute_that_is_set_by_name(line, fault):
    assert list(layers.check_calls("sys/file/mode.cpp", line)) == (
        [f"src/sys/file/mode.cpp:1: {fault}"] if fault else [])


def test_layers_refuse_to_open_a_file_of_a_root_before_it_is_looked_at():
    text = "auto a = open_in_root(root, path, O_PATH);\n" \
           "auto b = open_in_root(root, path, O_RDONLY | O_DIRECTORY);\n" \
           "auto c = TRY(sys::open_in_root(root,\n  path, O_RDONLY | O_NONBLOCK));\n"
    assert list(layers.check_calls("engine/x.cpp", text)) == [
        "src/engine/x.cpp:3: opens whatever it is in a root; use sys/file/regular.hpp"]


def test_layers_let_one_header_through_where_the_table_names_it():
    assert layers.may_include(layers.allowed_in("gpu/grant/x.cpp", "gpu/grant"),
                              "gpu/inventory/inventory.hpp")
    assert not layers.may_include(layers.allowed_in("gpu/grant/x.cpp", "gpu/grant"),
                                  "gpu/probe/probe.hpp")


def test_layers_let_a_folder_stand_for_its_rooms_but_within_it():
    assert layers.may_include(layers.allowed_in("hub/x.cpp", "hub"), "transfer/tar/tar.hpp")
    assert layers.may_include(layers.allowed_in("hub/x.cpp", "hub"), "transfer/pull.hpp")
    assert not layers.may_include(layers.allowed_in("runtime/checkpoint/x.cpp", "runtime/checkpoint"),
                                  "runtime/seccomp/seccomp.hpp")
    assert not layers.may_include(layers.allowed_in("sys/fd/x.cpp", "sys/fd"), "sys/file/file.hpp")


def test_layers_no_folder_may_include_one_that_comes_after_it():
    order = list(layers.LAYERS)
    for folder, names in layers.LAYERS.items():
        assert set(names.split()).isdisjoint(order[order.index(folder):]), folder


def test_every_decision_is_in_the_index():
    decisions = layers.ROOT / "docs/decisions"
    index = (decisions / "README.md").read_text()
    for path in decisions.glob("0*.md"):
        title = path.read_text().partition("\n")[0].removeprefix("# ").partition(". ")[2]
        assert f"- [{path.name[:4]}]({path.name}) {title}" in index


def test_clashes_names_what_two_files_of_a_folder_call_the_same(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "src/room"
    folder.mkdir(parents=True)
    for name, body in (("a.cpp", "constexpr int kSize = 1;\nusing Clock = int;\n"
                                 "bool has(const std::string& text, int at) { return at > 0; }\n"),
                       ("b.cpp", "constexpr long kSize = 2;\nusing Clock = int;\n"
                                 "bool has(std::string_view text, int number) { return number > 0; }\n"),
                       ("c.cpp", "bool has(std::vector<int> many, int at) { return at > 0; }\n")):
        (folder / name).write_text("namespace berth {\nnamespace {\n" + body + "}\n}\n")
    monkeypatch.setattr(clashes, "ROOT", tmp_path)
    assert clashes.main([folder]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "clashes: 'has' is a name of its own in src/room/a.cpp, src/room/b.cpp, src/room/c.cpp; give each another",
        "clashes: 'kSize' is a name of its own in src/room/a.cpp, src/room/b.cpp; give each another"]


def test_clashes_compares_the_rooms_of_a_library(tmp_path, monkeypatch, capsys):
    for name in ("src/a/one/x.cpp", "src/a/two/y.cpp", "src/b/z.cpp"):
        path = tmp_path / name
        path.parent.mkdir(parents=True)
        path.write_text("namespace {\nconstexpr int kSize = 1;\n}\n")
    (tmp_path / "src/a/CMakeLists.txt").touch()
    (tmp_path / "src/b/CMakeLists.txt").touch()
    monkeypatch.setattr(clashes, "ROOT", tmp_path)
    assert clashes.main([]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "clashes: 'kSize' is a name of its own in src/a/one/x.cpp, src/a/two/y.cpp; give each another"]


def test_clashes_lets_functions_of_one_name_differ_by_what_they_take(tmp_path, monkeypatch):
    for name, body in (("a.cpp", "int size_of(const std::vector<int>& many) { return 1; }\n"),
                       ("b.cpp", "int size_of(int one) { return one; }\n")):
        (tmp_path / name).write_text("namespace {\n" + body + "}\n")
    monkeypatch.setattr(clashes, "ROOT", tmp_path)
    assert clashes.main([tmp_path]) == 0


def test_a_build_says_in_a_log_each_minute_how_far_it_is():
    class Clock:
        now = 0.0

        def __call__(self):
            return self.now

    clock, log = Clock(), io.StringIO()
    progress = build_progress.Progress("build/release", log, clock)
    for done in range(1, 101):
        clock.now += 1.5
        progress.step(done, 200, f"Building CXX object src/sys/unit_{done}.o")
    assert log.getvalue().splitlines() == ["build/release: 40 of 200 steps, 1 min 00 s, about 4 min 00 s left",
                                           "build/release: 80 of 200 steps, 2 min 00 s, about 3 min 00 s left"]


def test_a_build_passes_on_what_the_compiler_says_and_how_it_ended(tmp_path):
    (tmp_path / "build.ninja").write_text("rule fail\n  command = echo 'x.cpp:1: error: no' && exit 3\n"
                                          "build it: fail\n")
    done = subprocess.run([sys.executable, build_progress.__file__, "it", "-C", tmp_path],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "x.cpp:1: error: no" in done.stderr


@pytest.fixture
def keep(tmp_path):
    """keep() → (a directory of the cache, how often it has been made)."""
    made = []

    def make(path):
        made.append(path)
        (path / "in").mkdir(parents=True)
        (path / "in/a").write_text("alpha")
        (path / "b").write_text("beta")
        (path / "link").symlink_to("b")

    return lambda: (kept.directory("thing", make, within=tmp_path / "cache"), len(made))


def test_what_is_kept_is_made_once(keep):
    directory, _ = keep()
    assert keep() == (directory, 1)
    assert (directory / "in/a").read_text() == "alpha"
    assert sorted(path.name for path in directory.parent.iterdir()) == ["thing", "thing.files", "thing.lock"]


@pytest.mark.parametrize("harm", [
    lambda kept_there: (kept_there / "in/a").unlink(),
    lambda kept_there: (kept_there / "in/a").write_text("alp"),
    lambda kept_there: (kept_there / "in/a").write_text("alphA"),
    lambda kept_there: (kept_there / "stray").write_text(""),
    lambda kept_there: (kept_there / "in/a").chmod(0o600) or (kept_there / "b").rename(kept_there / "c"),
    lambda kept_there: (kept_there / "link").unlink() or (kept_there / "link").symlink_to("in/a"),
    lambda kept_there: kept_there.with_name("thing.files").write_text("[]"),
    lambda kept_there: kept_there.with_name("thing.files").write_text("{"),
    lambda kept_there: kept_there.with_name("thing.files").unlink(),
    lambda kept_there: shutil.rmtree(kept_there),
], ids=["file lost", "file cut", "byte changed", "file added", "file renamed", "link changed", "list of another kind",
        "list cut", "list lost", "all lost"])
def test_what_is_kept_is_made_anew_where_it_is_not_as_it_was_made(keep, harm):
    directory, _ = keep()
    harm(directory)
    assert keep() == (directory, 2)
    assert (directory / "in/a").read_text() == "alpha"
    assert keep() == (directory, 2)


def test_a_copy_of_a_cache_is_taken_for_what_it_is(keep, tmp_path):
    directory, _ = keep()
    shutil.copytree(tmp_path / "cache", tmp_path / "copy", symlinks=True)
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "copy").rename(tmp_path / "cache")
    assert keep() == (directory, 1)


def test_what_was_being_made_when_its_maker_died_is_removed(keep):
    directory, _ = keep()
    left = directory.parent / "thing.making-abc/made"
    left.mkdir(parents=True)
    keep()
    assert not left.parent.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount")
def test_what_a_maker_that_failed_has_left_mounted_is_removed(tmp_path):
    def make(path):
        place = path.parent / "still mounted"
        place.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "left", place], check=True)
        raise RuntimeError("no power")

    with pytest.raises(RuntimeError, match="no power"):
        kept.directory("thing", make, within=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thing.lock"]


# ---- what a build costs -------------------------------------------------------------------------

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES CXX)
set(CMAKE_CXX_COMPILER_LAUNCHER ${BERTH_CCACHE})
add_subdirectory(src/room)
"""
ROOM = """add_library(room STATIC a.cpp b.cpp)
set_target_properties(room PROPERTIES UNITY_BUILD ON)
target_include_directories(room PUBLIC ${CMAKE_SOURCE_DIR}/src)
add_executable(tool tool.cpp)
target_link_libraries(tool PRIVATE room)
"""
PRESETS = """{"version": 6, "configurePresets": [
  {"name": "small", "generator": "Ninja", "cacheVariables": {"CMAKE_EXPORT_COMPILE_COMMANDS": "ON"}}]}"""


@pytest.fixture
def small_project(tmp_path, monkeypatch):
    """Two files that are a batch, a program of one more, and a header that all three read."""
    for name, text in (("CMakeLists.txt", PROJECT), ("CMakePresets.json", PRESETS), ("src/room/CMakeLists.txt", ROOM),
                       ("src/room/room.hpp", "#pragma once\n#include <string>\nstd::string word();\nint number();\n"),
                       ("src/room/a.cpp", '#include "room/room.hpp"\nstd::string word() { return "a"; }\n'),
                       ("src/room/b.cpp", '#include "room/room.hpp"\nint number() { return 7; }\n'),
                       ("src/room/tool.cpp", '#include "room/room.hpp"\nint main() { return number() - 7; }\n')):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "tools").symlink_to(layers.ROOT / "tools")
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(build_report, "ROOT", tmp_path)
    return tmp_path


def test_a_build_is_timed_by_folder_program_header_and_file(small_project, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["build_report.py", "small", "--jobs", "2", "--touch", "src/room/tool.cpp:tool"])
    build_report.main()
    facts = json.loads((small_project / "build/report/small.json").read_text())
    assert facts["compilations"] == 2 and facts["links"] == 1
    (folder,) = [one for one in facts["folders"] if one["folder"] != "links"]
    assert folder["folder"] == "src/room" and 0 < folder["cpu_s"] <= facts["cpu_s"]
    assert sorted(one["files"] for one in facts["files"]) == [
        ["src/room/a.cpp", "src/room/b.cpp"], ["src/room/tool.cpp"]]
    (program,) = facts["programs"]
    assert program["program"] == "src/room/tool" and program["objects_cpu_s"] > 0
    headers = {one["header"]: one for one in facts["headers"]}
    assert headers["src/room/room.hpp"]["compilations"] == 2
    assert any(name.endswith("/string") for name in headers)
    (touched,) = facts["touched"]
    assert touched["compilations"] == 1 and touched["links"] == 1
    printed = capsys.readouterr().out
    assert "src/room/a.cpp … b.cpp (2 files)" in printed and "src/room/tool.cpp touched, tool built: " in printed


def test_a_file_that_is_not_there_cannot_be_touched(small_project, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["build_report.py", "small", "--touch", "src/nothing.cpp"])
    with pytest.raises(SystemExit, match="src/nothing.cpp: there is no such file"):
        build_report.main()
    assert not (small_project / "build").exists()


# ---- what fails now and then --------------------------------------------------------------------

DEV = """#!/bin/sh
# Fails every second time; what it was called with and how often is in 'calls'.
echo "$@" >>calls
mkdir -p build/times
outcome=passed
[ $(($(wc -l <calls) % 2)) = 1 ] || outcome=failed
echo '{"test": "test_a.py::test_b", "seconds": 1, "outcome": "'$outcome'"}' >build/times/1.jsonl
[ $outcome = passed ]
"""


def test_rounds_say_what_failed_how_often(tmp_path, monkeypatch, capfdbinary):
    (tmp_path / "dev").write_text(DEV)
    (tmp_path / "dev").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(rounds, "ROOT", tmp_path)
    monkeypatch.setattr(rounds, "LOGS", tmp_path / "build/rounds")
    assert rounds.main(4, 1, ["integration", "-k", "b"]) == 1
    printed = capfdbinary.readouterr().out.decode()
    assert "2 of 4 rounds passed" in printed
    assert "  failed in 2: test_a.py::test_b (build/rounds/2.log, build/rounds/4.log)" in printed
    assert (tmp_path / "calls").read_text() == "test integration -k b\n" * 4
    assert rounds.main(1, 0, []) == 0
