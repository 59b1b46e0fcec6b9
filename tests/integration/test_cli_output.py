# SPDX-License-Identifier: Apache-2.0
"""What people and programs see: progress on terminals and pipes, tables, JSON, prompts."""

import json
import re
import signal
import subprocess

import pytest
from support import images
from support.bundle import PROGRAMS


@pytest.mark.profiles("root")
def test_no_program_loads_more_than_it_needs():
    def libraries(program):
        out = subprocess.run(["readelf", "--dynamic", PROGRAMS / program], check=True,
                             capture_output=True, text=True).stdout
        return re.findall(r"\(NEEDED\).*\[(\S+)\]", out)
    for program in ("berth", "berth-runtime", "berth-monitor"):
        assert libraries(program) == [], program
    assert set(libraries("berth-gpu-probe")) <= {"libc.so.6", "libm.so.6",
                                                 "ld-linux-x86-64.so.2"}


def last_screen(text):
    """The lines that a terminal shows in the end; enough of one for our own sequences."""
    lines, row = [""], 0
    for part in re.split(r"(\x1b\[\d*[AJK]|\r|\n)", text):
        if part == "\n":
            row += 1
            while len(lines) <= row:
                lines.append("")
        elif part == "\r" or part == "\x1b[K":
            continue
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1])
        elif part == "\x1b[J":
            del lines[row:]
            lines.append("")
        elif part:
            lines[row] = part
    return lines


@pytest.fixture
def two_layers(registry):
    image = images.build([images.busybox_layer(), images.layer([images.file("data", b"x" * 99999)])],
                         {"Cmd": ["/bin/sh"]})
    image.push(registry, "two")
    return f"{registry.address}/two:latest", image


def test_a_pull_on_a_pipe_prints_plain_lines_and_dockers_last_ones(berth, two_layers):
    reference, image = two_layers
    lines = berth.ok("pull", reference).splitlines()
    assert lines[0] == "latest: Pulling from two"
    assert sorted(line[12:] for line in lines[1:5]) == [
        ": Pull complete", ": Pull complete", ": Pulling fs layer", ": Pulling fs layer"]
    assert lines[5:] == [f"Digest: {image.digest}",
                         f"Status: Downloaded newer image for {reference}", reference]
    assert berth.ok("pull", reference).splitlines()[1:] == [
        f"Digest: {image.digest}", f"Status: Image is up to date for {reference}", reference]


def test_a_quiet_pull_prints_the_reference_alone(berth, two_layers):
    reference, _ = two_layers
    done = berth.run("pull", "--quiet", reference)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{reference}\n", "")


def test_a_pull_on_a_terminal_draws_a_line_per_layer_and_one_for_all(berth, two_layers):
    reference, _ = two_layers
    terminal = berth.terminal("pull", reference, columns=100)
    assert terminal.wait() == 0
    screen = last_screen(terminal.output)
    assert screen[0] == "latest: Pulling from two"
    assert sorted(line[12:] for line in screen[1:3]) == [": Pull complete"] * 2
    assert re.fullmatch(r"Total 2/2 layers +\[=+\]  (.+)/\1", screen[3]), screen
    assert screen[4].startswith("Digest: sha256:")


def test_lines_of_a_narrow_terminal_are_never_wider_than_it(berth, two_layers):
    reference, _ = two_layers
    terminal = berth.terminal("pull", reference, columns=30)
    assert terminal.wait() == 0
    bars = [line for line in re.split(r"[\r\n]|\x1b\[\d*[AJK]", terminal.output)
            if re.match(r"[0-9a-f]{12}:|Total", line)]
    assert len(bars) >= 3
    assert max(map(len, bars)) < 30


def test_run_shows_the_progress_of_its_pull_on_stderr(berth, two_layers):
    reference, _ = two_layers
    done = berth.run("run", "--rm", reference, "echo", "hello")
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert "Pull complete" in done.stderr
    done = berth.run("run", "--rm", "--quiet", "--pull", "always", reference, "true")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_an_interrupted_pull_ends_at_once_and_leaves_a_usable_store(berth, two_layers):
    reference, _ = two_layers
    pull = berth.spawn("pull", reference)
    pull.send_signal(signal.SIGINT)
    pull.communicate(timeout=10)
    assert pull.returncode in (0, -signal.SIGINT)
    berth.ok("pull", reference)


def test_images_are_listed_for_people_and_for_programs(berth, two_layers):
    reference, image = two_layers
    berth.ok("pull", "--quiet", reference)
    repository = reference.removesuffix(":latest")
    title, row = berth.ok("images").splitlines()
    assert title.split() == ["REPOSITORY", "TAG", "IMAGE", "ID", "CREATED", "SIZE"]
    assert row.split()[:3] == [repository, "latest", image.id.removeprefix("sha256:")[:12]]
    assert title.index("TAG") == row.index("latest")
    assert berth.ok("images", "-q") == image.id.removeprefix("sha256:")[:12] + "\n"
    assert berth.ok("images", "-q", "--no-trunc") == f"{image.id}\n"
    assert berth.ok("images", "-q", "other") == ""
    listed = json.loads(berth.ok("images", "--format", "json", "--no-trunc"))
    assert listed["ID"] == image.id
    assert listed["Digest"] == image.digest
    assert (listed["Repository"], listed["Tag"]) == (repository, "latest")


def test_rmi_names_what_it_took_away(berth, two_layers):
    reference, image = two_layers
    berth.ok("pull", "--quiet", reference)
    lines = berth.ok("rmi", reference).splitlines()
    assert lines[0] == f"Untagged: {reference}"
    assert f"Deleted: {image.id}" in lines
    assert berth.ok("images").splitlines()[1:] == []


def test_inspect_prints_an_array_as_docker_does(berth, two_layers):
    reference, image = two_layers
    berth.ok("pull", "--quiet", reference)
    done = berth.run("inspect", reference, "nothing")
    assert done.returncode == 1
    assert [found["Id"] for found in json.loads(done.stdout)] == [image.id]
    assert done.stderr == ("berth: no such object: nothing; "
                           "try: berth ps --all, berth images, berth network ls, berth volume ls\n")


def test_history_shows_the_newest_step_first(berth, two_layers):
    reference, image = two_layers
    berth.ok("pull", "--quiet", reference)
    lines = berth.ok("history", "--no-trunc", "--format", "json", reference).splitlines()
    steps = [json.loads(line) for line in lines]
    assert steps[0]["ID"] == image.id
    assert steps[1]["ID"] == "<missing>"
    assert len(berth.ok("history", reference).splitlines()) == 1 + len(steps)


def test_save_does_not_write_to_a_terminal(berth, two_layers):
    reference, _ = two_layers
    berth.ok("pull", "--quiet", reference)
    terminal = berth.terminal("save", reference)
    assert terminal.wait() == 1
    assert terminal.output == ("berth: cannot write an archive to a terminal; "
                               "try: berth save --output FILE IMAGE\r\n")


def test_a_dry_run_says_the_steps_and_starts_nothing(berth, two_layers):
    reference, _ = two_layers
    berth.ok("pull", "--quiet", reference)
    plan = json.loads(berth.ok("run", "--dry-run", "--format", "json", reference, "true"))
    assert plan["steps"][-1]["name"] == "execute"
    assert all(set(step) == {"name", "text", "members"} for step in plan["steps"])
    text = berth.ok("run", "--dry-run", reference, "true").splitlines()
    assert len(text) == len(plan["steps"])
    assert text[-1].split(maxsplit=1)[0] == str(len(text))
    assert berth.ok("ps", "--all", "--quiet") == ""


@pytest.mark.profiles("root")
def test_a_password_is_not_shown_and_ctrl_c_at_its_prompt_ends_the_login(berth, start_registry):
    registry = start_registry(users={"me": "secret"})
    terminal = berth.terminal("login", "--username", "me", registry.address)
    terminal.expect("Password: ")
    terminal.send("secret\n")
    assert terminal.wait() == 0
    assert "secret" not in terminal.output
    assert terminal.output.endswith("Login Succeeded\r\n")

    terminal = berth.terminal("login", "--username", "me", registry.address)
    terminal.expect("Password: ")
    terminal.send("sec\x03")
    assert terminal.wait() == 1
    assert terminal.output == "\r\nberth: read '/dev/tty': Ctrl-C\r\n"


@pytest.mark.profiles("root")
def test_a_password_in_the_command_line_is_warned_of(berth, start_registry):
    registry = start_registry(users={"me": "secret"})
    done = berth.run("login", "-u", "me", "-p", "secret", registry.address)
    assert (done.returncode, done.stdout) == (0, "Login Succeeded\n")
    assert done.stderr == ("berth: warning: --password: every user of the machine can read the "
                           "command line; try: --password-stdin\n")
    assert berth.ok("login", "-u", "me", "--password-stdin", registry.address,
                    input="secret\n") == "Login Succeeded\n"


def test_gpus_are_listed_and_a_synthetic_tree_says_so_in_every_form(berth, driver_tree):
    tree = driver_tree("eight")
    listing = berth.ok("--driver-root", tree, "gpu", "list").splitlines()
    assert listing[0].split() == ["INDEX", "UUID", "PCI", "ADDRESS", "MODEL", "COMPUTE", "MEMORY",
                                  "DRIVER", "CUDA", "NUMA", "NODES"]
    assert [row.split()[0] for row in listing[1:9]] == list("01234567")
    assert listing[9] == f"synthetic: read from '{tree}', made for tests"
    found = json.loads(berth.ok("--driver-root", tree, "gpu", "list", "--format", "json"))
    assert found["synthetic"] is True
    uuids = [gpu["uuid"] for gpu in found["gpus"]]
    done = berth.run("gpu", "list", "-q", env={"BERTH_DRIVER_ROOT": str(tree)})
    assert done.stdout.splitlines() == uuids
    assert listing[9] in done.stderr


def test_a_driver_root_that_is_not_there_is_an_error(berth):
    assert berth.fail("--driver-root", "/nowhere", "gpu", "list", status=1) == (
        "berth: cannot read the driver root '/nowhere': open '/nowhere': "
        "No such file or directory")


# Clears the screen, retitles the window, and is an 8-bit control of the same kind.
HOSTILE = "\x1b[2J\x1b]0;mine\x07 \x9b2J\x7f end"
COLOURS = re.compile(r"\x1b\[[0-9;]*[mKJAH]|\r\n|\t")


@pytest.mark.profiles("root")
@pytest.mark.parametrize("words", (
    ("history", "--no-trunc", "IMAGE"), ("history", "--format", "{{.CreatedBy}} {{.Comment}}", "IMAGE"),
    ("inspect", "IMAGE"), ("inspect", "--format", "{{.Config.Labels.evil}} {{.Author}}", "IMAGE"),
    ("inspect", "--format", "{{json .Config}}", "IMAGE"), ("explain", "IMAGE"),
    ("images", "--format", "{{json .}}"), ("ps", "-a", "--no-trunc"),
    ("ps", "-a", "--no-trunc", "--format", "{{.Command}} {{.Labels}}"), ("inspect", "tug"),
    ("inspect", "--format", "{{.Args}} {{.Config.Labels.evil}}", "tug"), ("start", "-a", "tug"),
    ("events", "--since", "1h", "--until", "0s"), ("run", "--dry-run", "IMAGE")),
    ids=lambda words: " ".join(words[:3]))
def test_nothing_that_an_image_says_reaches_a_terminal_as_a_command(berth, push, words):
    """In tables, templates, JSON, errors: what moves a cursor or paints is our own alone."""
    image = push(images.build(
        [images.busybox_layer()],
        {"Cmd": [HOSTILE], "Labels": {"evil": HOSTILE}, "Env": [f"EVIL={HOSTILE}"],
         "User": HOSTILE if words[0] == "explain" else "", "StopSignal": HOSTILE},
        history=[{"created": "2026-01-02T03:04:05Z", "created_by": HOSTILE, "comment": HOSTILE}]))
    berth.ok("pull", "-q", image)
    berth.run("create", "--name", "tug", image)
    terminal = berth.terminal(*[image if word == "IMAGE" else word for word in words], columns=200)
    terminal.wait()
    assert terminal.output.strip()
    shown = COLOURS.sub("", terminal.output)
    assert not [c for c in shown if ord(c) < 32 and c != "\n" or 0x7F <= ord(c) < 0xA0], shown
    assert "\x1b[2J" not in terminal.output
    berth.run("rm", "-f", "tug")


def test_a_pipe_gets_a_template_as_it_is(berth, push):
    image = push(images.build([images.busybox_layer()], {"Labels": {"odd": HOSTILE}}))
    berth.ok("pull", "-q", image)
    assert berth.ok("inspect", "--format", "{{.Config.Labels.odd}}", image) == HOSTILE + "\n"
