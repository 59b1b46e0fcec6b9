# SPDX-License-Identifier: Apache-2.0
"""What an image may ask for has an end, as what a user may has."""

import pytest

from support import images

pytestmark = pytest.mark.profiles("root", "user")


@pytest.fixture
def asking(push):
    """asking(config) → the reference of a busybox image whose configuration asks for that."""
    return lambda config: push(images.build([images.busybox_layer()], config=config))


@pytest.mark.profiles("root")
@pytest.mark.parametrize("ports", [
    {"1-8000/tcp": {}},
    {f"{port}/udp": {} for port in range(1, 65536)},
    {"1-65535/tcp": {}, "1-65535/udp": {}},
], ids=["range", "each", "all"])
def test_all_ports_of_an_image_are_published_where_they_are_no_flood(berth, asking, ports):
    image = asking({"ExposedPorts": ports})
    assert berth.ok("run", "--rm", image, "echo", "fine", timeout=60) == "fine\n"
    line = berth.fail("run", "--rm", "-P", image, "true", timeout=20)
    count = sum(int((text.partition("/")[0].split("-") * 2)[1]) -
                int(text.partition("/")[0].split("-")[0]) + 1 for text in ports)
    assert line == (f"berth: -P: {count} ports are exposed; at most 512 are published; "
                    "try: -p for those that are needed")
    assert berth.ok("ps", "-aq") == ""


@pytest.mark.profiles("root")
def test_more_published_ranges_than_fit_are_one_line(berth, busybox):
    flags = [word for port in range(10000, 13000, 2) for word in ("-p", f"{port}:{port}")]
    line = berth.fail("run", "--rm", *flags, busybox, "true")
    assert line == ("berth: 1500 ranges of ports are too many to publish; try: fewer and longer "
                    "ranges: -p 8000-8999:8000-8999")
    assert berth.ok("ps", "-aq") == ""


def test_volumes_of_an_image_have_an_end(berth, asking):
    image = asking({"Volumes": {f"/v/{number}": {} for number in range(257)}})
    line = berth.fail("run", "--rm", image, "true", timeout=20)
    assert line.startswith("berth: the image declares 257 volumes; at most 256 are made; try: ")
    assert berth.ok("ps", "-aq") == "" and berth.ok("volume", "ls", "-q") == ""
    if berth.account.kind == "root":  # what it says to try
        mounted = berth.directory / "mounted"
        mounted.mkdir()
        berth.ok("image", "mount", image, str(mounted))
        berth.ok("import", str(mounted), "files:1")
        berth.ok("image", "unmount", str(mounted))
        assert berth.ok("run", "--rm", "files:1", "echo", "fine") == "fine\n"
    image = asking({"Volumes": {f"/v/{number}": {} for number in range(40)}})
    assert berth.ok("run", "--rm", image, "sh", "-c", "ls /v | wc -l", timeout=60) == "40\n"
    assert berth.ok("volume", "ls", "-q") == ""
