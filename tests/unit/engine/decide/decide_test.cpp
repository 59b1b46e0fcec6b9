// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/decide.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

namespace fs = std::filesystem;

TEST(PlaceholderLayer, goes_on_from_what_a_kill_left) {
  fs::path root = fs::path(testing::TempDir()) / ("layers-" + std::to_string(::getpid()));
  fs::create_directories(root / "placeholder/etc");
  auto layer = mountpoint_layer(root);
  ASSERT_TRUE(layer.ok()) << to_line(layer.error());
  for (const char* path : {"proc", "sys", "dev", "etc/hosts", "etc/hostname", "etc/resolv.conf"}) {
    EXPECT_TRUE(fs::exists(fs::path(*layer) / path)) << path;
  }
  fs::remove_all(root);
}

}  // namespace
}  // namespace berth::engine
