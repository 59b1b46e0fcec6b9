// SPDX-License-Identifier: Apache-2.0
#include "transfer/tar/acl.hpp"

#include <gtest/gtest.h>

namespace berth::transfer {
namespace {

std::string shown(const std::optional<Acl>& acl) {
  if (!acl) return "none";
  std::string text = acl->unknown_names ? "?" : "";
  for (const Acl::Entry& entry : acl->entries) {
    text += " " + std::to_string(entry.tag) + ":" + std::to_string(entry.permissions);
    if (entry.id != Acl::kNobody) text += ":" + std::to_string(entry.id);
  }
  return text;
}
std::string shown(std::string_view text) {
  return shown(Acl::parse_text(text));
}

TEST(Acl, reads_what_archivers_write) {
  std::string same = " 1:7 2:5:1001 4:5 8:4:2000 16:5 32:1";
  EXPECT_EQ(shown("user::rwx,user:1001:r-x,group::r-x,group:2000:r--,mask::r-x,other::--x"), same);
  EXPECT_EQ(
      shown("user::rwx,user:ada:r-x:1001,group::r-x,group:crew:r--:2000,mask::r-x,other::--x"),
      same);
  EXPECT_EQ(shown("# file: f\nother::--x\nmask::r-x #effective\ngroup:2000:r--\nuser::rwx\n"
                  "group::r-x\nuser:1001:r-x\n"),
            same);
  EXPECT_EQ(shown("u::rwx,u:1001:rx,g::rx,g:2000:r,mask:rx,other:x"), same);
}

TEST(Acl, a_name_without_a_number_is_nobody_here) {
  EXPECT_EQ(shown("user::rwx,user:root:rwx,group::r-x,mask::rwx,other::---"),
            "? 1:7 4:5 16:7 32:0");
}

TEST(Acl, refuses_what_the_kernel_would) {
  for (const char* bad :
       {"", "user::rwx", "user::rwx,group::r-x", "user::rwx,user:1:r--,group::r--,other::r--",
        "user::rwx,user::rwx,group::r--,other::r--", "user::rwz,group::r--,other::r--",
        "user::rwx,group::r--,other::r--,king::rwx", "user::rwx,group::r--,other::r--:1:2",
        "user::rwx,user:1:r--,user:1:rw-,group::r--,mask::rwx,other::r--", "user:rwx"}) {
    EXPECT_EQ(shown(bad), "none") << bad;
  }
}

TEST(Acl, a_value_is_read_as_it_was_written) {
  auto acl = Acl::parse_text("user::rwx,user:1001:r-x,group::r-x,mask::r-x,other::---");
  std::string value = acl->value();
  EXPECT_EQ(value.size(), 4 + 5 * 8u);
  EXPECT_EQ(shown(Acl::parse(value)), shown(acl));
  for (size_t cut = 0; cut < value.size(); ++cut) {
    EXPECT_FALSE(Acl::parse(value.substr(0, cut))) << cut;
  }
  for (size_t at : {0, 4, 6, 7}) {  // the version, a tag, permissions
    std::string damaged = value;
    damaged[at] = '\x09';
    EXPECT_FALSE(Acl::parse(damaged)) << at;
  }
  EXPECT_FALSE(Acl::parse(value.substr(0, 4) + std::string(8 * 5000, '\1')));
}

TEST(Acl, decides_what_a_mode_shows) {
  auto acl = Acl::parse_text("user::rw-,user:1:rwx,group::r--,mask::rwx,other::---");
  EXPECT_EQ(acl->apply_to(04000), 04670u);
  // Without the list the mask would be the group's.
  EXPECT_EQ(acl->tighten(0670), 0640u);
  EXPECT_TRUE(Acl::parse_text("user::rw-,group::r--,other::---")->is_minimal());
  EXPECT_FALSE(acl->is_minimal());
}

}  // namespace
}  // namespace berth::transfer
