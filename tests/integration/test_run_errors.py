# SPDX-License-Identifier: Apache-2.0
"""Bad input to `berth run`: one line that says what to do, and a store that is as it was."""

import pytest

from support import images


@pytest.fixture
def refused(berth, busybox, listing):
    """refused(flag…, status=) → the error line of a run that changed nothing."""
    berth.ok("run", "--rm", busybox, "true")

    def run(*flags, image=busybox, command=("true",), status=125):
        before = listing()
        line = berth.fail("run", "--rm", *flags, image, *command, status=status)
        assert listing() == before
        return line
    return run


def test_an_unknown_user(refused):
    assert refused("-u", "stowaway") == (
        "berth: user 'stowaway' is not in the image's /etc/passwd; try: a numeric id")
    assert refused("-u", "sailor:pirates") == (
        "berth: group 'pirates' is not in the image's /etc/group; try: a numeric id")
    assert refused("-u", "4294967295") == (
        "berth: user '4294967295': ids end at 2147483647")
    assert refused("-u", "sailor:") == "berth: user 'sailor:': expected USER or USER:GROUP"


def test_an_unknown_working_directory(refused):
    assert refused("-w", "/no/such") == (
        "berth: working directory '/no/such' does not exist in the image; "
        "try: -v to mount it, or another --workdir")
    assert refused("-w", "/etc/passwd") == (
        "berth: working directory '/etc/passwd' is not a directory in the image")
    assert refused("-w", "relative") == (
        "berth: working directory 'relative' is not an absolute path")


def test_a_working_directory_in_a_volume_is_known_to_nobody_before(berth, busybox, work, profile):
    source = profile.own(work / "data")
    (source / "sub").mkdir()
    assert berth.ok("run", "--rm", "-v", f"{source}:/data", "-w", "/data/sub", busybox,
                    "pwd").splitlines()[-1] == "/data/sub"


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("workdir", ["/hold/made", "/way/made", "/dangling"])
def test_a_working_directory_in_a_volume_is_made_by_the_containers_user(berth, push, work, profile,
                                                                        workdir):
    layer = images.layer([images.symlink("way", "/hold"), images.symlink("dangling", "/hold/made")])
    config = {"User": "1000", "WorkingDir": workdir}
    image = push(images.build([images.busybox_layer(), layer], config=config))
    hold = profile.own(work / "hold")
    hold.chmod(0o755)
    line = berth.fail("run", "--rm", "-q", "-v", f"{hold}:/hold", image, "pwd")
    assert line.endswith(f"': cannot enter working directory '{workdir}': create directory 'made': "
                         "Permission denied")
    assert not list(hold.iterdir())
    hold.chmod(0o777)
    assert berth.ok("run", "--rm", "-v", f"{hold}:/hold", image, "stat", "-c", "%u", ".") == "1000\n"


def test_a_file_where_a_directory_is_to_be_mounted(refused, work, profile):
    source = profile.own(work / "data")
    (source / "file").touch()
    assert refused("-v", f"{source}:/etc/passwd") == (
        f"berth: volume '{source}:/etc/passwd': the source is a directory, "
        "the destination in the image is not")
    assert refused("-v", f"{source}/file:/etc") == (
        f"berth: volume '{source}/file:/etc': the source is no directory, "
        "the destination in the image is one")


def test_a_name_in_use(berth, busybox, listing):
    berth.ok("pull", "--quiet", busybox)
    other = berth.ok("run", "-d", "--name", "harbour", busybox, "sleep", "100").strip()
    before = listing()
    assert berth.fail("run", "--rm", "--name", "harbour", busybox, "true") == (
        f'berth: Conflict. The container name "/harbour" is already in use by container "{other}"; '
        "try: berth rm harbour")
    assert listing() == before
    berth.ok("rm", "-f", "harbour")
    assert berth.ok("run", "--rm", "--name", "harbour", busybox, "echo", "free") == "free\n"


@pytest.mark.parametrize("flags", (
    ("--gpus", "99"), ("--device", "/dev/nosuch"), ("-u", "stowaway"), ("--name", "harbour"),
    ("-v", "/etc/passwd:/etc")), ids=" ".join)
def test_a_start_that_is_refused_leaves_nothing(berth, busybox, driver_tree, flags):
    """Without --rm too, where a monitor is told of the container before it is made."""
    berth.ok("create", "--name", "harbour", busybox, "true")
    kept = sorted(path for path in berth.root.rglob("*") if "containers" in path.parts)
    for way in ((), ("-d",)) * 6:
        done = berth.run("--driver-root", str(driver_tree("one")), "run", *way, *flags, busybox,
                         "true")
        assert done.returncode in (125, 126), done
        assert "remove" not in done.stderr, done.stderr
        assert sorted(path for path in berth.root.rglob("*") if "containers" in path.parts) == kept


def test_names_and_host_names_have_a_form(refused):
    assert refused("--name", "../x") == (
        "berth: container name '../x': only [a-zA-Z0-9][a-zA-Z0-9_.-]+ is allowed")
    assert refused("--hostname", "no spaces") == (
        "berth: hostname 'no spaces': expected at most 63 letters, digits, '-', '.'")


def test_volumes_have_a_form(refused):
    assert refused("-v", ":/only") == (
        "berth: volume ':/only': expected [SOURCE:]DESTINATION[:ro]; try: -v /data:/data:ro")
    assert refused("-v", "/a:/b:nope") == (
        "berth: volume '/a:/b:nope': unknown option 'nope'; "
        "try: ro, rw or a propagation such as rslave")


def test_an_unknown_image_that_may_not_be_pulled(refused):
    assert refused("--pull", "never", image="no-such-image") == (
        "berth: no such image: no-such-image; try: berth pull no-such-image")


def test_an_account_file_that_leads_outside_is_not_followed(berth, push, work):
    accounts = work / "passwd"
    accounts.write_text("stowaway:x:0:0::/:/bin/sh\n")
    layer = images.layer([images.symlink("etc/passwd", str(accounts)),
                          images.symlink("etc/group", "/etc/group")])
    image = push(images.build([images.busybox_layer(), layer]))
    assert berth.ok("run", "--rm", image, "echo", "fine").splitlines()[-1] == "fine"
    assert berth.fail("run", "--rm", "-u", "stowaway", image, "id") == (
        "berth: user 'stowaway' is not in the image's /etc/passwd; try: a numeric id")
