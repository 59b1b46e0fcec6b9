# SPDX-License-Identifier: Apache-2.0
"""The commands of the slides that the project comes from, typed into a shell on a real terminal
with `berth` for `docker`: the life of a container (Inukonda, "Containerized GPU", 2018), and the
namespaces and the "All In" line (Kniep, "High Performance Containers", 2018). Where a slide
contradicts Docker 20.10, Docker is right; docs/docker-compat.md lists it.
"""

import re

import pytest
from support import images
from support.berth import Terminal

DETACH = "\x10\x11"
PROMPT = "ashore> "
ROOT_PROMPT = re.compile(r"\[root@([0-9a-f]{12}) /\]# ")


@pytest.fixture
def person(berth, push):
    """Somebody with a shell, to whom images called centos and ubuntu have come."""
    files = images.layer([
        images.file("etc/redhat-release", "CentOS Linux release 7.5.1804 (Core)\n"),
        # A login-like prompt, which the slides' images have by themselves.
        images.file("bin/bash", "#!/bin/sh\nexport PS1='[\\u@\\h \\w]# '\nexec sh \"$@\"\n",
                    mode=0o755)])
    reference = push(images.build([images.busybox_layer(), files], {"Cmd": ["/bin/bash"]}))
    berth.ok("pull", "--quiet", reference)
    for name in ("centos:latest", "ubuntu:latest"):
        berth.ok("tag", reference, name)
    tools = berth.account.own(berth.directory / "tools")
    wrapper = tools / "berth"
    wrapper.write_text(f"#!/bin/sh\nexec {berth.programs}/berth --root {berth.root} "
                       f"--state {berth.state} \"$@\"\n")
    wrapper.chmod(0o755)
    terminal = Terminal(berth.account.command(["bash", "--norc", "--noprofile", "--noediting"]),
                        env=berth.account.environment(PS1=PROMPT, PATH=f"{tools}:/usr/bin:/bin"),
                        cwd=berth.directory, owner=(berth.account.uid, berth.account.gid),
                        rows=40, columns=200)
    terminal.expect(PROMPT)
    yield Person(terminal)
    terminal.close()


class Person:
    def __init__(self, terminal):
        self.terminal = terminal

    def types(self, line, until=PROMPT):
        """What the terminal shows for a line, up to the next prompt."""
        self.terminal.send(line + "\n")
        shown = self.terminal.expect(until)
        return shown.replace("\r", "").partition("\n")[2]  # behind the echo of the line

    def sees_inside(self, line, result):
        """A line for the container's shell, which may draw its prompt and the line again."""
        self.terminal.send(line + "\n")
        self.terminal.expect(result + "\r\n")
        self.terminal.expect("# ")

    def enters(self, line):
        """A line that ends in the container's shell; gives the host name of its prompt."""
        self.terminal.send(line + "\n")
        return self.terminal.expect(" /]# ").rpartition("root@")[2]


def row_of(table, name):
    """The columns of the line for container `name`."""
    header, *lines = table.rstrip("\n").split("\n")
    (line,) = [line for line in lines if line.split()[-1] == name]
    starts = [match.start() for match in re.finditer(r"(?<!\S)(?:CONTAINER ID|\S+)", header)]
    cells = [line[start:end].strip() for start, end in zip(starts, starts[1:] + [None])]
    return dict(zip(re.findall(r"CONTAINER ID|\S+", header), cells))


def test_the_life_of_a_container_as_the_slides_show_it(berth, person):
    assert re.search(r"^REPOSITORY +TAG +IMAGE ID +CREATED +SIZE\n", person.types("berth images"))
    assert re.search(r"^centos +latest +[0-9a-f]{12} ", person.types("berth images"), re.M)

    # Running a container
    first = person.enters("berth run -it --name centos1 centos:latest bash")
    person.sees_inside("cat /etc/redhat-release", "CentOS Linux release 7.5.1804 (Core)")

    # Exiting from a container without stopping
    person.terminal.send(DETACH)
    assert "read escape sequence" in person.terminal.expect(PROMPT)

    # Listing running containers
    table = person.types("berth ps")
    assert table.startswith("CONTAINER ID   IMAGE")
    row = row_of(table, "centos1")
    assert (row["CONTAINER ID"], row["IMAGE"], row["COMMAND"]) == (first, "centos:latest", '"bash"')
    assert row["STATUS"].startswith("Up ") and row["PORTS"] == ""

    # Exiting from a container after stopping
    person.terminal.send("berth attach centos1\n")
    person.terminal.send("\n")
    person.terminal.expect("]# ")
    person.types("exit")
    assert "centos1" not in person.types("berth ps")
    assert row_of(person.types("berth ps -a"), "centos1")["STATUS"].startswith("Exited (0) ")

    # Creating a container
    created = person.types("berth create --name centos2 -it centos:latest bash").strip()
    assert re.fullmatch("[0-9a-f]{64}", created)
    row = row_of(person.types("berth ps -a"), "centos2")
    assert (row["CONTAINER ID"], row["STATUS"]) == (created[:12], "Created")

    # Starting a container, the one that has ended as well
    assert person.types("berth start centos2") == "centos2\n"
    assert person.types("berth start centos1") == "centos1\n"
    table = person.types("berth ps -a")
    assert row_of(table, "centos1")["STATUS"].startswith("Up ")
    assert row_of(table, "centos2")["STATUS"].startswith("Up ")

    # Attaching to a running container
    person.terminal.send("berth attach centos2\n")
    person.terminal.send("\n")
    assert created[:12] in person.terminal.expect("]# ")
    person.sees_inside("echo sti''ll $HOSTNAME", f"still {created[:12]}")
    person.types("exit")
    person.types("berth rm -f centos1 centos2")
    assert person.types("berth ps -aq") == ""


def test_processes_are_isolated_as_the_slides_show_it(person):
    shown = person.types("berth run -ti --rm ubuntu ps -ef")
    # busybox says PID USER; the first process is the command itself.
    assert re.search(r"^ +1 root .* ps -ef$", shown, re.M), shown
    identity = person.types("berth run -d ubuntu sleep 10").strip()
    assert re.fullmatch("[0-9a-f]{64}", identity)
    shown = person.types("berth run -ti --rm --pid=host ubuntu ps -ef | grep 'sleep 10'")
    assert re.search(r"^ *\d+ .* sleep 10\s*$", shown, re.M), shown
    shown = person.types("berth exec -ti $(berth ps -ql) ps -ef")
    assert re.search(r"^ +1 root .* sleep 10$", shown, re.M), shown
    assert re.search(r"^ +\d+ root .* ps -ef$", shown, re.M), shown
    person.types("berth rm -f $(berth ps -ql)")


def test_all_in_is_almost_the_host(person, profile):
    line = ("berth run -ti --rm --privileged --security-opt=seccomp=unconfined --pid=host "
            "--uts=host --ipc=host --net=host -v /:/host ubuntu bash")
    person.terminal.send(line + "\n")
    shown = person.terminal.expect(" /]# ")
    if profile.kind == "root":
        assert "warning" not in shown
    else:
        assert "--privileged gives a rootless container what its user has" in shown
    with open("/etc/hostname", encoding="utf-8") as file:
        host_name = file.read().strip()
    person.sees_inside("cat /host/etc/hostname", host_name)
    person.terminal.send("chroot /host\n")
    person.terminal.expect("# ")
    person.sees_inside("ls /usr/lib/os-release", "/usr/lib/os-release")  # not the image's
    person.sees_inside("exit", "exit")
    person.types("exit")
    assert person.types("berth ps -aq") == ""
