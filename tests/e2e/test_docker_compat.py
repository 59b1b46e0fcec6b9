# SPDX-License-Identifier: Apache-2.0
"""docs/docker-compat.md tells the truth about every verb and flag of docker's."""

import docker_compat
import pytest
from conftest import PROGRAMS

BERTH = str(PROGRAMS / "berth")


@pytest.fixture(scope="module")
def docker():
    release = docker_compat.docker_release()
    if release is None or not release.startswith(docker_compat.RELEASE):
        pytest.skip(f"{docker_compat.DOCKER} is {release}, not {docker_compat.RELEASE}x")


def test_the_table_lists_every_verb_and_flag_of_docker_truthfully(docker):
    assert list(docker_compat.faults(BERTH)) == []


def test_the_table_knows_what_docker_has(docker):
    """The reader of docker's help works: an empty list of verbs would be true of any table."""
    sections = docker_compat.docker_sections()
    assert {"run", "ps", "images", "volume create", "system df"} <= set(sections)
    assert sections["run"][1]["detach"] == "d" and len(sections["run"][1]) > 80
    assert sections["ps"][0] == ["ps", "container ls", "container ps", "container list"]


def row(state, words="", letter=""):
    return docker_compat.Flag(letter, state, words)


@pytest.mark.parametrize("state, words, mine, complaint", [
    ("same", "", {}, "same in the table, but berth does not have it"),
    ("differs", "how", {}, "differs in the table, but berth does not have it"),
    ("absent", "why", {"x": ""}, "absent in the table, but berth has it"),
    ("absent", "", {}, "absent, but how or why is not said"),
    ("differs", "", {"x": ""}, "differs, but how or why is not said"),
    ("perhaps", "", {"x": ""}, "'perhaps' is none of same, differs, absent"),
])
def test_a_row_that_is_not_true_is_found(state, words, mine, complaint):
    section = docker_compat.Section(["v"], "same", "", {"x": row(state, words)})
    assert f"v --x: {complaint}" in list(docker_compat.verb_faults("v", section, {"x": ""}, mine))


def test_a_flag_that_is_not_listed_is_found():
    section = docker_compat.Section(["v"], "same", "", {"old": row("absent", "why")})
    assert list(docker_compat.verb_faults("v", section, {"new": ""}, {})) == [
        "v --new: docker has it, the table has not", "v --old: in the table, but docker has it not"]


def test_a_verb_that_is_wrongly_absent_is_found():
    section = docker_compat.Section(["v"], "absent", "because")
    assert list(docker_compat.verb_faults("v", section, {"x": ""}, {})) == [
        "v: absent in the table, but berth has it"]
    section = docker_compat.Section(["v"], "same", "")
    assert list(docker_compat.verb_faults("v", section, {}, None)) == [
        "v: same in the table, but berth does not have it"]


def test_a_letter_that_berth_does_not_take_is_found():
    section = docker_compat.Section(["v"], "same", "", {"x": row("same", "", "c")})
    assert list(docker_compat.verb_faults("v", section, {"x": "c"}, {"x": ""})) == [
        "v --x: same in the table, but berth does not take -c"]


@pytest.mark.parametrize("words, answer, complaint", [
    ("why", "why", None),
    ("why", "another; try: x", "v --x: the table says 'why', berth 'another; try: x'"),
    ("why", "", "v --x: absent, but berth does not say why to who types it"),
])
def test_a_reason_that_berth_does_not_give_is_found(words, answer, complaint):
    section = docker_compat.Section(["v"], "same", "", {"x": row("absent", words)})
    found = list(docker_compat.reason_faults(section, lambda *typed: answer))
    assert found == ([complaint] if complaint else [])


def test_lists_of_lines_that_are_not_those_of_the_data_are_found(monkeypatch):
    """The document holds what the data says today."""
    assert docker_compat.written_lines() == docker_compat.compat_lines.text()
    monkeypatch.setattr(docker_compat.compat_lines, "differences", lambda: ({"new": ["run x"]}, 1))
    assert docker_compat.written_lines() != docker_compat.compat_lines.text()
