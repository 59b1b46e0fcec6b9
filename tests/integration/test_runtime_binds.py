# SPDX-License-Identifier: Apache-2.0
"""What a bind shows of its source: what is mounted below it, and links."""

import os
import subprocess

import pytest

from support.oci_fixtures import bundle, kind, own_user_namespace, place, runtime  # noqa: F401

ROOT = pytest.mark.parametrize("kind", ["root"], indirect=True)
LINKS = ("src-nofollow", "dest-nofollow", "copy-symlink")


@pytest.fixture
def linked(place):
    """A directory with 'file' and 'link', which leads to it."""
    source = place / "source"
    source.mkdir()
    (source / "file").write_text("of the file\n")
    (source / "link").symlink_to("file")
    return source


@ROOT
@pytest.mark.parametrize("options", [["rbind", "rprivate", "bind"], ["bind", "rbind"], ["bind", "rro", "rbind", "ro"]])
def test_what_is_mounted_below_comes_along_whatever_stands_beside_rbind(runtime, bundle, place, options):
    (place / "source/below").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place / "source/below"], check=True)
    try:
        (place / "source/below/seen").write_text("seen\n")
        bundle.mount("/given", place / "source", *options)
        assert runtime.out(bundle.args("/bin/cat", "/given/below/seen")) == "seen\n"
    finally:
        subprocess.run(["umount", place / "source/below"], check=True)


def bind_of_a_link(bundle, linked):
    (bundle.rootfs / "there").symlink_to("nowhere")
    bundle.mount("/there", linked / "link", "bind", "src-nofollow", "dest-nofollow")
    return bundle.args("/bin/readlink", "/there")


def test_a_link_is_bound_itself_over_a_link_where_both_are_asked_for(runtime, bundle, linked):
    assert runtime.out(bind_of_a_link(bundle, linked)) == "file\n"


@ROOT
def test_a_link_is_bound_for_a_container_with_its_own_users_too(runtime, bundle, linked):
    own_user_namespace(bundle)
    linked.chmod(0o700)
    assert runtime.out(bind_of_a_link(bundle, linked)) == "file\n"


def test_a_file_is_laid_over_a_link_and_not_where_that_leads(runtime, bundle, linked):
    (bundle.rootfs / "there").symlink_to("elsewhere")
    (bundle.rootfs / "elsewhere").write_text("as it was\n")
    bundle.mount("/there", linked / "link", "bind", "dest-nofollow")
    assert runtime.out(bundle.args("/bin/cat", "/there", "/elsewhere")) == "of the file\nas it was\n"


def test_a_link_is_copied_even_one_that_leads_nowhere(runtime, bundle, linked):
    (linked / "broken").symlink_to("/no/such")
    bundle.mount("/deep/down/link", linked / "broken", "rbind", "copy-symlink")
    bundle.mount("/file", linked / "file", "rbind", "copy-symlink")
    assert runtime.out(bundle.shell("readlink /deep/down/link; cat /file")) == "/no/such\nof the file\n"


def test_a_copied_link_does_not_take_the_place_of_another_file(runtime, bundle, linked):
    (bundle.rootfs / "there").write_text("of the image")
    bundle.mount("/there", linked / "link", "bind", "copy-symlink")
    assert runtime.error(bundle).startswith(
        f"cannot run container 'c1': cannot mount '{linked}/link' at '/there': link 'there': File exists")
    (bundle.rootfs / "there").unlink()
    os.symlink("file", bundle.rootfs / "there")
    assert runtime.out(bundle.args("/bin/readlink", "/there")) == "file\n"


@pytest.mark.parametrize("word", LINKS)
def test_words_about_links_are_refused_where_they_mean_nothing(runtime, bundle, word):
    bundle.mount("/given", "tmpfs", word, kind="tmpfs")
    assert runtime.error(bundle) == (
        f"cannot run container 'c1': config.json: mounts[{len(bundle.config['mounts']) - 1}].options: src-nofollow, "
        "dest-nofollow and copy-symlink are for a bind without idmap")
