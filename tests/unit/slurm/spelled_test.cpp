// SPDX-License-Identifier: Apache-2.0
#include "slurm/spelled.hpp"

#include <gtest/gtest.h>

namespace berth::slurm {
namespace {

constexpr std::string_view kImages = "/var/spool/berth/slurm/image";

std::string name_of(std::string_view below) {
  auto found = read_spelled(std::string(kImages) + std::string(below), kImages);
  if (!found.ok()) return to_line(found.error());
  return found->program.empty() ? found->image : found->image + " runs " + found->program;
}

TEST(SlurmSpelled, a_path_spells_a_name) {
  EXPECT_EQ(name_of("/a/../slash/../b/../:/../2/../dot/../9/../rootfs"), "a/b:2.9");
  EXPECT_EQ(name_of("/x/../rootfs"), "x");
  EXPECT_EQ(name_of("/x/../program/../dot/../slash/../s/../rootfs"), "x runs ./s");
}

TEST(SlurmSpelled, another_path_is_refused_with_its_text) {
  for (const char* below :
       {"/rootfs", "/a/..", "/a/../", "/a/../b/../root", "/a/../../../rootfs", "/ab/../rootfs",
        "/./../rootfs", "//../rootfs", "/a/../b/rootfs", "s/a/../rootfs", "/program/../a/../rootfs",
        "/a/../program/../rootfs", "/a/../program/../b/../program/../c/../rootfs"}) {
    EXPECT_EQ(name_of(below),
              "the path '" + std::string(kImages) + below +
                  "' names no image; try: srun --container IMAGE, where cli_filter.lua is set up");
  }
  EXPECT_FALSE(read_spelled("/else/a/../rootfs", kImages).ok());
}

}  // namespace
}  // namespace berth::slurm
