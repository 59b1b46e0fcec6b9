# SPDX-License-Identifier: Apache-2.0
"""What a container wrote: diff, and commit, which makes an image of it."""

import json
import os

import pytest

SHELL = ("sh", "-c")


@pytest.fixture(autouse=True)
def image(berth, busybox):
    berth.ok("pull", "--quiet", busybox)
    return busybox


def ran(berth, image, script, *flags, name="hold"):
    berth.ok("run", "--name", name, *flags, image, *SHELL, script)
    return name


# ---- diff ---------------------------------------------------------------------------------------

def test_diff_shows_what_was_added_changed_and_deleted(berth, image):
    berth.ok("run", "--name", "first", image, *SHELL,
             "mkdir -p /d/keep /d/sub; echo 1 > /d/old; echo 1 > /d/sub/a; echo 1 > /changed; "
             "echo 1 > /gone")
    base = berth.ok("commit", "first", "base:1").strip()
    ran(berth, base, "rm /gone; echo 2 > /changed; echo 1 > /d/new; echo 2 > /d/old; "
                     "rm -r /d/sub; mkdir /d/sub; echo 1 > /d/sub/b; mkdir /fresh; touch /fresh/x")
    lines = berth.ok("diff", "hold").splitlines()
    assert [line for line in lines if line.split()[1].startswith(("/d", "/changed", "/gone",
                                                                  "/fresh"))] == [
        "C /changed", "C /d", "A /d/new", "C /d/old", "C /d/sub", "D /d/sub/a", "A /d/sub/b",
        "A /fresh", "A /fresh/x", "D /gone"]
    berth.ok("rm", "first", "hold")
    berth.ok("rmi", "base:1")


def test_diff_of_a_container_that_wrote_nothing_is_empty(berth, image):
    berth.ok("create", "--name", "hold", image, "true")
    assert berth.ok("diff", "hold") == ""
    berth.ok("rm", "hold")


def test_diff_and_commit_name_what_is_no_container(berth):
    for words in (("diff", "nobody"), ("commit", "nobody"), ("export", "nobody")):
        line = berth.fail(*words, status=1)
        assert line.startswith("berth: no such container: nobody"), line


# ---- commit -------------------------------------------------------------------------------------

def test_commit_keeps_files_deletions_and_what_was_asked(berth, image):
    ran(berth, image, "echo tea > /cargo; rm /bin/cat 2>/dev/null || true; mkdir /etc/d; "
                      "chmod 700 /etc/d", "-e", "A=b", "--label", "kind=x", "-w", "/tmp")
    out = berth.ok("commit", "-a", "me", "-m", "why", "hold", "mine:1")
    assert out.startswith("sha256:") and len(out) == 72
    document = json.loads(berth.ok("inspect", "--type", "image", "mine:1"))[0]
    assert document["Id"] == out.strip() and document["Author"] == "me"
    assert "A=b" in document["Config"]["Env"] and document["Config"]["WorkingDir"] == "/tmp"
    assert document["Config"]["Labels"]["kind"] == "x"
    assert "why" in berth.ok("history", "mine:1")
    assert berth.ok("run", "--rm", "mine:1", *SHELL,
                    "read x < /cargo; echo $x $A; stat -c %a /etc/d; "
                    "[ -e /bin/cat ] || echo no cat").splitlines()[:2] == ["tea b", "700"]
    berth.ok("rm", "hold")
    berth.ok("rmi", "mine:1")


def test_commit_of_a_deletion_hides_the_file_of_the_image(berth, image):
    ran(berth, image, "echo 1 > /a; mkdir /d; echo 1 > /d/x")
    berth.ok("commit", "hold", "below:1")
    ran(berth, "below:1", "rm /a; rm -r /d; mkdir /d; echo 2 > /d/y", name="second")
    berth.ok("commit", "second", "above:1")
    assert berth.ok("run", "--rm", "above:1", *SHELL,
                    "ls /a 2>/dev/null; ls /d") == "y\n"
    berth.ok("rm", "hold", "second")
    berth.ok("rmi", "above:1", "below:1")


def test_commit_applies_changes_as_import_does(berth, image):
    ran(berth, image, "true")
    berth.ok("commit", "-c", 'CMD ["echo", "set sail"]', "-c", "ENV PORT=1", "-c", "EXPOSE 80",
             "-c", "USER 0", "-c", "VOLUME /v", "hold", "mine:1")
    config = json.loads(berth.ok("inspect", "--type", "image", "mine:1"))[0]["Config"]
    assert config["Cmd"] == ["echo", "set sail"] and "PORT=1" in config["Env"]
    assert "80/tcp" in config["ExposedPorts"] and "/v" in config["Volumes"]
    done = berth.run("commit", "-c", "RUN true", "hold", "bad:1")
    assert done.returncode == 1 and "bad:1" not in berth.ok("images")
    berth.ok("rm", "hold")
    berth.ok("rmi", "mine:1")


def test_commit_of_a_running_container_lets_it_go_on(berth, image):
    berth.ok("run", "-d", "--name", "live", image, "sleep", "600")
    made = berth.ok("commit", "-m", "first", "live").strip()
    state = json.loads(berth.ok("inspect", "live"))[0]["State"]
    assert state["Status"] == "running"
    other = berth.ok("commit", "--pause=false", "live", "live:2").strip()
    assert made.startswith("sha256:") and other.startswith("sha256:")
    berth.ok("rm", "-f", "live")
    berth.ok("rmi", "live:2", made)


@pytest.mark.profiles("root")
def test_marks_of_an_overlay_inside_of_the_container_are_its_own(berth, image):
    """An engine in a container of root's keeps its layers with marks of users."""
    berth.ok("run", "-d", "--name", "nest", image, "sh", "-c", "mkdir /in; sleep 600")
    pid = berth.ok("inspect", "--format", "{{.State.Pid}}", "nest").strip()
    for name in ("opaque", "redirect"):
        os.setxattr(f"/proc/{pid}/root/bin", f"user.overlay.{name}", b"y")
    assert "D /bin" not in berth.ok("diff", "nest")
    berth.ok("commit", "nest", "nested")
    assert berth.ok("run", "--rm", "nested", "echo", "there") == "there\n"
    berth.ok("rm", "-f", "nest")
