# SPDX-License-Identifier: Apache-2.0
"""Containers for the tasks of srun and sbatch, by spank_berth.so: the options of pyxis."""

import os
import signal
import socket
import subprocess
import time

import pytest

from support import images
from support.processes import kill_each, matching
from support.slurm_containers import with_plugin
from support.waiting import wait_until


CAP_MKNOD = 27


@pytest.fixture(scope="module")
def cluster(session_directory, programs, accounts):
    directory = session_directory / "slurm"
    directory.mkdir()
    # Character devices that every machine has stand for the synthetic tree's.
    gpus = [f"/dev/tty{number}" for number in range(1, 9)]
    # A job that is requeued waits until its credential has expired, one of several parts for backfill.
    options = {"nodes": 2, "gpus": gpus, "lines": ["AuthInfo=cred_expire=5", "SchedulerParameters=bf_interval=1,sched_interval=2"]}
    with with_plugin(directory, programs, **options).running() as running:
        yield running


# ---- one container per node ---------------------------------------------------------------------

def test_a_task_runs_in_the_image(slurm, image):
    ask = ("sh", "-c", "ls -d /usr/bin/srun || echo no srun; exit 0")
    assert slurm.srun(image, *ask) == "no srun\n"
    assert slurm.srun(*ask) == "/usr/bin/srun\n"


def test_the_image_is_pulled_when_it_is_not_there(slurm, busybox):
    done = slurm.call("srun", f"--container-image={busybox}", "echo", "tea")
    assert (done.returncode, done.stdout) == (0, "tea\n"), done


def test_tasks_of_a_node_share_one_container(slurm, image):
    out = slurm.srun("--ntasks", "4", "--nodes", "1", image, "sh", "-c",
                     "echo $(readlink /proc/self/ns/mnt) $(readlink /proc/self/ns/user)")
    assert len(out.splitlines()) == 4 and len(set(out.splitlines())) == 1, out


def test_each_node_has_its_own(slurm, image):
    # They wait for each other: the number of a namespace that has ended is the next one's.
    meeting = slurm.berth.account.own(slurm.berth.directory / "meeting")
    out = slurm.srun("--nodes", "2", "--ntasks", "4", f"--container-mounts={meeting}:/meeting", image,
                     "sh", "-c", "touch /meeting/$SLURM_PROCID;"
                     "until [ $(ls /meeting | wc -l) -ge 4 ]; do usleep 20000; done;"
                     "readlink /proc/self/ns/mnt; touch /meeting/done$SLURM_PROCID;"
                     "until [ $(ls /meeting | wc -l) -ge 8 ]; do usleep 20000; done")
    assert len(out.split()) == 4 and len(set(out.split())) == 2, out


def test_a_task_is_who_submitted(slurm, image):
    account = slurm.berth.account
    out = slurm.srun(image, "sh", "-c", "id -u; id -g; touch /tmp/x; stat -c %u /tmp/x")
    assert out.split() == [str(account.uid), str(account.gid), str(account.uid)]


def test_a_task_has_no_capabilities_but_those_of_the_container(slurm, image):
    out = slurm.srun(image, "grep", "-E", "Cap(Eff|Bnd|Amb)|Seccomp:|NoNewPrivs", "/proc/self/status")
    found = dict(line.split(":\t") for line in out.splitlines())
    inside = slurm.berth.ok("run", "--rm", image.split("=")[1], "grep", "-E", "Cap(Eff|Bnd)|Seccomp:",
                            "/proc/self/status")
    like = dict(line.split(":\t") for line in inside.splitlines())
    assert found["Seccomp"].strip() == like["Seccomp"].strip() == "2"
    # Of a task no device cgroup of ours says which nodes it may open.
    assert int(found["CapBnd"], 16) == int(like["CapBnd"], 16) & ~(1 << CAP_MKNOD)
    if slurm.berth.account.kind != "root":
        assert int(found["CapEff"], 16) == 0
    assert int(found["CapAmb"], 16) == 0


ATTACKS = {
    "the socket and the rights are overwritten": "for n in 3 4 5; do : >/proc/self/fd/$n; done",
    "the hold is looked for in /proc": "for p in /proc/[0-9]*; do : >$p/fd/4; done",
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_an_entrypoint_gives_the_tasks_no_rights(slurm, push, attack):
    entrypoint = ["/bin/sh", "-c", f'({ATTACKS[attack]}) 2>/dev/null; exec "$@"', "entrypoint"]
    reference = push(images.build([images.busybox_layer()], {"Entrypoint": entrypoint}))
    out = slurm.srun(f"--container-image={reference}", "--container-entrypoint",
                     "grep", "-E", "^(Seccomp|CapBnd):", "/proc/self/status")
    found = dict(line.split(":\t") for line in out.splitlines())
    assert found["Seccomp"].strip() == "2"
    assert int(found["CapBnd"], 16) & (1 << CAP_MKNOD) == 0


def test_no_working_directory_leads_out_of_the_container(slurm, push):
    leads_out = images.layer([images.symlink("work", "/proc/1/root"),
                              images.symlink("here", f"/proc/{os.getpid()}/root")])
    reference = push(images.build([images.busybox_layer(), leads_out]))
    for place in ("/work", "/here"):
        done = slurm.call("srun", f"--container-image={reference}", f"--container-workdir={place}",
                          "ls", "-d", f".{slurm.cluster.directory}")
        assert done.returncode != 0 and str(slurm.cluster.directory) not in done.stdout, done


@pytest.mark.parametrize("status", [0, 1, 42, 127])
def test_the_status_of_a_task_is_that_of_its_program(slurm, image, status):
    done = slurm.call("srun", image, "sh", "-c", f"exit {status}")
    assert done.returncode == status, done


def test_a_program_is_looked_for_in_the_image(slurm, image):
    done = slurm.call("srun", image, "no-such-program")
    assert done.returncode == 2, done
    assert "No such file or directory" in done.stderr


def test_standard_input_reaches_the_task(slurm, image):
    assert slurm.srun(image, "cat", input="tea\n") == "tea\n"


# ---- options ------------------------------------------------------------------------------------

def test_mounts(slurm, image):
    place = slurm.berth.directory / "a b"
    slurm.berth.account.own(place)
    (place / "file").write_text("tea\n")
    out = slurm.srun(image, f"--container-mounts={place}:/mnt/x,./a b:/mnt/y:ro,tmpfs:/scratch", "sh",
                     "-c", "cat /mnt/x/file /mnt/y/file; touch /mnt/x/new && echo wrote; "
                     "touch /mnt/y/no 2>&1; grep -c ' /scratch tmpfs' /proc/mounts")
    assert out.startswith("tea\ntea\nwrote\n") and "Read-only file system" in out and out.endswith("1\n")
    assert (place / "new").exists()


def test_one_path_is_mounted_at_the_same_place(slurm, image):
    (slurm.berth.directory / "file").write_text("tea\n")
    place = slurm.berth.directory
    assert slurm.srun(image, f"--container-mounts={place}", "cat", f"{place}/file") == "tea\n"
    shown = slurm.srun(image, f"--container-mounts={place}:/mnt:nosuid+noexec+ro", "grep", " /mnt ", "/proc/mounts")
    assert {"nosuid", "noexec", "ro"} < set(shown.split()[3].split(",")), shown


def test_a_source_that_is_missing_is_named(slurm, image):
    said = slurm.refused(image, "--container-mounts=/no/such/place:/mnt", "true")
    assert "/no/such/place" in said


def test_workdir(slurm, image):
    assert slurm.srun(image, "--container-workdir=/etc", "pwd") == "/etc\n"
    assert slurm.srun(image, "pwd") == "/\n"
    said = slurm.refused(image, "--container-workdir=/no/such/place", "pwd")
    assert "'/no/such/place' does not exist" in said


def test_read_only_and_writable(slurm, image):
    assert "Read-only file system" in slurm.refused(image, "--container-readonly", "touch", "/new")
    slurm.srun(image, "--container-writable", "touch", "/new")
    slurm.srun(image, "touch", "/new")


@pytest.mark.profiles("user", "single_id")
def test_root_is_asked_for(slurm, image):
    account = slurm.berth.account
    assert slurm.srun(image, "--container-remap-root", "id", "-u") == "0\n"
    assert slurm.srun(image, "--no-container-remap-root", "id", "-u") == f"{account.uid}\n"
    place = slurm.berth.account.own(slurm.berth.directory / "mine")
    slurm.srun(image, "--container-remap-root", f"--container-mounts={place}:/mnt", "touch", "/mnt/x")
    assert (place / "x").stat().st_uid == account.uid


def test_the_home_directory_is_mounted_when_asked_for(slurm, image):
    home = slurm.berth.account.home
    try:
        (home / "here").write_text("tea\n")
        ask = ("sh", "-c", f"cat {home}/here 2>/dev/null || echo none")
        assert slurm.srun(image, "--container-mount-home", *ask) == "tea\n"
        assert slurm.srun(image, "--no-container-mount-home", *ask) == "none\n"
        assert slurm.srun(image, *ask) == "none\n"
        # Its name stays the job's, whether it is there or not.
        assert slurm.srun(image, "sh", "-c", "echo $HOME") == \
            ("/root\n" if slurm.berth.account.kind == "root" else f"{home}\n")
        assert slurm.srun(image, "--container-remap-root", "sh", "-c", "echo $HOME") == "/root\n"
    finally:
        (home / "here").unlink()


def test_variables_of_the_job_pass_and_those_of_the_image_count_more(slurm, push):
    reference = push(images.build([images.busybox_layer()],
                                  {"Env": ["PATH=/bin", "FLAVOUR=image", "OTHER=image"]}))
    env = {"FLAVOUR": "job", "PASSED": "job", "LANG": "xx_XX"}
    show = ("sh", "-c", "echo $FLAVOUR $OTHER $PASSED $PATH ${LANG-none} $SLURM_PROCID")
    image = f"--container-image={reference}"
    assert slurm.srun(image, *show, env=env) == "image image job /bin none 0\n"
    assert slurm.srun(image, "--container-env=FLAVOUR,LANG", *show, env=env) == \
        "job image job /bin xx_XX 0\n"


HOST_PATHS = {"LD_LIBRARY_PATH": "/soft/lib", "PYTHONHOME": "/soft/python", "BASH_ENV": "/soft/env",
              "XDG_RUNTIME_DIR": "/run/soft", "SITE_HOME": "/soft/site"}
SHOW_PATHS = ("sh", "-c", "for n in LD_LIBRARY_PATH PYTHONHOME BASH_ENV SITE_HOME; do "
              "eval echo $n=\\$$n; done; env | grep -c XDG_RUNTIME_DIR || :")


def test_variables_that_lead_to_files_of_the_node_stay_outside(slurm, push, image):
    assert slurm.srun(image, *SHOW_PATHS, env=HOST_PATHS).split() == [
        "LD_LIBRARY_PATH=", "PYTHONHOME=", "BASH_ENV=", "SITE_HOME=/soft/site", "0"]
    assert slurm.srun(image, "--container-env=PYTHONHOME", *SHOW_PATHS, env=HOST_PATHS).split() == [
        "LD_LIBRARY_PATH=", "PYTHONHOME=/soft/python", "BASH_ENV=", "SITE_HOME=/soft/site", "0"]
    own = push(images.build([images.busybox_layer()], {"Env": ["PATH=/bin", "LD_LIBRARY_PATH=/of/image"]}))
    assert slurm.srun(f"--container-image={own}", *SHOW_PATHS, env=HOST_PATHS).split()[0] == \
        "LD_LIBRARY_PATH=/of/image"


def test_variables_stand_for_options(slurm, busybox):
    env = {"PYXIS_CONTAINER_IMAGE": busybox, "PYXIS_CONTAINER_WORKDIR": "/etc",
           "PYXIS_CONTAINER_READONLY": "1"}
    out = slurm.srun("sh", "-c", "pwd; touch /new 2>/dev/null || echo cannot", env=env)
    assert out == "/etc\ncannot\n"
    assert slurm.srun("--container-workdir=/tmp", "pwd", env=env) == "/tmp\n"


def test_namespaces_of_its_own(slurm, image):
    ours = {name: os.readlink(f"/proc/self/ns/{name}") for name in ("net", "ipc", "uts")}
    ask = ("sh", "-c", "for n in net ipc uts; do readlink /proc/self/ns/$n; done")
    assert slurm.srun(image, *ask).split() == list(ours.values())
    own = slurm.srun(image, "--container-unshare=net,ipc,uts", *ask).split()
    assert len(own) == 3 and not set(own) & set(ours.values())


def test_the_entrypoint_runs_when_asked_for(slurm, push):
    entrypoint = ["/bin/sh", "-c", 'echo brewed; export FROM_ENTRYPOINT=yes; exec "$@"', "entrypoint"]
    image = images.build([images.busybox_layer()], {"Entrypoint": entrypoint})
    reference = f"--container-image={push(image)}"
    show = ("sh", "-c", "echo ${FROM_ENTRYPOINT-no}")
    assert slurm.srun(reference, *show) == "no\n"
    assert slurm.srun(reference, "--container-entrypoint", *show) == "yes\n"
    done = slurm.call("srun", reference, "--container-entrypoint", "--container-entrypoint-log", *show)
    assert done.stdout == "yes\n" and "brewed" in done.stderr


@pytest.mark.parametrize("words, said", [
    (["--container-image="], "--container-image: argument required"),
    (["--container-image=a", "--container-image=b"], "--container-image specified multiple times"),
    (["--container-mounts=/a", "--container-mounts=/b"], "--container-mounts specified multiple times"),
    (["--container-mounts=:"], "--container-mounts: ':'"),
    (["--container-mounts=/tmp:"], "--container-mounts: '/tmp:'"),
    (["--container-unshare=net,foo"], "unknown namespace 'foo'"),
    (["--container-name=x:attach"], "flag must be"),
    (["--container-readonly", "--container-writable"],
     "both --container-readonly and --container-writable were specified"),
    (["--container-env=A=b"], "--container-env: invalid format"),
])
@pytest.mark.profiles("user")
def test_wrong_values_are_refused_before_anything_starts(slurm, words, said):
    assert said in slurm.refused(*words, "true")


@pytest.mark.profiles("user")
def test_options_without_a_container_are_ignored_aloud(slurm):
    done = slurm.call("srun", "--container-readonly", "echo", "tea")
    assert (done.returncode, done.stdout) == (0, "tea\n")
    assert "ignoring --container-readonly" in done.stderr


def test_an_image_that_cannot_be_had_fails_the_step(slurm, registry):
    said = slurm.refused("--ntasks", "2", f"--container-image={registry.address}/no/such:1", "true")
    assert "no/such" in said and "125" in said


@pytest.mark.profiles("user")
def test_what_one_node_cannot_do_ends_the_step_on_all(slurm, image):
    begin = time.monotonic()
    said = slurm.refused("--nodes=2", "--ntasks=4", image, "sleep", "50", env={"TEST_FAILS_ON": "n2"})
    assert said.count("told to fail") == 1
    assert time.monotonic() - begin < 40


def test_a_path_is_an_image_file(slurm, image, busybox):
    file = slurm.berth.directory / "image.sqsh"
    slurm.berth.ok("save", "--format", "sqsh", "-o", file, busybox)
    assert slurm.srun("--container-image=./image.sqsh", "echo", "tea") == "tea\n"
    assert "/no/such.sqsh" in slurm.refused("--container-image=/no/such.sqsh", "true")


# ---- containers that stay -----------------------------------------------------------------------

@pytest.fixture
def name(slurm):
    yield "--container-name=web"
    slurm.berth.run("rm", "--force", "pyxis_web")


def test_a_named_container_keeps_its_files(slurm, image, name):
    slurm.srun(image, name, "touch", "/kept")
    assert slurm.srun(name, "ls", "/kept") == "/kept\n"
    assert slurm.srun(image, name, "ls", "/kept") == "/kept\n"
    assert "/kept" in slurm.refused(image, "ls", "/kept")
    listed = slurm.berth.ok("ps", "--all", "--format", "{{.Names}} {{.State}}")
    assert listed == "pyxis_web exited\n"
    slurm.berth.ok("rm", "pyxis_web")
    assert "does not exist, and --container-image is not set" in slurm.refused(name, "true")


def test_each_step_says_anew_how_a_named_container_is_started(slurm, image, name):
    place = slurm.berth.account.own(slurm.berth.directory / "place")
    (place / "file").write_text("tea\n")
    slurm.srun(image, name, "true")
    assert slurm.srun(name, f"--container-mounts={place}:/mnt", "cat", "/mnt/file") == "tea\n"
    assert "No such file" in slurm.refused(name, "cat", "/mnt/file")
    assert "Read-only" in slurm.refused(name, "--container-readonly", "touch", "/new")


def test_a_running_container_is_joined_by_its_name(slurm, image, name):
    step = slurm.spawn("srun", image, name, "sh", "-c", "readlink /proc/self/ns/mnt; sleep 3; echo end")
    space = step.stdout.readline()
    ask = ("readlink", "/proc/self/ns/mnt")
    assert slurm.srun("--overlap", name, *ask) == space
    assert slurm.srun("--overlap", f"{name}:exec", *ask) == space
    done = slurm.call("srun", "--overlap", name, "--container-mounts=/tmp:/mnt", *ask)
    assert done.stdout == space and "ignoring" in done.stderr
    assert "in use" in slurm.refused("--overlap", f"{name}:no_exec", *ask)
    assert step.communicate(timeout=30)[0] == "end\n"
    slurm.srun(f"{name}:no_exec", "true")


def test_tasks_that_joined_outlive_the_step_that_started_the_container(slurm, image, name):
    first = slurm.spawn("srun", image, name, "sh", "-c", "echo up; sleep 1")
    assert first.stdout.readline() == "up\n"
    assert slurm.srun("--overlap", name, "sh", "-c", "sleep 2; ls /bin/sh") == "/bin/sh\n"
    assert first.wait(timeout=30) == 0


def test_a_name_says_whether_there_must_be_a_container(slurm, image, name):
    assert "no container of this name runs" in slurm.refused(image, f"{name}:exec", "true")
    slurm.srun(image, f"{name}:create", "true")
    assert "already exists" in slurm.refused(image, f"{name}:create", "true")


def test_what_an_entrypoint_leaves_running_ends_with_the_step(slurm, push):
    entrypoint = ["/bin/sh", "-c", 'sleep 3333 & exec "$@"', "entrypoint"]
    reference = push(images.build([images.busybox_layer()], {"Entrypoint": entrypoint}))
    before = time.monotonic()
    seen = slurm.srun(f"--container-image={reference}", "--container-entrypoint", "sh", "-c",
                      "ps | grep -c '[s]leep 3333'")
    assert seen == "1\n"
    assert not matching(rb"sleep\x003333") and time.monotonic() - before < 8


def test_an_entrypoint_that_never_ends_goes_with_its_step(slurm, push):
    entrypoint = ["/bin/sh", "-c", 'sleep 3334', "entrypoint"]
    reference = push(images.build([images.busybox_layer()], {"Entrypoint": entrypoint}))
    step = slurm.spawn("srun", f"--container-image={reference}", "--container-entrypoint", "true")
    wait_until(lambda: matching(rb"sleep\x003334"))
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    wait_until(lambda: not matching(rb"sleep\x003334"))
    assert not slurm.containers()


def test_a_task_of_pytorch_is_told_its_rank(slurm, push):
    reference = push(images.build([images.busybox_layer()], {"Env": ["PYTORCH_VERSION=2.9"]}))
    ask = "echo $RANK $LOCAL_RANK $WORLD_SIZE $MASTER_ADDR $((MASTER_PORT - SLURM_JOB_ID % 4536))"
    out = slurm.srun("--ntasks=2", "--nodes=1", "--label", f"--container-image={reference}", "sh", "-c", ask)
    assert sorted(out.splitlines()) == ["0: 0 0 2 n1 61000", "1: 1 1 2 n1 61000"]
    own = slurm.srun(f"--container-image={reference}", "sh", "-c", "echo $MASTER_ADDR $RANK",
                     env={"MASTER_ADDR": "elsewhere"})
    assert own == "elsewhere 0\n"


def test_other_images_are_told_no_rank(slurm, image):
    assert slurm.srun(image, "sh", "-c", "echo ${RANK-none} ${MASTER_PORT-none}") == "none none\n"


def test_a_job_without_variables_has_a_container(slurm, image):
    # berth's own are the test's, for the store of the test.
    names = "TEST_ROOT,TEST_STATE"
    assert slurm.srun(f"--export={names}", image, "echo", "tea") == "tea\n"


@pytest.mark.profiles("user", "single_id")
def test_the_terminal_of_a_step_has_its_name(slurm, image):
    step = f"srun --pty {image} sh -c 'tty; echo tea > $(tty); test -c /dev/ptmx'"
    done = slurm.call("script", "--quiet", "--return", "--command", step, "/dev/null")
    assert done.returncode == 0 and "/dev/pts/" in done.stdout and "tea" in done.stdout, done


def test_the_kernel_may_end_what_works_for_a_step(slurm, image):
    out = slurm.srun(image, "sh", "-c", "cat /proc/[0-9]*/comm /proc/[0-9]*/oom_score_adj 2>/dev/null |"
                     "grep -c xyz; for p in /proc/[0-9]*; do grep -q berth-hold $p/comm 2>/dev/null && "
                     "cat $p/oom_score_adj; done; true")
    assert out.split()[1:] == ["0"], out


# ---- saving -------------------------------------------------------------------------------------

def files_of(path):
    listed = subprocess.run(["rdsquashfs", "--describe", path], capture_output=True, text=True, check=True)
    return listed.stdout


def test_what_the_tasks_wrote_is_saved(slurm, image):
    out = slurm.berth.directory / "out.sqsh"
    slurm.srun(image, "--container-save=out.sqsh", "--ntasks=2", "sh", "-c",
               "echo tea$SLURM_PROCID > /left$SLURM_PROCID")
    assert out.stat().st_uid == slurm.berth.account.uid
    assert "file left0 " in files_of(out) and "berth-hold" not in files_of(out)
    assert not slurm.containers()
    # It is an image of its own, and what was saved before is replaced.
    again = slurm.srun(f"--container-image={out}", f"--container-save={out}", "sh", "-c",
                       "cat /left0 /left1; rm /left1; echo more > /more")
    assert again == "tea0\ntea1\n"
    assert "file left1 " not in files_of(out) and "file more " in files_of(out)
    assert slurm.srun(f"--container-image={out}", "cat", "/more") == "more\n"


def test_a_named_container_is_saved_and_stays(slurm, image):
    out = slurm.berth.directory / "named.sqsh"
    slurm.srun(image, "--container-name=saved", "touch", "/first")
    slurm.srun("--container-name=saved", f"--container-save={out}", "touch", "/second")
    assert "file first " in files_of(out) and "file second " in files_of(out)
    assert slurm.srun("--container-name=saved", "ls", "/second") == "/second\n"


def test_the_variables_of_the_image_are_saved(slurm, push):
    out = slurm.berth.directory / "told.sqsh"
    reference = push(images.build([images.busybox_layer()], {"Env": ["COLOUR=green"]}))
    slurm.srun(f"--container-image={reference}", f"--container-save={out}", "true")
    said = slurm.srun(f"--container-image={out}", "sh", "-c", "echo $COLOUR; cat /etc/environment")
    assert said == "green\nCOLOUR=green\n"


def test_what_cannot_be_saved_is_said_before_the_work(slurm, image):
    berth = slurm.berth
    said = slurm.refused(image, "--container-save=/no/such/place/x.sqsh", "touch", berth.directory / "ran")
    assert "--container-save: " in said and "/no/such/place" in said
    said = slurm.refused(image, "--container-save=/dev/null", "touch", berth.directory / "ran")
    assert "'/dev/null' is not a file" in said
    assert not (berth.directory / "ran").exists()


@pytest.fixture
def small_disk(slurm):
    place = slurm.berth.account.own(slurm.berth.directory / "small")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "small", place], check=True)
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_full_is_told_and_leaves_the_old_file(slurm, image, small_disk):
    out = small_disk / "full.sqsh"
    out.write_text("old")
    done = slurm.call("srun", image, f"--container-save={out}", "sh", "-c",
                      "head -c 8000000 /dev/urandom > /large")
    assert "No space left on device" in done.stderr, done
    assert os.listdir(small_disk) == ["full.sqsh"] and out.read_text() == "old"
    assert not slurm.containers()


def test_each_step_is_explained_while_it_runs(slurm, image, driver_tree):
    step = slurm.spawn("srun", "--gpus=2", image, "sh", "-c", "echo up; exec sleep 100",
                       env={"TEST_TREE": driver_tree("eight")})
    assert step.stdout.readline() == "up\n"
    job = next(name for name in slurm.call("squeue", "--noheader", "--steps", "--format=%i").stdout.split()
               if name.endswith(".0"))
    said = slurm.berth.ok("explain", "--slurm", job)
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    assert "CUDA_VISIBLE_DEVICES" in said and "Slurm" in said, said
    assert "has no container on this node" in slurm.berth.fail("explain", "--slurm", job, status=1)


# ---- GPUs of a synthetic driver -----------------------------------------------------------------

NODES = "echo $CUDA_VISIBLE_DEVICES; ls /dev | grep -c '^nvidia[0-9]'"


def gpus_of(slurm, tree, image, *words):
    """What the tasks print of their GPUs, one text each."""
    out = slurm.srun("--label", *words, image, "sh", "-c", NODES, env={"TEST_TREE": tree})
    said = {}
    for line in out.splitlines():
        task, text = line.split(": ")
        said.setdefault(int(task), []).append(text)
    return [said[task] for task in sorted(said)]


def test_a_step_has_the_gpus_that_slurm_gave_it(slurm, image, driver_tree):
    tree = driver_tree("eight")
    assert gpus_of(slurm, tree, image, "--gpus=3") == [["0,1,2", "3"]]
    assert slurm.srun(image, "sh", "-c", "ls /dev | grep -c '^nvidia[0-9]' || true",
                      env={"TEST_TREE": tree}) == "0\n"


def test_each_task_sees_its_own_gpu(slurm, image, driver_tree):
    tree = driver_tree("eight")
    found = gpus_of(slurm, tree, image, "--nodes=1", "--ntasks=4", "--gpus-per-task=1")
    assert sorted(visible for visible, _ in found) == ["0", "1", "2", "3"]


# ---- jobs ---------------------------------------------------------------------------------------

def test_a_batch_script_runs_in_the_container(slurm, image, busybox):
    script = slurm.berth.directory / "job.sh"
    out = slurm.berth.directory / "out"
    script.write_text(f"#!/bin/sh\n#SBATCH --container-image={busybox} --output={out}\n"
                      "ls /usr/bin/srun 2>/dev/null || echo no srun\n")
    done = slurm.call("sbatch", "--wait", str(script))
    assert done.returncode == 0, (done, slurm.cluster.logs())
    assert out.read_text() == "no srun\n"


def outputs(slurm, pattern):
    return [path.read_text() for path in sorted(slurm.berth.directory.glob(pattern))]


def test_each_job_of_an_array_has_its_container(slurm, image):
    script = slurm.berth.directory / "array.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH {image} --array=1-3 --output=array-%a\n"
                      "ls /usr/bin/srun 2>/dev/null || echo no srun, $SLURM_ARRAY_TASK_ID\n")
    done = slurm.call("sbatch", "--wait", str(script))
    assert done.returncode == 0, (done, slurm.cluster.logs())
    assert outputs(slurm, "array-*") == [f"no srun, {number}\n" for number in (1, 2, 3)]


@pytest.mark.profiles("user")
def test_a_job_that_is_requeued_has_its_container_again(slurm, image):
    script = slurm.berth.directory / "again.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH --requeue --open-mode=append {image} --output=again\n"
                      "ls /usr/bin/srun 2>/dev/null || echo no srun, ${SLURM_RESTART_COUNT-first}\n"
                      "[ -n \"$SLURM_RESTART_COUNT\" ] || exec sleep 100\n")
    job = slurm.call("sbatch", "--parsable", str(script)).stdout.strip()
    wait_until(lambda: outputs(slurm, "again") == ["no srun, first\n"])
    assert slurm.call("scontrol", "requeue", job).returncode == 0
    wait_until(lambda: "\nno srun, 1\n" in "".join(outputs(slurm, "again")), timeout=40)


def test_all_parts_of_a_heterogeneous_step_have_a_container(slurm, image):
    see = ("sh", "-c", "ls /usr/bin/srun 2>/dev/null || echo no srun")
    out = slurm.srun("--label", "--nodes=1", image, *see, ":", "--nodes=1", *see)
    assert sorted(out.splitlines()) == ["0: no srun", "1: no srun"]


def test_a_step_can_be_attached_to(slurm, image):
    meeting = slurm.berth.account.own(slurm.berth.directory / "meeting")
    step = slurm.spawn("srun", f"--container-mounts={meeting}:/meeting", image, "sh", "-c",
                       "echo up; until [ -e /meeting/stop ]; do echo tea; usleep 100000; done")
    assert step.stdout.readline() == "up\n"
    steps = slurm.call("squeue", "--noheader", "--steps", "--format=%i").stdout.split()
    watching = slurm.spawn("sattach", next(name for name in steps if name.endswith(".0")))
    first = watching.stdout.readline()
    assert first in ("up\n", "tea\n"), (first, watching.stderr.read())
    (meeting / "stop").touch()
    step.communicate(timeout=30)
    watching.communicate(timeout=30)
    assert step.returncode == 0


def test_a_signal_reaches_the_tasks(slurm, image):
    step = slurm.spawn("srun", image, "sh", "-c", "trap 'echo caught; exit 7' USR1; echo up; "
                       "while :; do sleep 0.1; done")
    assert step.stdout.readline() == "up\n"
    slurm.call("scancel", "--signal=USR1", "--user", slurm.berth.account.name)
    out, _ = step.communicate(timeout=30)
    assert (step.returncode, out) == (7, "caught\n")


def test_a_job_that_is_cancelled_leaves_nothing(slurm, image):
    step = slurm.spawn("srun", image, "sh", "-c", "echo up; exec sleep 100")
    assert step.stdout.readline() == "up\n"
    assert len(slurm.containers()) + len(list(slurm.berth.state.rglob("bundle"))) >= 1
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.communicate(timeout=30)
    assert step.returncode != 0
    wait_until(lambda: not holders(slurm))


def holders(slurm):
    """Processes of a step's container, or of berth beside it."""
    return matching(rb"berth-hold|slurm\0step")


def test_a_job_that_is_cancelled_while_it_pulls_leaves_nothing(slurm):
    with socket.create_server(("127.0.0.1", 0)) as deaf:  # a registry that never answers
        reference = f"127.0.0.1:{deaf.getsockname()[1]}/never/answers:1"
        step = slurm.spawn("srun", "--ntasks=2", f"--container-image={reference}", "true")
        wait_until(lambda: matching(rb"berth-transfer"))
        slurm.call("scancel", "--user", slurm.berth.account.name)
        print(step.communicate(timeout=30), step.returncode)
        wait_until(lambda: not holders(slurm) and not matching(rb"berth-transfer"))


def test_slurmstepd_that_is_killed_leaves_nothing_of_ours(slurm, image):
    """The task goes on, as Slurm has it where no cgroup holds tasks."""
    step = slurm.spawn("srun", image, "sh", "-c", "echo $$; exec sleep 100")
    task = int(step.stdout.readline())
    assert holders(slurm)
    kill_each(matching(rb"^slurmstepd: \[\d+\.0\]"))
    wait_until(lambda: not holders(slurm))
    os.kill(task, signal.SIGKILL)
    slurm.call("scancel", "--user", slurm.berth.account.name)
    step.kill()
    step.communicate()


@pytest.mark.profiles("root", "user")
@pytest.mark.parametrize("victim", [rb"berth-hold", rb"slurm\0step"])
def test_tasks_go_on_when_what_holds_their_container_is_killed(slurm, image, victim):
    step = slurm.spawn("srun", image, "sh", "-c", "echo up; sleep 2; ls /bin/sh")
    assert step.stdout.readline() == "up\n"
    killed = matching(victim)
    assert killed
    kill_each(killed)
    out, err = step.communicate(timeout=30)
    assert (step.returncode, out) == (0, "/bin/sh\n"), err
    assert not holders(slurm)
    slurm.srun(image, "true")  # sweeps what killed owners have left


def test_many_tasks_at_once(slurm, image):
    out = slurm.srun("--nodes", "1", "--ntasks", "64", "--overcommit", image, "echo", "tea", timeout=120)
    assert out == "tea\n" * 64


@pytest.mark.profiles("root", "user")
def test_a_step_that_ends_waits_for_its_container(slurm, image):
    for _ in range(5):
        slurm.srun(image, "true")
    assert slurm.containers() == []
    assert not holders(slurm)
