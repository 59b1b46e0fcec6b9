# SPDX-License-Identifier: Apache-2.0
"""Bad input to `berth run`: one line that says what to do, and a store that is as it was."""

import os
import resource
import subprocess

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
        "berth: user 'stowaway' is not in the container's /etc/passwd; try: a numeric id")
    assert refused("-u", "sailor:pirates") == (
        "berth: group 'pirates' is not in the container's /etc/group; try: a numeric id")
    assert refused("-u", "4294967295") == (
        "berth: user '4294967295': ids end at 2147483647")
    assert refused("-u", "sailor:") == "berth: user 'sailor:': expected USER or USER:GROUP"


def test_an_unknown_working_directory(refused):
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
        f"berth: volume '{source}/file:/etc': the source is not a directory, "
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


@pytest.mark.parametrize("words", (
    ("run", "--rm", "-v", "./data:/data", "IMAGE", "true"), ("run", "--rm", "-v", ".:/d", "IMAGE", "true"),
    ("run", "--rm", "-v", "../data:/data", "IMAGE", "true"), ("run", "--rm", "--rootfs", "data", "true"),
    ("create", "-v", "./data:/data", "IMAGE"), ("build", "."), ("cp", "tug:/etc/passwd", "data"),
    ("cp", "data", "tug:/"), ("--root", "data", "images")), ids=lambda words: " ".join(words[:4]))
def test_nothing_is_relative_to_a_directory_that_is_gone(berth, busybox, work, profile, words):
    """Else a directory of the host's root is made and used in its place."""
    berth.ok("create", "--name", "tug", busybox, "true")
    gone = work / "gone"
    gone.mkdir()
    os.chown(gone, profile.uid, profile.gid)
    before = sorted(os.listdir("/"))
    argv = " ".join(map(str, berth.argv(*[busybox if word == "IMAGE" else word for word in words])))
    done = subprocess.run(["sh", "-c", f"cd {gone} && rmdir {gone} && {argv}"], capture_output=True,
                          text=True, env=berth.account.environment(), timeout=60, check=False)
    assert done.returncode in (1, 125), done
    assert "the working directory no longer exists; try: an absolute path, or cd to " \
           "a directory that exists" in done.stderr
    assert sorted(os.listdir("/")) == before


def test_another_platform_than_that_of_the_image_that_is_here(berth, busybox, listing):
    berth.ok("pull", "-q", busybox)
    before = listing()
    for verb in ("run", "create"):
        assert berth.fail(verb, "--platform", "linux/arm64", "--pull", "never", busybox, "true") == (
            f"berth: image '{busybox}' is here for linux/amd64, not for linux/arm64; "
            "try: --pull missing")
        assert "has only 'linux/amd64'" in berth.fail(verb, "--platform", "linux/arm64", busybox, "true")
        assert "platform" in berth.fail(verb, "--platform", "nosuch", busybox, "true")
    assert listing() == before
    assert berth.ok("run", "--rm", "--platform", "linux/amd64", busybox, "echo", "up") == "up\n"


def test_more_processors_than_there_are(refused):
    there = os.sysconf("SC_NPROCESSORS_ONLN")
    assert refused("--cpus", str(there + 1)) == (
        f"berth: Range of CPUs is from 0.01 to {there}.00, as there are only {there} CPUs available")


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
        "berth: user 'stowaway' is not in the container's /etc/passwd; try: a numeric id")


def lowered(*limit):
    return lambda: resource.setrlimit(resource.RLIMIT_MEMLOCK, limit)


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_gets_the_limits_that_he_may_have(berth, busybox):
    """The line that NVIDIA's images recommend is pasted by everybody."""
    berth.ok("pull", "-q", busybox)
    done = subprocess.run(
        berth.argv("run", "--rm", "--ulimit", "memlock=-1", "--ulimit", "stack=67108864", busybox,
                   "sh", "-c", "ulimit -Hl; ulimit -s"),
        capture_output=True, text=True, preexec_fn=lowered(1 << 20, 1 << 20), timeout=60,
        env=berth.account.environment(), check=False)
    assert (done.returncode, done.stdout) == (0, "1024\n65536\n"), done
    assert done.stderr == ("berth: warning: --ulimit memlock=-1: the hard limit here is 1048576, "
                           "using that instead\n")


@pytest.mark.profiles("root")
def test_root_without_the_capability_is_told_of_the_flag_and_the_limit(berth, busybox):
    berth.ok("pull", "-q", busybox)
    argv = ["setpriv", "--bounding-set=-sys_resource",
            *berth.argv("run", "--rm", "--ulimit", "memlock=-1", busybox, "true")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60,
                          preexec_fn=lowered(1 << 20, 1 << 20))
    assert (done.returncode, done.stderr) == (
        125, "berth: --ulimit memlock=-1: the hard limit here is 1048576, and this process may not "
             "raise it; try: CAP_SYS_RESOURCE for it, or --ulimit memlock=1048576\n")


def test_a_stop_signal_of_an_image_that_is_none_is_told(berth, push):
    image = push(images.build([images.busybox_layer()], {"StopSignal": "SIGFOO", "Cmd": ["true"]}))
    berth.ok("pull", "-q", image)
    done = berth.run("run", "--rm", image)
    assert (done.returncode, done.stderr) == (
        0, "berth: warning: the image's stop signal 'SIGFOO' is not a signal, using SIGTERM instead\n")


@pytest.mark.profiles("root", "user")
def test_a_program_whose_interpreter_is_missing(berth, push):
    """What the kernel says of the program is said of its loader or of the script's '#!'."""
    image = push(images.build([images.busybox_layer(), images.layer([
        images.file("script", "#!/opt/python -u\n", mode=0o755),
        images.file("windows", "#! /bin/sh\r\n", mode=0o755),
        images.file("program", open("/bin/true", "rb").read(), mode=0o755)])]))
    berth.ok("pull", "-q", image)
    for program, why in (
            ("/script", "'/script' exists, but its '#!' line names '/opt/python', which does not exist"),
            ("/windows", "'/windows' exists, but its '#!' line names '/bin/sh\\x0d', which does not exist"),
            ("/program", "'/program' exists, but its loader '/lib64/ld-linux-x86-64.so.2' does not")):
        done = berth.run("run", "--rm", image, program)
        assert done.returncode == 127 and f"why: {why}; try: " in done.stderr, done
    assert "why:" not in berth.run("run", "--rm", image, "/nothing").stderr
    # What came into a container later is looked for there.
    berth.ok("run", "-d", "--name", "tug", "--stop-timeout", "1", image, "sleep", "1000")
    berth.ok("exec", "tug", "sh", "-c", "cp -a /program /later; printf '#!/opt/perl\\n' > /text; chmod 755 /text")
    for program, why in (
            ("/script", "'/script' exists, but its '#!' line names '/opt/python', which does not exist"),
            ("/text", "'/text' exists, but its '#!' line names '/opt/perl', which does not exist"),
            ("/later", "'/later' exists, but its loader '/lib64/ld-linux-x86-64.so.2' does not")):
        done = berth.run("exec", "tug", program)
        assert done.returncode == 127 and f"why: {why}; try: " in done.stderr, done
    assert "why:" not in berth.run("exec", "tug", "/nothing").stderr
    berth.ok("rm", "-f", "tug")


@pytest.mark.profiles("root", "user")
def test_a_program_in_a_volume_whose_interpreter_is_missing(berth, busybox, work):
    berth.ok("pull", "-q", busybox)
    mine = berth.account.own(work / "mine")
    (mine / "script").write_text("#!/opt/python\n")
    (mine / "well").write_text("#!/bin/sh\necho well\n")
    (mine / "theirs").write_text("#!/mine/python\n")
    (mine / "program").write_bytes(open("/bin/true", "rb").read())
    (mine / "link").symlink_to("/script")
    for name in ("script", "well", "theirs", "program"):
        (mine / name).chmod(0o755)
    there = ("-v", f"{mine}:/mine:ro", "-v", f"{mine}/script:/usr/bin/one")
    script = "' exists, but its '#!' line names '/opt/python', which does not exist"
    expected = {"/mine/script": f"'/mine/script{script}", "/usr/bin/one": f"'/usr/bin/one{script}",
                "/mine/program": "'/mine/program' exists, but its loader '/lib64/ld-linux-x86-64.so.2' does not"}
    for program, why in expected.items():
        for flags in (("run", "--rm"), ("run", "-d", "--rm")):
            done = berth.run(*flags, *there, busybox, program)
            assert done.returncode == 127 and f"why: {why}; try: " in done.stderr, done
        berth.ok("create", "--name", "tug", *there, busybox, program)
        for flags in (("start",), ("start", "-a")):
            assert f"why: {why}; try: " in berth.run(*flags, "tug").stderr
        berth.ok("rm", "tug")
    assert berth.ok("run", "--rm", *there, busybox, "/mine/well") == "well\n"
    # What only the container can tell is not guessed at.
    for program in ("/mine/theirs", "/mine/nothing"):
        done = berth.run("run", "--rm", *there, busybox, program)
        assert done.returncode == 127 and "why:" not in done.stderr, done


@pytest.mark.parametrize("option", ("size=x", "size=64mb", "mode=999", "uid=me"))
def test_a_value_that_no_tmpfs_has(refused, option):
    assert refused("--tmpfs", f"/scratch:{option}") == (
        f"berth: tmpfs '/scratch:{option}': bad value in '{option}'; "
        "try: size=64m, mode=1777, uid=0 or nr_inodes=10k")


def test_an_entrypoint_of_several_words(refused):
    assert refused("--entrypoint", '["/bin/sh", "-c"]') == (
        "berth: --entrypoint takes one program; its arguments come after IMAGE; "
        "try: --entrypoint PROGRAM IMAGE ARG...")


@pytest.mark.profiles("user")
def test_ids_beyond_the_subordinate_ones(berth, busybox, refused):
    """Of a directory service, as an image or `-u $(id -u)` from elsewhere has them."""
    larger = "this user namespace has no such id; try: a larger range in /etc/subuid and /etc/subgid"
    for user in ("164188", "164188:164188", "0:164188"):
        assert refused("-u", user) == f"berth: user '{user}': {larger}"
    assert refused("--group-add", "164188") == f"berth: group '164188': {larger}"
    berth.ok("run", "-d", "--name", "tug", busybox, "sleep", "1000")
    assert berth.fail("exec", "-u", "164188", "tug", "true", status=126) == f"berth: user '164188': {larger}"
    berth.ok("rm", "-f", "tug")


@pytest.mark.profiles("user", "single_id")
def test_an_image_whose_user_has_ids_beyond_them_runs(berth, push):
    accounts = images.layer([
        images.file("etc/passwd", "root:x:0:0::/:\nmate:x:5:5::/:\n"),
        images.file("etc/group", "root:x:0:root\nfleet:x:164188:root,mate\n")])
    foreign = push(images.build([images.busybox_layer()], {"User": "164188"}))
    listed = push(images.build([images.busybox_layer(), accounts], {"User": "root"}))
    for image in (foreign, listed):
        berth.ok("pull", "-q", image)
    done = berth.run("run", "--rm", foreign, "id", "-u")
    assert (done.returncode, done.stdout) == (0, "0\n"), done
    assert done.stderr == ("berth: warning: the image's user '164188' cannot be mapped to the ids that this "
                           "user has, using this user as root instead\n")
    done = berth.run("run", "--rm", listed, "id", "-u")
    assert (done.returncode, done.stdout) == (0, "0\n"), done
    if berth.account.kind == "user":
        assert done.stderr == ("berth: warning: this user namespace has no id for group 164188 of the user, "
                               "ignoring\n")


OOM = "--oom-score-adj -500: it is 0 here"


@pytest.mark.profiles("user", "single_id")
def test_an_ordinary_user_is_killed_no_later_than_he_may_be(berth, busybox):
    berth.ok("pull", "-q", busybox)
    show = ("cat", "/proc/self/oom_score_adj")
    done = berth.run("run", "--rm", "--oom-score-adj", "-500", busybox, *show)
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "0\n", f"berth: warning: {OOM}, using that instead\n")
    assert berth.ok("run", "--rm", "--oom-score-adj", "300", busybox, *show) == "300\n"


@pytest.mark.profiles("root")
def test_root_without_the_capability_may_not_lower_the_oom_score(berth, busybox):
    berth.ok("pull", "-q", busybox)
    argv = ["setpriv", "--bounding-set=-sys_resource",
            *berth.argv("run", "--rm", "--oom-score-adj", "-500", busybox, "true")]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (
        125, f"berth: {OOM}, and this process may not lower it; try: CAP_SYS_RESOURCE for it, or "
             "--oom-score-adj 0\n")


def test_an_empty_platform_is_none(berth, busybox):
    assert berth.ok("run", "--rm", "--quiet", "--platform", "", busybox, "echo", "well") == "well\n"
