// SPDX-License-Identifier: Apache-2.0
// What `cp` makes of its words, before any container is looked for; files are copied in the
// integration tests.
#include "engine/files/copy.hpp"

#include <gtest/gtest.h>

#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

CopySide host(std::string path) {
  return {"", std::move(path)};
}

TEST(CopySide, of_a_container_has_a_colon_before_which_there_is_no_path) {
  EXPECT_EQ(parse_copy_side("web:/etc/hosts"), (CopySide{"web", "/etc/hosts"}));
  EXPECT_EQ(parse_copy_side("web:etc"), (CopySide{"web", "etc"}));
  EXPECT_EQ(parse_copy_side("web:"), (CopySide{"web", ""}));
  EXPECT_EQ(parse_copy_side("web:/a:b"), (CopySide{"web", "/a:b"}));
}

TEST(CopySide, of_the_host_starts_as_a_path_or_has_no_colon) {
  for (const char* path : {"/tmp/a:b", "./a:b", "../a:b", ".hidden:b", "plain", "-", ""}) {
    EXPECT_EQ(parse_copy_side(path), host(path)) << path;
  }
}

class CopyFiles : public testing::Test {
 protected:
  Error refusal(const CopySide& from, const CopySide& to) {
    NullLog log;
    std::string root = testing::TempDir() + "/no-such-store";
    Context context{{root, root + "/state", "/none", "/"}, Identity::root, {}, log};
    return copy_files(context, from, to, {}).error();
  }
};

TEST_F(CopyFiles, takes_just_one_container) {
  Error none = refusal(host("/a"), host("/b"));
  EXPECT_EQ(none.kind, Kind::usage);
  EXPECT_EQ(none.what, "must specify at least one container source");
  Error both = refusal({"web", "/a"}, {"db", "/b"});
  EXPECT_EQ(both.kind, Kind::usage);
  EXPECT_EQ(both.hint, "berth cp web:/a - | berth cp - db:/b");
}

TEST_F(CopyFiles, names_the_container_that_is_not_there) {
  for (const Error& error : {refusal({"web", "/a"}, host("/b")), refusal(host("/a"), {"web", "/"}),
                             refusal(host("-"), {"web", "/"})}) {
    EXPECT_EQ(error.kind, Kind::not_found);
    EXPECT_NE(to_line(error).find("web"), std::string::npos) << to_line(error);
  }
}

}  // namespace
}  // namespace berth::engine
