// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plan/cgroup.hpp"

namespace berth::plan {
namespace {

std::string text_of(const std::string& path, SystemdManager manager = SystemdManager::system) {
  auto scope = parse_systemd_scope(path, "c1", manager);
  return scope.ok() ? scope->slice + " " + scope->unit : to_line(scope.error());
}

TEST(SystemdScope, is_made_of_the_three_parts_of_the_path) {
  EXPECT_EQ(text_of("kubepods-burstable.slice:cri-containerd:4f"),
            "kubepods-burstable.slice cri-containerd-4f.scope");
  EXPECT_EQ(text_of("-.slice:docker:4f"), "-.slice docker-4f.scope");
}

TEST(SystemdScope, has_a_default_for_each_part_but_the_name) {
  EXPECT_EQ(text_of(""), "system.slice berth-c1.scope");
  EXPECT_EQ(text_of("", SystemdManager::user), "user.slice berth-c1.scope");
  EXPECT_EQ(text_of(":libpod:4f"), "system.slice libpod-4f.scope");
  EXPECT_EQ(text_of("a.slice::4f"), "a.slice 4f.scope");
}

TEST(SystemdScope, refuses_what_systemd_would_not_take) {
  for (const char* path : {"/a/b", "a.slice", "a.slice:b", "a.slice:b:c:d", "a.slice:b:"}) {
    EXPECT_EQ(text_of(path), "expected slice:prefix:name, got '" + std::string(path) + "'");
  }
  for (const char* slice :
       {"a", ".slice", "-a.slice", "a-.slice", "a--b.slice", "a/b.slice", "a@b.slice", "a.scope"}) {
    EXPECT_EQ(text_of(std::string(slice) + ":b:c"),
              "expected the name of a slice, got '" + std::string(slice) + "'");
  }
  EXPECT_EQ(text_of("a.slice:b:c/d"), "'b-c/d.scope' cannot be the name of a unit");
  EXPECT_EQ(text_of("a.slice:b:c+d"), "'b-c+d.scope' cannot be the name of a unit");
  std::string long_name(250, 'x');
  EXPECT_EQ(text_of("a.slice:b:" + long_name),
            "'b-" + long_name + ".scope' cannot be the name of a unit");
}

TEST(SystemdScope, of_a_path_lies_in_the_slice_that_the_path_begins_with) {
  auto text = [](const std::string& path, SystemdManager manager) {
    auto scope = scope_of_path(path, manager);
    if (!scope.ok()) return to_line(scope.error());
    if (!*scope) return std::string("none");
    return ((*scope)->user ? "user: " : "") + (*scope)->slice + " " + (*scope)->unit;
  };
  EXPECT_EQ(text("berth-4f", SystemdManager::user), "user: user.slice berth-4f.scope");
  EXPECT_EQ(text("/berth-4f", SystemdManager::system), "system.slice berth-4f.scope");
  EXPECT_EQ(text("a-b.slice/berth-4f", SystemdManager::user), "user: a-b.slice berth-4f.scope");
  EXPECT_EQ(text("/a.slice/a-b.slice/berth-4f", SystemdManager::system),
            "a-b.slice berth-4f.scope");
  EXPECT_EQ(text("jobs/berth-4f", SystemdManager::user), "none");
  EXPECT_EQ(text("a.slice/jobs/berth-4f", SystemdManager::user), "none");
  EXPECT_EQ(text("a--b.slice/berth-4f", SystemdManager::user),
            "expected the name of a slice, got 'a--b.slice'");
}

}  // namespace
}  // namespace berth::plan
