// SPDX-License-Identifier: Apache-2.0
#include "mpi/libraries.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/mpi/system.hpp"

namespace berth::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> paths(Libraries& libraries, const std::string& name) {
  std::vector<std::string> out;
  auto all = libraries.find_all(name);
  EXPECT_TRUE(all.ok());
  for (const Library* one : *all) out.push_back(one->path);
  return out;
}

TEST(Libraries, are_found_in_the_order_of_the_loader_and_each_once) {
  System system;
  system.add("/opt/a/libx.so.1", "libx.so.1");
  system.add("/opt/b/libx.so.1.2", "libx.so.1");
  system.add("/usr/lib64/libx.so.1", "libx.so.1");
  system.cache({{"libx.so.1", "/opt/b/libx.so.1"}, {"libx.so.1", "/opt/b/libx.so.1.2"}});
  Libraries libraries = system.libraries("relative:/none:/opt/a");
  EXPECT_THAT(paths(libraries, "libx.so.1"),
              ElementsAre("/opt/a/libx.so.1", "/opt/b/libx.so.1.2", "/usr/lib64/libx.so.1"));
  EXPECT_THAT(paths(libraries, "liby.so.1"), IsEmpty());
  EXPECT_THAT(paths(libraries, "../libx.so.1"), IsEmpty());
}

TEST(Libraries, that_do_not_read_are_not_there) {
  System system;
  system.add_file("/usr/lib64/libx.so.1", "no library");
  system.add_file("/etc/ld.so.cache", "no cache");
  Libraries libraries = system.libraries();
  EXPECT_THAT(paths(libraries, "libx.so.1"), IsEmpty());
  auto at = libraries.at("/usr/lib64/libx.so.1");
  ASSERT_TRUE(at.ok());
  EXPECT_EQ(*at, nullptr);
}

// Of bytes that lead anywhere: the name in them becomes a file of ours.
TEST(Libraries, a_library_without_a_usable_soname_is_called_as_its_file) {
  System system;
  std::string empty(64, '\0');
  empty.replace(0, 7,
                "\x7f"
                "ELF\2\1\1");
  empty[16] = 3;
  empty[18] = static_cast<char>(scan::kMachineX86_64);
  system.add_file("/lib/libx.so.1.2", empty);
  auto read = read_library(system, {"/lib/libx.so.1.2", empty.size()}, scan::kMachineX86_64);
  ASSERT_TRUE(read.ok());
  ASSERT_TRUE(read->has_value());
  EXPECT_EQ((*read)->soname, "libx.so.1.2");
  auto other = read_library(system, {"/lib/libx.so.1.2", empty.size()}, scan::kMachineAarch64);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(other->has_value());
}

}  // namespace
}  // namespace berth::mpi
