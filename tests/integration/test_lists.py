# SPDX-License-Identifier: Apache-2.0
"""What ps and images list, in the forms and under the filters of docker."""

import json
import re

import pytest

from support import images

IMAGE = "boat:1"
CHILD = "boat:2"


@pytest.fixture
def store(berth, push):
    """Two images, one on top of the other, with labels."""
    base = images.busybox_layer()
    config = {"Cmd": ["true"], "Labels": {"kind": "boat", "crew": "1"}, "ExposedPorts": {"80/tcp": {}}}
    for tag, layers in ((IMAGE, [base]), (CHILD, [base, images.layer([images.file("sail", b"x")])])):
        reference = push(images.build(layers, config=config))
        berth.ok("pull", "--quiet", reference)
        berth.ok("tag", reference, tag)
        berth.ok("rmi", reference)
    return berth


@pytest.fixture
def fleet(store):
    """One that runs and two that have ended, the oldest first."""
    store.ok("run", "-d", "--name", "tug", IMAGE, "sleep", "1000")
    store.ok("run", "--name", "ferry-1", CHILD, "sh", "-c", "echo wet > /deck")
    assert store.run("run", "--name", "ferry-2", IMAGE, "sh", "-c", "exit 3").returncode == 3
    yield store
    store.ok("rm", "-f", "tug", "ferry-1", "ferry-2")


def names(berth, *flags):
    return berth.ok("ps", "--format", "{{.Names}}", *flags).split()


def test_ps_shows_what_runs_in_dockers_columns(fleet):
    title, row = fleet.ok("ps").splitlines()
    assert re.split(r"\s{3,}", title) == [
        "CONTAINER ID", "IMAGE", "COMMAND", "CREATED", "STATUS", "PORTS", "NAMES"]
    cells = re.split(r"\s{3,}", row)
    assert re.fullmatch("[0-9a-f]{12}", cells[0])
    assert cells[1:3] == [IMAGE, '"sleep 1000"']
    assert cells[4].startswith("Up ") and cells[5:] == ["80/tcp", "tug"]
    assert title.index("NAMES") == row.index("tug")


def test_ps_lists_the_newest_first(fleet):
    assert names(fleet) == ["tug"]
    assert names(fleet, "-a") == ["ferry-2", "ferry-1", "tug"]
    assert names(fleet, "-n", "2") == names(fleet, "--last=2") == ["ferry-2", "ferry-1"]
    assert names(fleet, "-l") == ["ferry-2"]
    assert names(fleet, "-n", "-1") == names(fleet, "-n", "0") == ["tug"]


def test_ps_tells_how_each_has_ended(fleet):
    lines = dict(line.split("|") for line in
                 fleet.ok("ps", "-a", "--format", "{{.Names}}|{{.State}} {{.Status}}").splitlines())
    assert lines["tug"].startswith("running Up ")
    assert re.fullmatch(r"exited Exited \(0\) .* ago", lines["ferry-1"])
    assert re.fullmatch(r"exited Exited \(3\) .* ago", lines["ferry-2"])


FILTERS = [
    (["name=tug"], ["tug"]),
    (["name=^/tug$"], ["tug"]),
    (["name=ferry"], ["ferry-2", "ferry-1"]),
    (["name=^ferry-\\d$"], ["ferry-2", "ferry-1"]),
    (["name=erry-1", "name=tug"], ["ferry-1", "tug"]),
    (["name=ferry", "exited=3"], ["ferry-2"]),
    (["exited=0"], ["ferry-1"]),
    (["status=running"], ["tug"]),
    (["status=exited", "status=running"], ["ferry-2", "ferry-1", "tug"]),
    (["status=paused"], []),
    (["label=kind"], ["ferry-2", "ferry-1", "tug"]),
    (["label=kind=boat", "label=crew=1"], ["ferry-2", "ferry-1", "tug"]),
    (["label=kind=car"], []),
    (["label=kind", "label=none"], []),
    ([f"ancestor={IMAGE}"], ["ferry-2", "ferry-1", "tug"]),
    ([f"ancestor={CHILD}"], ["ferry-1"]),
    (["ancestor=none:such"], []),
    (["before=ferry-2"], ["ferry-1", "tug"]),
    (["since=tug"], ["ferry-2", "ferry-1"]),
    (["since=tug", "before=ferry-2"], ["ferry-1"]),
    (["health=none"], ["ferry-2", "ferry-1", "tug"]),
    (["health=healthy"], []),
    (["expose=80"], ["tug"]),
    (["expose=70-90/tcp"], ["tug"]),
    (["expose=80/udp"], []),
    (["publish=80"], []),
    (["volume=none"], []),
    (["is-task=false"], ["ferry-2", "ferry-1", "tug"]),
    (["is-task=true"], []),
]


def test_ps_filters(fleet):
    wrong = {}
    for filters, expected in FILTERS:
        flags = [word for text in filters for word in ("--filter", text)]
        if (got := names(fleet, "-a", *flags)) != expected:
            wrong[tuple(filters)] = got
    assert wrong == {}


@pytest.mark.profiles("root")
def test_a_filter_on_a_state_needs_no_all(fleet):
    assert names(fleet, "-f", "status=exited") == ["ferry-2", "ferry-1"]
    full = fleet.ok("ps", "-q", "--no-trunc").strip()
    assert names(fleet, "-f", f"id={full[:7]}") == ["tug"]


def test_wrong_filters_are_refused(berth):
    def refused(text, status=1):
        return berth.fail("ps", "--filter", text, status=status)

    assert refused("nmae=x") == "berth: invalid filter 'nmae', did you mean 'name'?"
    assert refused("status=rnning") == (
        "berth: invalid filter 'status=rnning', did you mean 'running'?")
    assert refused("exited=x") == "berth: invalid filter 'exited=x': expected a whole number"
    assert refused("name=[").startswith("berth: bad regular expression '[': ")
    assert refused("publish=x") == (
        "berth: invalid filter 'publish=x': expected PORT[-PORT][/PROTOCOL]")
    assert refused("before=nobody") == (
        "berth: no such container: nobody; try: berth ps --all")
    assert refused("is-task=maybe").startswith("berth: invalid filter 'is-task=maybe'")
    assert refused("name", status=125) == (
        "berth: invalid value 'name' for '--filter': expected KEY=VALUE; see 'berth ps --help'")


@pytest.mark.profiles("root")
def test_ps_as_json_is_one_object_a_line(fleet):
    def rows(form):
        found = [json.loads(line) for line in fleet.ok("ps", "-a", "--format", form).splitlines()]
        return [{k: v for k, v in row.items() if k not in ("RunningFor", "Status")}  # seconds pass
                for row in found]
    assert rows("json") == rows("{{json .}}")
    first = json.loads(fleet.ok("ps", "-a", "--format", "json").splitlines()[0])
    assert first["Names"] == "ferry-2" and first["State"] == "exited"
    assert first["Labels"] == "crew=1,kind=boat"
    assert list(first) == sorted(first)
    assert set(first) >= {"Command", "CreatedAt", "ID", "Image", "Labels", "LocalVolumes", "Mounts",
                          "Names", "Networks", "Ports", "RunningFor", "Size", "State", "Status"}


@pytest.mark.profiles("root")
def test_ps_by_a_table_template(fleet):
    assert fleet.ok("ps", "-a", "--format", r"table {{.Names}}\t{{upper .State}}\t{{.Label \"kind\"}}"
                    .replace(r'\"', '"')) == (
        "NAMES     STATE     kind\n"
        "ferry-2   EXITED    boat\n"
        "ferry-1   EXITED    boat\n"
        "tug       RUNNING   boat\n")
    assert fleet.ok("ps", "--format", "raw").splitlines()[1] == f"image: {IMAGE}"


def test_ps_quiet_gives_ids(fleet):
    short = fleet.ok("ps", "-aq").split()
    assert [len(one) for one in short] == [12] * 3
    full = fleet.ok("ps", "-a", "-q", "--no-trunc").split()
    assert [len(one) for one in full] == [64] * 3
    assert [one[:12] for one in full] == short
    assert fleet.ok("ps", "-aq", "--format", "{{.Names}}").split() == ["ferry-2", "ferry-1", "tug"]


def test_ps_tells_what_a_container_has_written(fleet):
    sizes = dict(line.split("|") for line in
                 fleet.ok("ps", "-a", "--format", "{{.Names}}|{{.Size}}").splitlines())
    assert re.fullmatch(r"4B \(virtual [0-9.]+MB\)", sizes["ferry-1"])
    assert sizes["ferry-2"].startswith("0B (virtual ")
    assert fleet.ok("ps", "-s").splitlines()[0].endswith("SIZE")


def test_an_unknown_field_is_refused_although_nothing_is_listed(berth):
    assert berth.fail("ps", "--format", "{{.Nmaes}}", status=1) == (
        "berth: template, column 3: unknown field 'Nmaes', did you mean 'Names'?")
    assert berth.fail("images", "--format", "table {{.Repositroy}}", status=1) == (
        "berth: template, column 3: unknown field 'Repositroy', did you mean 'Repository'?")
    assert berth.fail("ps", "--format", "{{.ID", status=1) == (
        "berth: template, column 1: '{{' without its '}}'")


@pytest.mark.profiles("root")
def test_images_filters(store):
    store.ok("tag", CHILD, "harbour/pilot:x")

    def found(*flags):
        return sorted(store.ok("images", "--format", "{{.Repository}}:{{.Tag}}", *flags).split())

    everything = ["boat:1", "boat:2", "harbour/pilot:x"]
    assert found() == everything
    assert found("boat") == found("--filter", "reference=boat") == ["boat:1", "boat:2"]
    assert found("boat:1") == ["boat:1"]
    assert found("b*t") == found("-f", "reference=b?at:*") == ["boat:1", "boat:2"]
    assert found("-f", "reference=*") == ["boat:1", "boat:2"]  # a star passes no slash
    assert found("-f", "reference=*/*") == ["harbour/pilot:x"]
    assert found("-f", "label=kind=boat") == everything
    assert found("-f", "label=kind=car") == []
    assert found("-f", "dangling=true") == []
    assert found("-f", "dangling=false") == everything
    assert found("-f", "until=24h") == everything  # they were made years ago
    assert found("-f", "until=2001-01-01") == []
    assert found("-f", "before=boat:1") == found("-f", "since=boat:1") == []  # all equally old
    assert store.fail("images", "-f", "since=none", status=1) == (
        "berth: no such image: none; try: berth images")
    assert store.fail("images", "-f", "untl=1h", status=1) == (
        "berth: invalid filter 'untl', did you mean 'until'?")
    assert store.fail("images", "-f", "until=soon", status=1) == (
        "berth: invalid filter 'until=soon': expected a duration such as 24h, or a time")


@pytest.mark.profiles("root")
def test_images_and_history_by_templates(store):
    assert store.ok("images", "--format", "table {{.Repository}}\\t{{.Tag}}", "boat:1") == (
        "REPOSITORY   TAG\nboat         1\n")
    assert store.ok("images", "--digests").splitlines()[0].split()[2] == "DIGEST"
    steps = store.ok("history", "--format", "{{.ID}} {{.Size}}", CHILD).splitlines()
    assert len(steps) == 2 and steps[1].startswith("<missing> ")
    assert store.ok("history", "-H=false", CHILD).splitlines()[0].split()[1:3] == ["CREATED", "AT"]


def test_the_usual_formats_are_those_of_dockers_configuration(fleet, work, profile):
    config = work / "config.json"
    config.write_text(json.dumps({"psFormat": "{{.Names}}!", "imagesFormat": "table {{.Tag}}",
                                  "volumesFormat": "{{.Driver}}", "auths": {}}))
    config.chmod(0o644)
    env = {"DOCKER_CONFIG": str(work)}
    fleet.ok("volume", "create", "hold")
    assert fleet.ok("ps", env=env) == "tug!\n"
    assert fleet.ok("volume", "ls", env=env) == "local\n"
    assert fleet.ok("images", env=env).splitlines()[0] == "TAG"
    # What is typed wins, and -q shows ids.
    assert fleet.ok("ps", "--format", "{{.State}}", env=env) == "running\n"
    assert fleet.ok("ps", "-q", env=env) == fleet.ok("ps", "-q")
    assert fleet.ok("ps", "--format", "table", env=env).startswith("CONTAINER ID")
    for text in ("{", '{"psFormat": 7}', "[]"):
        config.write_text(text)
        done = fleet.run("ps", env=env)
        assert done.returncode == 0 and done.stdout.startswith("CONTAINER ID"), text
        assert (f"berth: warning: {config}: " in done.stderr) == (text == "{"), done.stderr
    config.write_text('{"psFormat": "{{.Nmae}}"}')
    assert "Nmae" in fleet.fail("ps", env=env, status=1)
