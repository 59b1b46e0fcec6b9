// SPDX-License-Identifier: Apache-2.0
#include "engine/files/changes.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/remove_tree.hpp"
#include "sys/file/tree.hpp"

namespace berth::engine {
namespace {

using image::OverlayXattr;
using ::testing::ElementsAre;

/// An upper directory over one layer; marks are those of users, which need no root.
class Changes : public ::testing::Test {
 protected:
  void SetUp() override {
    sys::Fd base = *sys::open_at(sys::cwd(), ::testing::TempDir(), O_RDONLY | O_DIRECTORY);
    temp_ = *sys::TempDir::make(base, "changes-");
    for (const char* path : {"upper", "lower", "lower/d", "lower/d/e"}) {
      ASSERT_TRUE(sys::make_directory(temp_.fd(), path).ok());
    }
    write("lower/d/f");
    write("lower/d/g");
  }
  void write(const std::string& path) { ASSERT_TRUE(sys::write_file(temp_.fd(), path, "").ok()); }
  void mark(const std::string& path, const std::string& name, const std::string& value) {
    sys::Fd fd = *sys::open_at(temp_.fd(), path, O_RDONLY);
    ASSERT_TRUE(sys::write_attribute(fd, name, value).ok());
  }
  std::vector<std::string> changes(OverlayXattr kind = OverlayXattr::user) {
    sys::Fd upper = *sys::open_at(temp_.fd(), "upper", O_RDONLY | O_DIRECTORY);
    // A directory has changed when its time has, and a clock may be too coarse to tell.
    auto directory = sys::open_at(upper, "d", O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (directory.ok()) ignore(sys::set_modified(*directory, {1, 0}, "d"));
    std::vector<sys::Fd> lower;
    lower.push_back(*sys::open_at(temp_.fd(), "lower", O_RDONLY | O_DIRECTORY));
    auto found = layer_changes(upper, lower, kind);
    std::vector<std::string> lines;
    if (!found.ok()) return {to_line(found.error()).substr(0, 60)};
    for (const PathChange& one : *found) lines.push_back(one.kind + (" " + one.path));
    return lines;
  }

  sys::TempDir temp_;
};

TEST_F(Changes, what_was_added_replaced_and_deleted) {
  ASSERT_TRUE(sys::make_directory(temp_.fd(), "upper/d").ok());
  write("upper/d/f");
  write("upper/d/new");
  write("upper/d/g");
  mark("upper/d/g", "user.overlay.whiteout", "y");
  EXPECT_THAT(changes(), ElementsAre("C /d", "C /d/f", "D /d/g", "A /d/new"));
}

TEST_F(Changes, in_a_directory_that_was_replaced_all_else_is_gone) {
  ASSERT_TRUE(sys::make_directory(temp_.fd(), "upper/d").ok());
  mark("upper/d", "user.overlay.opaque", "y");
  write("upper/d/f");
  EXPECT_THAT(changes(), ElementsAre("C /d", "D /d/e", "C /d/f", "D /d/g"));
}

TEST_F(Changes, marks_of_the_other_kind_are_a_programs) {
  ASSERT_TRUE(sys::make_directory(temp_.fd(), "upper/d").ok());
  mark("upper/d", "user.overlay.opaque", "y");
  write("upper/d/f");
  mark("upper/d/f", "user.overlay.whiteout", "y");
  EXPECT_THAT(changes(OverlayXattr::trusted), ElementsAre("C /d", "C /d/f"));
}

TEST_F(Changes, links_are_not_followed) {
  ASSERT_TRUE(sys::make_symlink("../lower/d", temp_.fd(), "upper/d").ok());
  ASSERT_TRUE(sys::make_symlink("/", temp_.fd(), "upper/root").ok());
  EXPECT_THAT(changes(), ElementsAre("C /d", "A /root"));
}

TEST_F(Changes, what_is_too_deep_is_an_error) {
  sys::Fd here = *sys::open_at(temp_.fd(), "upper", O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 401; ++depth) {
    ASSERT_TRUE(sys::make_directory(here, "d").ok());
    here = *sys::open_at(here, "d", O_RDONLY | O_DIRECTORY);
  }
  EXPECT_THAT(changes(), ElementsAre(::testing::StartsWith("compare '/d/d/d/")));
}

}  // namespace
}  // namespace berth::engine
