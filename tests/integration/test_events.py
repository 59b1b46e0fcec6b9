# SPDX-License-Identifier: Apache-2.0
"""What `berth events` tells: docker's words, in docker's order, by whoever does it."""

import json
import re
import signal
import time

import pytest

LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(?:Z|[+-]\d\d:\d\d) (\w+) (.+?) (\S+)"
                  r"(?: \((.*)\))?$")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def past(berth, *flags):
    """Everything so far, in the default form, as (type, action, id, {attribute: value})."""
    found = []
    for line in berth.ok("events", "--until", "0s", *flags).splitlines():
        kind, action, identity, attributes = LINE.fullmatch(line).groups()
        pairs = dict(pair.split("=", 1) for pair in (attributes or "").split(", ") if pair)
        found.append((kind, action, identity, pairs))
    return found


def actions(berth, *flags):
    return [action for _, action, _, _ in past(berth, *flags)]


def wait_for(berth, action, *flags):
    end = time.monotonic() + 10
    while action not in actions(berth, *flags):
        assert time.monotonic() < end, action
        time.sleep(0.05)


def test_a_life_in_front_is_told_in_order_with_image_name_and_labels(berth, image):
    berth.run("run", "--rm", "--name", "tug", "--label", "berth=7", image, "sh", "-c", "exit 3")
    told = past(berth, "--filter", "container=tug")
    assert [action for _, action, _, _ in told] == ["create", "attach", "start", "die", "destroy"]
    for kind, _, identity, attributes in told:
        assert kind == "container" and len(identity) == 64
        assert (attributes["name"], attributes["image"], attributes["berth"]) == ("tug", image, "7")
    assert [a["exitCode"] for _, action, _, a in told if action == "die"] == ["3"]


def test_a_life_with_a_monitor_is_told_by_it_and_by_the_verbs(berth, image):
    berth.ok("run", "-d", "--name", "tug", image, "sleep", "100")
    berth.run("exec", "tug", "sh", "-c", "exit 4")
    paused = []
    if berth.run("pause", "tug").returncode == 0:  # not without a freezer
        berth.ok("unpause", "tug")
        paused = ["pause", "unpause"]
    berth.ok("rename", "tug", "ferry")
    berth.ok("restart", "-t", "0", "ferry")
    berth.ok("stop", "-t", "0", "ferry")
    berth.ok("rm", "ferry")
    told = past(berth, "--filter", "type=container")
    assert [action for _, action, _, _ in told] == [
        "create", "start", "exec_create: sh -c exit 4", "exec_start: sh -c exit 4", "exec_die",
        *paused, "rename", "kill", "kill", "die", "stop", "start", "restart",
        "kill", "kill", "die", "stop", "destroy"]
    by_action = {action: attributes for _, action, _, attributes in told}
    assert by_action["exec_die"]["exitCode"] == "4"
    assert by_action["exec_die"]["execID"] == by_action["exec_start: sh -c exit 4"]["execID"]
    assert by_action["rename"]["oldName"] == "tug" and by_action["rename"]["name"] == "ferry"
    assert by_action["destroy"]["name"] == "ferry"
    assert [a["signal"] for _, action, _, a in told if action == "kill"] == ["15", "9"] * 2


def test_the_monitor_tells_restarts_and_removes(berth, image):
    berth.ok("run", "-d", "--name", "tug", "--restart", "on-failure:1", image, "false")
    wait_for(berth, "die")
    berth.ok("wait", "tug")
    assert actions(berth, "--filter", "container=tug") == ["create", "start", "die", "start", "die"]
    berth.ok("run", "-d", "--rm", "--name", "dinghy", image, "true")
    wait_for(berth, "destroy")
    assert actions(berth, "--filter", "container=dinghy") == ["create", "start", "die", "destroy"]


def test_health_is_told_when_it_changes(berth, image):
    berth.ok("run", "-d", "--name", "tug", "--health-cmd", "true", "--health-interval", "100ms",
             image, "sleep", "100")
    wait_for(berth, "health_status: healthy")
    assert actions(berth, "--filter", "event=health_status") == ["health_status: healthy"]
    berth.ok("rm", "-f", "tug")


def test_images_and_volumes_are_told(berth, image):
    berth.ok("tag", image, "other:1")
    berth.ok("rmi", "other:1")
    berth.ok("volume", "create", "hold")
    berth.ok("volume", "rm", "hold")
    assert [(kind, action) for kind, action, _, _ in past(berth)] == [
        ("image", "pull"), ("image", "tag"), ("image", "untag"),
        ("volume", "create"), ("volume", "destroy")]
    assert actions(berth, "--filter", "volume=hold") == ["create", "destroy"]
    assert actions(berth, "--filter", f"image={image}", "--filter", "event=pull") == ["pull"]


def test_events_are_shown_as_they_come(berth, image):
    follower = berth.spawn("events", "--filter", "event=start", "--format",
                           "{{.Type}} {{.Action}} {{.Actor.Attributes.name}} {{.From}}")
    time.sleep(0.3)
    berth.ok("run", "--rm", "--name", "tug", image, "true")
    assert follower.stdout.readline() == f"container start tug {image}\n"
    follower.send_signal(signal.SIGINT)
    follower.wait(timeout=10)


def test_without_a_time_only_what_comes_is_shown(berth, image):
    berth.ok("run", "--rm", image, "true")
    follower = berth.spawn("events", "--format", "{{.Action}}")
    time.sleep(0.3)
    berth.ok("volume", "create", "hold")
    assert follower.stdout.readline() == "create\n"
    follower.kill()
    follower.wait(timeout=10)


def test_until_ends_it_and_since_begins_it(berth, image):
    berth.ok("volume", "create", "early")
    time.sleep(1.1)
    berth.ok("volume", "create", "late")
    names = [identity for _, _, identity, _ in past(berth, "--since", "1s")]
    assert names == ["late"]
    begun = time.monotonic()
    soon = f"{time.time() + 1:.3f}"
    assert berth.ok("events", "--until", soon).count("volume create") == 2
    assert 0.5 < time.monotonic() - begun < 8


def test_json_has_dockers_members(berth, image):
    berth.ok("run", "--rm", "--name", "tug", image, "true")
    for form in ("json", "{{json .}}"):
        lines = berth.ok("events", "--until", "0s", "--filter", "event=die",
                         "--format", form).splitlines()
        event = json.loads(lines[0])
        assert list(event) == ["status", "id", "from", "Type", "Action", "Actor", "scope", "time",
                               "timeNano"]
        assert event["Actor"]["Attributes"] == {"exitCode": "0", "image": image, "name": "tug"}
        assert event["timeNano"] // 10**9 == event["time"]


@pytest.mark.parametrize("flags,words", [
    (["--filter", "colour=red"], "invalid filter 'colour'"),
    (["--since", "yesterday"], "expected a time"),
    (["--format", "{{.Colour}}", "--since", "1h", "--until", "0s"], "Colour"),
    (["--format", "{{"], "template"),
])
def test_bad_words_are_one_line(berth, image, flags, words):
    done = berth.run("events", *flags)
    assert done.returncode != 0 and done.stdout == ""
    assert words in done.stderr and done.stderr.count("\n") == 1


def test_a_hostile_label_cannot_write_on_the_terminal(berth, image):
    berth.ok("run", "--rm", "--label", "x=\x1b[2Jboo\nfake line", image, "true")
    text = berth.ok("events", "--until", "0s", "--filter", "event=create")
    assert "\x1b" not in text and text.count("\n") == 1
