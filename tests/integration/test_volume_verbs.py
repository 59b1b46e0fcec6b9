# SPDX-License-Identifier: Apache-2.0
"""volume create, ls, inspect, rm, prune; container, image and system prune; system df."""

import json
import re

import pytest

from support import images


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def test_volumes_are_made_listed_inspected_and_removed(berth):
    assert berth.ok("volume", "create", "--label", "kind=cache", "models") == "models\n"
    assert berth.ok("volume", "create", "models") == "models\n"
    anonymous = berth.ok("volume", "create").strip()
    assert len(anonymous) == 64
    lines = berth.ok("volume", "ls").splitlines()
    assert lines[0].split() == ["DRIVER", "VOLUME", "NAME"]
    assert {line.split()[1] for line in lines[1:]} == {"models", anonymous}
    assert berth.ok("volume", "ls", "-q", "--filter", "label=kind=cache") == "models\n"
    assert berth.ok("volume", "ls", "--format", "{{.Name}} {{.Label \"kind\"}}",
                    "--filter", "name=odel") == "models cache\n"
    document = json.loads(berth.ok("volume", "inspect", "models"))[0]
    assert document["Driver"] == "local" and document["Labels"] == {"kind": "cache"}
    assert document["Mountpoint"].endswith("/volumes/models/_data")
    assert berth.ok("volume", "inspect", "-f", "{{.Name}}", "models") == "models\n"
    assert json.loads(berth.ok("inspect", "models")) == [document]
    assert json.loads(berth.ok("inspect", "--type", "volume", "models")) == [document]
    assert berth.fail("inspect", "--type", "container", "models", status=1).startswith(
        "berth: no such container: models")
    assert berth.ok("volume", "rm", "models", anonymous) == f"models\n{anonymous}\n"
    assert berth.fail("volume", "rm", "models", status=1).startswith(
        "berth: no such volume: models")
    assert berth.ok("volume", "rm", "-f", "models") == "models\n"
    assert berth.fail("volume", "inspect", "models", status=1).startswith(
        "berth: no such volume: models")


def test_of_one_name_a_container_hides_an_image_and_that_a_volume(berth, image):
    berth.ok("volume", "create", "hold")
    assert json.loads(berth.ok("inspect", "hold"))[0]["Driver"] == "local"
    berth.ok("tag", image, "hold")
    assert "RootFS" in json.loads(berth.ok("inspect", "hold"))[0]
    berth.ok("create", "--name", "hold", "-v", "hold:/cargo", "--stop-signal", "usr1", image, "true")
    document = json.loads(berth.ok("inspect", "hold"))[0]
    assert document["Config"]["StopSignal"] == "usr1"
    [mount] = document["Mounts"]
    volume = json.loads(berth.ok("volume", "inspect", "hold"))[0]
    assert mount["Source"] == volume["Mountpoint"]
    assert (mount["Type"], mount["Name"], mount["Destination"]) == ("volume", "hold", "/cargo")


def test_a_volume_in_use_is_not_removed(berth, image):
    identity = berth.ok("create", "--name", "hold", "-v", "cargo:/hold", image, "true").strip()
    assert berth.fail("volume", "rm", "cargo", status=1) == \
        f"berth: remove cargo: volume is in use - [{identity}]"
    assert berth.ok("volume", "prune", "-f") == "Total reclaimed space: 0B\n"
    assert berth.ok("volume", "ls", "-q", "--filter", "dangling=true") == ""
    berth.ok("rm", "hold")
    assert berth.ok("volume", "ls", "-q", "--filter", "dangling=true") == "cargo\n"
    assert berth.ok("volume", "prune", "-f").startswith("Deleted Volumes:\ncargo\n\nTotal")


def test_what_a_killed_create_or_rm_left_is_removed(berth, image):
    berth.ok("volume", "create", "cargo")
    directory = berth.root / "volumes"
    for name in (".new-0123456789abcdef", ".gone-0123456789abcdef"):
        (directory / name / "_data").mkdir(parents=True)
        berth.account.own(directory / name / "_data")
        berth.account.own(directory / name)
    berth.ok("run", "--rm", "-v", "/cargo", image, "true")
    assert [path.name for path in directory.iterdir()] == ["cargo"]


def test_prune_asks_and_takes_no_for_an_answer(berth):
    berth.ok("volume", "create", "cargo")
    out = berth.ok("volume", "prune", input="n\n")
    assert out == ("WARNING! This will remove all local volumes not used by at least one "
                   "container.\nAre you sure you want to continue? [y/N] "
                   "Total reclaimed space: 0B\n")
    assert berth.ok("volume", "ls", "-q") == "cargo\n"
    assert "Deleted Volumes:\ncargo\n" in berth.ok("volume", "prune", input="y\n")


def test_container_prune_removes_those_that_do_not_run(berth, image):
    berth.ok("run", "-d", "--name", "live", image, "sleep", "600")
    done = berth.ok("create", "--name", "idle", "--label", "keep", image, "true").strip()
    ended = berth.ok("create", "--name", "other", image, "true").strip()
    out = berth.ok("container", "prune", "-f", "--filter", "label!=keep")
    assert out.startswith(f"Deleted Containers:\n{ended}\n\nTotal reclaimed space: ")
    assert done in berth.ok("container", "prune", "-f")
    assert "live" in berth.ok("ps") and "idle" not in berth.ok("ps", "-a")
    assert berth.fail("container", "prune", "-f", "--filter", "colour=red", status=1)
    berth.ok("rm", "-f", "live")


def test_image_prune_keeps_what_has_a_name_or_a_container(berth, image):
    identity = berth.ok("images", "-q", "--no-trunc", image).strip()
    assert berth.ok("image", "prune", "-f") == "Total reclaimed space: 0B\n"
    berth.ok("create", "--name", "idle", image, "true")
    assert berth.ok("image", "prune", "-a", "-f") == "Total reclaimed space: 0B\n"
    berth.ok("rm", "idle")
    out = berth.ok("image", "prune", "-a", "-f")
    assert "untagged: " in out and f"deleted: {identity}" in out
    assert berth.ok("images", "-q") == ""


def test_system_df_and_prune_count_the_same(berth, image):
    berth.ok("create", "--name", "idle", "-v", "cargo:/hold", image, "true")
    rows = berth.ok("system", "df", "--format", "{{.Type}}|{{.TotalCount}}|{{.Active}}")
    assert rows == "Images|1|1\nContainers|1|0\nLocal Volumes|1|1\nBuild Cache|0|0\n"
    out = berth.ok("system", "prune", "-a", "-f", "--volumes")
    assert "Deleted Containers:" in out and "Deleted Volumes:\ncargo" in out
    assert "Deleted Images:" in out and "Total reclaimed space: " in out
    rows = berth.ok("system", "df", "--format", "{{.Type}}|{{.TotalCount}}|{{.Active}}")
    assert rows == "Images|0|0\nContainers|0|0\nLocal Volumes|0|0\nBuild Cache|0|0\n"
    assert berth.ok("system", "df").splitlines()[0].split() == [
        "TYPE", "TOTAL", "ACTIVE", "SIZE", "RECLAIMABLE"]


def test_system_df_shows_each_image_container_and_volume(berth, image, push):
    base = images.busybox_layer()
    sail = images.layer([images.file("sail", b"x" * 5000)])
    for name, layers in (("hull:1", [base, sail]), ("hull:2", [base])):
        reference = push(images.build(layers, config={"Cmd": ["true"]}))
        berth.ok("pull", "--quiet", reference)
        berth.ok("tag", reference, name)
        berth.ok("rmi", reference)
    berth.ok("rmi", image)
    berth.ok("run", "--name", "idle", "-v", "cargo:/hold", "hull:1", "sh", "-c",
             "echo 1234567 > /hold/load; echo 123 > /own")
    berth.ok("volume", "create", "spare")
    parts = berth.ok("system", "df", "-v").split("\n\n")
    tables = dict(zip(parts[0::2], (part.splitlines() for part in parts[1::2])))
    titles = {name.strip().split(":")[0]: re.split(r"  +", table[0].strip())
              for name, table in tables.items()}
    assert titles == {
        "Images space usage": ["REPOSITORY", "TAG", "IMAGE ID", "CREATED", "SIZE", "SHARED SIZE",
                               "UNIQUE SIZE", "BLOB SIZE", "CONTAINERS"],
        "Containers space usage": ["CONTAINER ID", "IMAGE", "COMMAND", "LOCAL VOLUMES", "SIZE",
                                   "CREATED", "STATUS", "NAMES"],
        "Local Volumes space usage": ["VOLUME NAME", "LINKS", "SIZE"],
        "Build cache usage": ["CACHE ID", "CACHE TYPE", "SIZE", "CREATED", "LAST USED", "USAGE",
                              "SHARED"]}
    rows = {re.split(r"  +", row)[0]: re.split(r"  +", row)
            for row in tables["Local Volumes space usage:"][1:]}
    assert rows == {"cargo": ["cargo", "1", "8B"], "spare": ["spare", "0", "0B"]}

    def shown(format_):
        document = json.loads(berth.ok("system", "df", "-v", "--format", format_))
        for row in document["Containers"]:
            assert row.pop("RunningFor") and row.pop("Status")  # seconds pass
        return document

    all_ = shown("json")
    assert all_ == shown("{{json .}}")
    by_tag = {row["Tag"]: row for row in all_["Images"]}
    assert by_tag["1"]["UniqueSize"] == "5kB" and by_tag["2"]["UniqueSize"] == "0B"
    assert by_tag["1"]["SharedSize"] == by_tag["2"]["SharedSize"] == by_tag["2"]["Size"]
    assert (by_tag["1"]["Containers"], by_tag["2"]["Containers"]) == ("1", "0")
    [idle] = all_["Containers"]
    assert idle["Names"] == "idle" and idle["LocalVolumes"] == "1" and len(idle["ID"]) == 64
    assert idle["Size"].startswith("4B (virtual ")
    assert {volume["Name"] for volume in all_["Volumes"]} == {"cargo", "spare"}
    assert all_["BuildCache"] == []
    assert berth.ok("system", "df", "-v", "--format",
                    "{{range .Images}}{{.Tag}} {{end}}").split() in (["1", "2"], ["2", "1"])
    assert berth.fail("system", "df", "-v", "--format", "nonsense", status=1)
