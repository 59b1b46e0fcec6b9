# SPDX-License-Identifier: Apache-2.0
"""What a pull finds in the files of an image, and what `berth scan` makes of it."""

import json
import os
import pathlib

import pytest

from support import images, loader_images
from support.fat_binaries import bundle, carrier, container, cubin, packed_bundle, ptx, sass


def library(*members):
    return carrier({".nv_fatbin": container(members)})


def facts_of(berth, reference):
    return json.loads(berth.ok("scan", "--format", "json", reference))


def codes(facts):
    """{example: "sass 80, ptx 80 7.4"}"""
    return {found["example"]: ", ".join(" ".join(part for part in
                                                 (code["kind"], code["arch"], code.get("isa")) if part)
                                        for code in found["code"])
            for found in facts["gpu_code"]}


def pulled(berth, push, layers, **config):
    reference = push(images.build(layers, config))
    berth.ok("pull", "--quiet", reference)
    return reference


def test_code_for_gpus_is_found_however_it_is_packed(berth, push):
    files = {
        "k80.so": library(sass("37", compiler=9), sass("52", compiler=9), ptx("52", "6.1")),
        "mixed.so": library(sass("80", "lz4"), ptx("90a", "8.0", "lz4", compiler=12)),
        "zstd.so": library(sass("90a", "zstd"), sass("100f", "zstd")),
        "old.so": library(sass("90a", "lz4", compiler=12), sass("90a", "zstd", compiler=12)),
        "two.so": carrier({".nv_fatbin": container([sass("75")]) + b"\0" * 8 +
                           container([sass("86"), sass("75")]),
                           "__nv_relfatbin": container([sass("120")])}),
        "amd.so": carrier({".hip_fatbin": bundle(["gfx90a:xnack+", "gfx942"])}),
        "packed.so": carrier({".hip_fatbin": packed_bundle(["gfx1100"])}),
        "kernel.cubin": cubin("90a", compiler=12),
        "none.so": carrier({".data": container([sass("70")])}),
        "text": b"no program at all\n",
    }
    reference = pulled(berth, push, [images.busybox_layer(), images.layer(
        [images.directory("opt")] + [images.file(f"opt/{n}", c) for n, c in files.items()])])
    facts = facts_of(berth, reference)
    found = codes(facts)
    assert found == {
        "/opt/k80.so": "sass 37, sass 52, ptx 52 6.1",
        "/opt/mixed.so": "sass 80, ptx 90a 8.0",
        "/opt/zstd.so": "sass 100f, sass 90a",
        "/opt/kernel.cubin": "sass 90a",
        "/opt/old.so": "sass 90a",
        "/opt/two.so": "sass 120, sass 75, sass 86",
        "/opt/amd.so": "gfx gfx90a:xnack+, gfx gfx942",
        "/opt/packed.so": "gfx gfx1100",
    }
    assert {one["example"] for one in facts["gpu_code"] if one.get("zstd")} == \
        {"/opt/zstd.so", "/opt/old.so"}


def test_the_summary_has_a_fact_a_line(berth, push):
    reference = pulled(berth, push, [images.busybox_layer(), images.layer(
        [images.file("a.so", library(sass("80"), ptx("80", "7.4"))),
         images.file("b.so", library(sass("80"), ptx("80", "7.4")))])])
    assert berth.ok("scan", reference) == (
        "program   amd64, static                   /bin/busybox\n"
        "gpu code  sass 80, ptx 80 (7.4), CUDA 13  /a.so and 1 more\n")
    assert berth.ok("scan", "--format", "{{.program}} {{.static}}", reference) == \
        "/bin/busybox true\n"


@pytest.mark.profiles("root", "user")
def test_a_file_counts_when_a_container_sees_it(berth, push):
    lower = images.layer([images.directory(path) for path in ("gone", "kept", "over", "a", "a/b")] + [
        images.file("kept/seen.so", library(sass("70"))),
        images.file("kept/removed.so", library(sass("71"))),
        images.file("kept/replaced.so", library(sass("72"))),
        images.file("kept/now-text.so", library(sass("73"))),
        images.file("kept/now-link.so", library(sass("74"))),
        images.file("gone/x.so", library(sass("76"))),
        images.file("over/x.so", library(sass("77"))),
        images.file("a/b/x.so", library(sass("78"))),
        images.hardlink("kept/hard.so", "kept/removed.so"),
    ])
    upper = images.layer([
        images.whiteout("kept/removed.so"),
        images.file("kept/replaced.so", library(sass("80"))),
        images.file("kept/now-text.so", b"text\n"),
        images.symlink("kept/now-link.so", "seen.so"),
        images.whiteout("gone"),
        images.directory("over"), images.opaque("over"),
        images.file("over/y.so", library(sass("86"))),
        images.symlink("a", "kept"),
    ])
    facts = facts_of(berth, pulled(berth, push, [images.busybox_layer(), lower, upper]))
    assert codes(facts) == {"/kept/seen.so": "sass 70", "/kept/hard.so": "sass 71",
                            "/kept/replaced.so": "sass 80", "/over/y.so": "sass 86"}


def test_the_main_program_and_what_it_loads_are_told(berth, push):
    reference = push(images.build(loader_images.debian(), {"Entrypoint": ["/probe"]}))
    berth.ok("pull", "--quiet", reference)
    facts = facts_of(berth, reference)
    assert (facts["program"], facts["architecture"], facts["static"]) == ("/probe", "amd64", False)
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    assert facts["glibc"] == libc
    assert facts["unmet"] == []
    assert facts["musl"] is False


def test_what_was_unpacked_without_facts_is_looked_through(berth, push):
    layer = images.layer([images.directory("opt"),
                          images.file("opt/a.so", library(sass("80")), mode=0o400),
                          images.hardlink("opt/b.so", "opt/a.so")])
    reference = pulled(berth, push, [images.busybox_layer(), layer])
    kept = list(berth.root.glob("layers/*/facts.json"))
    assert len(kept) == 2
    written = {path: json.loads(path.read_text()) for path in kept}
    first = facts_of(berth, reference)
    for path in kept + list(berth.state.glob("facts/*")):
        path.unlink()
    assert facts_of(berth, reference) == first
    assert {path: json.loads(path.read_text()) for path in kept} == written
    assert codes(first) == {"/opt/a.so": "sass 80"}
    assert first["gpu_code"][0]["files"] == 2


@pytest.mark.profiles("root")
def test_damaged_files_neither_stop_a_pull_nor_hide_the_others(berth, push):
    whole = library(sass("80"), sass("86"))
    damaged = [whole[:len(whole) // 2], whole.replace(b"\x50\xed\x55\xba", b"nope"),
               library(sass("80")[:70]), b"\x7fELF", b"\x7fELF" + b"\xff" * 2000,
               carrier({".nv_fatbin": container([b"\xff" * 64])}),
               carrier({".hip_fatbin": bundle(["gfx90a"])[:60]})]
    layer = images.layer([images.file(f"{n}.so", data) for n, data in enumerate(damaged)] +
                         [images.file("good.so", library(sass("75")))])
    reference = pulled(berth, push, [images.busybox_layer(), layer])
    assert codes(facts_of(berth, reference)) == {"/good.so": "sass 75"}
    unread = [json.loads(path.read_text()).get("unread", [])
              for path in berth.root.glob("layers/*/facts.json")]
    assert sorted(sum(unread, [])) == ["0.so", "1.so", "2.so", "5.so", "6.so"]


@pytest.mark.profiles("root", "single_id")
def test_images_that_were_loaded_are_scanned_too(berth, push, work):
    reference = pulled(berth, push, [images.busybox_layer(), images.layer(
        [images.file("a.so", library(sass("80")))])])
    archive = pathlib.Path(work, "berth", "image.tar")
    berth.ok("save", "-o", archive, reference)
    berth.ok("rmi", reference)
    berth.ok("load", "-i", archive)
    assert list(berth.root.glob("layers/*/facts.json"))
    assert codes(facts_of(berth, reference)) == {"/a.so": "sass 80"}


@pytest.mark.profiles("root")
def test_an_image_that_is_not_there_is_one_line(berth):
    assert berth.fail("scan", "nobody/has-it", status=1) == \
        "berth: no such image: nobody/has-it; try: berth pull nobody/has-it"
    assert "is not a format" in berth.fail("scan", "--format", "table", "x", status=1)
