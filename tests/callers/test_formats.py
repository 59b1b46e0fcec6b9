# SPDX-License-Identifier: Apache-2.0
"""--format and --filter of berth's lists against those of Debian's docker, on the same containers of
the same image."""

import json
import re
import subprocess
import time

import pytest

from support import callers
from support.bundle import PROGRAMS

DOCKER = "/usr/bin/docker"
IMAGE = "localhost/boat:1"


class Engine:
    """One of the two, with two containers: 'one' has ended with 3, 'two' with 0."""

    def __init__(self, argv, run_flags):
        self.argv, self.run_flags = argv, run_flags

    def call(self, *words):
        return subprocess.run([*map(str, self.argv), *words], capture_output=True, text=True,
                              check=False, timeout=60)

    def ok(self, *words):
        done = self.call(*words)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def fill(self):
        common = [*self.run_flags, "--network", "none", "--label", "crew=3", "--label", "own="]
        # One -e: docker's client gives several of them an order by chance.
        self.call("run", "--name", "one", *common, "-e", "SAIL=red", "-w", "/etc",
                  "--hostname", "pier", "-m", "64m", "--read-only", "-u", "1000:1000",
                  "--cap-drop", "ALL", "--cap-add", "NET_BIND_SERVICE", "--stop-signal", "USR1",
                  "-v", "/etc:/hold:ro", "--tmpfs", "/scratch", "--restart", "no",
                  "--security-opt", "no-new-privileges", "--add-host", "buoy:10.0.0.1",
                  "--dns", "10.0.0.2", "--ulimit", "nofile=64:128", "--pids-limit", "50",
                  "--cpus", "0.5", "--shm-size", "8m", IMAGE, "sh", "-c", "echo 'a b c'; exit 3")
        time.sleep(0.1)
        self.call("run", "--name", "two", *common, IMAGE, "true")

    def text(self, *words):
        """What is printed, without what differs between any two engines."""
        done = self.call(*words)
        text = re.sub(r"[0-9a-f]{64}|[0-9a-f]{12}", "ID", done.stdout)
        text = re.sub(r"(Less than a second|About a minute|\d+ seconds?|\d+ minutes?)", "TIME", text)
        text = re.sub(r"\d{4}-\d\d-\d\d[ T][\d:.]+( [+-]\d{4} \w+|Z)", "WHEN", text)
        return done.returncode, re.sub(r" +", " ", text)


@pytest.fixture(scope="module")
def both(started, session_directory):
    docker = started("docker")
    client = [DOCKER, *docker.client[1:]]
    version = subprocess.run([DOCKER, "--version"], capture_output=True, text=True, check=True)
    if " 20.10." not in version.stdout:
        pytest.skip(f"{version.stdout.strip()} is not 20.10")
    place = session_directory / "lists"
    place.mkdir()
    ours = Engine([PROGRAMS / "berth", "--root", place / "root", "--state", place / "state"], [])
    theirs = Engine([*docker.inside, *client], ["--runtime", "tested"])
    changes = ("LABEL kind=boat crew=2", "ENV SAIL=white", "ENV EMPTY=", "WORKDIR /tmp",
               "EXPOSE 80 81/udp", 'CMD ["sh"]')
    theirs.ok("import", *(word for change in changes for word in ("-c", change)),
              str(callers.busybox_tar(place)), IMAGE)
    theirs.ok("save", "-o", str(place / "image.tar"), IMAGE)
    ours.ok("load", "-i", str(place / "image.tar"))
    for engine in (theirs, ours):
        engine.fill()
    yield theirs, ours
    for engine in (theirs, ours):
        engine.call("rm", "-f", "one", "two")


def compare(both, cases):
    theirs, ours = both
    different = {}
    for case in cases:
        wanted, got = theirs.text(*case), ours.text(*case)
        if wanted != got:
            different[case] = {"docker": wanted, "berth": got}
    assert not different, "\n".join(f"{case}: {texts}" for case, texts in different.items())


PS_TEMPLATES = [
    "{{.Names}}", "table {{.Names}}\\t{{.Image}}", "{{.Image}}|{{.Command}}|{{.State}}|{{.Ports}}",
    "{{.ID}}\\t{{.Names}}\\n", "{{upper .Names}}{{lower .State}}", "{{json .Names}}",
    "{{.Label \"kind\"}} {{.Label \"none\"}}", "table {{.Label \"com.kind-of\"}}\\t{{.Names}}",
    "{{if eq .Names \"one\"}}first{{else}}other{{end}}", "{{.Status}}", "{{.RunningFor}}",
    "table {{.ID}}\\t{{.Status}}\\t{{upper .Names}} {{json .Image}}", "{{len .Names}}",
    "{{printf \"%-10s|%5s|%q\" .Names .State .Names}}", "{{pad .Names 1 2}}|{{truncate .ID 3 | len}}",
    "{{range split .Names \"n\"}}<{{.}}>{{end}}", "{{$x := .Names}}{{with $x}}{{.}}{{end}}",
    "{{- .Names -}}  x", "{{/* nothing */}}{{.Names}}", "{{title .State}} {{println .Names}}",
    "{{and .Names .Ports}}|{{or .Ports .Names}}|{{not .Ports}}", "{{.CreatedAt}}",
    "{{eq .Names \"one\" \"two\"}}{{ne 1 2}}{{lt 1 2}}{{ge \"b\" \"a\"}}", "{{print 1 2 .Names 3}}",
    "{{'a'}} {{0x10}} {{1e3}} {{1.50}} {{true}} {{`raw`}} {{\"\\u00e9\"}}",
]
INSPECT_TEMPLATES = [
    "{{.Name}} {{.Path}} {{.Args}}", "{{.State.Status}} {{.State.ExitCode}} {{.State.Running}}",
    "{{json .Config.Env}}", "{{.Config.Env}}", "{{json .Config.Labels}}", "{{.Config.Labels}}",
    "{{index .Config.Labels \"kind\"}}|{{index .Config.Labels \"none\"}}|{{.Config.Labels.none}}",
    "{{range $k, $v := .Config.Labels}}{{$k}}={{$v}};{{end}}", "{{.Config.Hostname}}",
    "{{range .Config.Env}}{{println .}}{{end}}", "{{.Config.WorkingDir}} {{.Config.Image}}",
    "{{.HostConfig.Memory}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.NetworkMode}}",
    "{{.HostConfig.RestartPolicy.Name}} {{.HostConfig.AutoRemove}} {{.HostConfig.ShmSize}}",
    "{{.HostConfig.Binds}} {{.Mounts}} {{.HostConfig.CapAdd}} {{json .HostConfig.CapDrop}}",
    "{{if .State.Health}}checked{{else}}unchecked{{end}}", "{{.State.Health}}",
    "{{.Config.Entrypoint}} {{json .Config.Cmd}} {{len .Args}}", "{{.State.OOMKilled}}",
    "{{range .Mounts}}{{.Source}}{{else}}none{{end}}", "{{.Platform}} {{.RestartCount}}",
    "{{range $n, $c := .NetworkSettings.Networks}}{{$n}}{{end}}", "{{.NetworkSettings.IPAddress}}",
    "{{.HostConfig.SecurityOpt}} {{.HostConfig.ExtraHosts}}",
    "{{json .HostConfig.Ulimits}} {{.HostConfig.PidsLimit | json}}",
    "{{json .HostConfig.Tmpfs}} {{.Config.User}} {{.HostConfig.ShmSize}}", "{{json .Mounts}}",
    "{{.HostConfig.Binds | json}}", "{{json .HostConfig.RestartPolicy}}", "{{json .Config.Env}}",
    "{{.Id}}\\n", "{{.Config.Volumes}}|{{json .Config.Volumes}}",
    "{{with .State}}{{.Pid}} {{$.Name}}{{end}}", "{{.HostConfig.Devices}}",
    "{{.State.FinishedAt}} {{.Created}}", "{{.HostConfig.LogConfig}}", "{{.GraphDriver.Name | len}}",
]
IMAGE_TEMPLATES = [
    "{{.Id}}", "{{.RepoTags}}", "{{json .RepoTags}}", "{{.Os}}/{{.Architecture}}",
    "{{json .Config.Cmd}} {{.Config.User}} {{.Config.Labels}}", "{{.Config.ExposedPorts}}",
    "{{len .RootFS.Layers}} {{.RootFS.Type}}", "{{.Parent}}|{{.Author}}",
]


def test_ps_templates_give_what_docker_prints(both):
    compare(both, [("ps", "-a", "--format", template) for template in PS_TEMPLATES])


def test_inspect_templates_give_what_docker_prints(both):
    compare(both, [("inspect", "-f", template, name)
                   for template in INSPECT_TEMPLATES if "GraphDriver" not in template
                   for name in ("one", "two")])


def test_image_templates_give_what_docker_prints(both):
    compare(both, [("inspect", "--type", "image", "-f", template, IMAGE)
                   for template in IMAGE_TEMPLATES])
    compare(both, [("images", "localhost/boat", "--format", template) for template in (
        "{{.Repository}}:{{.Tag}} {{.ID}}", "table {{.Repository}}\\t{{.Tag}}",
        "{{.Containers}} {{.SharedSize}} {{.UniqueSize}}", "{{upper .Tag}}")])


def test_tables_and_quiet_lists_are_dockers_to_the_blank(both):
    theirs, ours = both
    for words in (("ps", "-a"), ("ps",), ("ps", "-aq"), ("images", "-q", IMAGE), ("ps", "-n", "1"),
                  ("ps", "-l"), ("ps", "-a", "--format", "table"), ("ps", "-aq", "--format", "raw")):
        assert theirs.text(*words) == ours.text(*words), words


def test_filters_choose_what_docker_chooses(both):
    compare(both, [("ps", "-a", "--format", "{{.Names}}", "--filter", text) for text in (
        "name=o", "name=^/one$", "name=^two", "exited=3", "exited=0", "status=exited",
        "status=running", "label=kind", "label=kind=boat", "label=kind=car", "label=none",
        "before=two", "since=one", f"ancestor={IMAGE}", "network=none", "network=host", "label=own", "label=crew=3", "volume=/hold", "volume=/etc",
        "volume=/none", "health=none", "is-task=false")])
    compare(both, [("images", "*/boat", "--format", "{{.Tag}}", "--filter", text) for text in (
        "dangling=true", "dangling=false", f"reference={IMAGE}", "reference=none*", "label=none")])


@pytest.mark.parametrize("words", [
    ("ps", "-a", "--format", "{{.Nowhere}}"), ("ps", "-a", "--format", "{{.ID"),
    ("ps", "-a", "--format", "{{nofunction .ID}}"), ("ps", "--filter", "nokey=1"),
    ("ps", "--filter", "status=nostate"), ("ps", "--filter", "nofilter"),
    ("ps", "--filter", "before=nobody"), ("inspect", "nobody"), ("inspect", "-f", "{{.Id", "one"),
    ("inspect", "-f", "{{.Nowhere}}", "one"), ("inspect", "-f", "{{.State.Health.Status}}", "one"),
    ("inspect", "-f", "{{.Name}}", "nobody", "one"), ("inspect", "--type", "image", "one"),
    ("images", "--filter", "nokey=1"), ("images", "--filter", "since=none"), ("inspect",),
    ("images", "--format", "{{.Nowhere}}"), ("ps", "more"), ("images", "a", "b"), ("ps", "--nof"),
])
def test_what_is_wrong_gives_dockers_status_and_output(both, words):
    theirs, ours = both
    assert ours.text(*words) == theirs.text(*words)
    assert ours.call(*words).stderr.startswith("berth: ")
    assert len(ours.call(*words).stderr.splitlines()) == 1


def paths(value, prefix=""):
    """Every member of a document: 'State.Pid'; what hangs on names of its own is left out."""
    for name, part in value.items():
        yield prefix + name
        if isinstance(part, dict) and name not in ("Labels", "Networks", "Ports", "Data"):
            yield from paths(part, f"{prefix}{name}.")


def test_inspect_has_every_member_of_dockers_document_in_its_order(both):
    theirs, ours = (json.loads(engine.ok("inspect", "one"))[0] for engine in both)
    mine = list(paths(ours))
    assert [path for path in paths(theirs) if path not in mine] == []
    assert [path for path in mine if path in set(paths(theirs))] == list(paths(theirs))
    theirs, ours = (json.loads(engine.ok("image", "inspect", IMAGE))[0] for engine in both)
    missing = {path for path in paths(theirs) if path not in set(paths(ours))}
    assert {path.split(".")[0] for path in missing} <= {"ContainerConfig"}


def test_json_rows_have_every_member_of_dockers(both):
    theirs, ours = both
    for verb in (("ps", "-a"), ("images",), ("history", IMAGE)):
        wanted = json.loads(theirs.ok(*verb, "--format", "{{json .}}").splitlines()[0])
        got = json.loads(ours.ok(*verb, "--format", "{{json .}}").splitlines()[0])
        assert set(wanted) <= set(got), verb
