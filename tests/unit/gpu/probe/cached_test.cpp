// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "gpu/inventory/cache.hpp"
#include "gpu/probe/probe.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "unit/gpu/driver_tree.hpp"
#include "unit/gpu/probe/probing.hpp"

namespace berth::gpu {
namespace {

using testing::DriverTree;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::options_for;
using testing::Scratch;
using ::testing::StartsWith;
using testing::Warnings;
using testing::with_nvml;

class Cache : public ::testing::Test {
 protected:
  Result<Inventory> ask(Refresh refresh = Refresh::if_stale) {
    ProbeOptions options = options_for(tree_, false);
    options.state_dir = state_.path();
    return cached_inventory(options, refresh, log_);
  }
  std::string file() const { return state_.path() + "/gpu/" + cache_name(tree_.root()); }
  /// Marks the cached inventory, so that a later answer shows where it came from.
  void mark() {
    std::string text = testing::read_text(file());
    std::string_view rest;
    auto head = read_cache_head(text, rest);
    ASSERT_TRUE(head.has_value());
    auto inventory = json::read<Inventory>(rest, "cache");
    ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
    inventory->nvml = "marked";
    testing::write_text(file(), write_cached(*head, *inventory));
  }
  bool is_cached() { return ask().value().nvml == "marked"; }

  DriverTree tree_{"mig"};
  Scratch state_;
  Warnings log_;
};

TEST_F(Cache, answers_until_something_changes) {
  ASSERT_TRUE(ask().ok());
  mark();
  EXPECT_TRUE(is_cached());
  EXPECT_EQ(ask(Refresh::always)->nvml, "missing");
}

TEST_F(Cache, notices_a_damaged_library_that_is_overwritten) {
  const std::string path = tree_.libraries() + "/libnvidia-opencl.so.570.133.20";
  const std::string good = testing::read_text(path);
  testing::write_text(path, "\177ELF truncated");
  ASSERT_EQ(ask()->unusable.size(), 1U);
  mark();
  EXPECT_TRUE(is_cached());
  testing::write_text(path, good);
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_another_module) {
  ASSERT_TRUE(ask().ok());
  mark();
  testing::write_text(tree_.root() + "/sys/module/nvidia/version", "580.65.06\n");
  EXPECT_EQ(ask()->driver.module_version, "580.65.06");
}

TEST_F(Cache, notices_other_majors) {
  ASSERT_TRUE(ask().ok());
  mark();
  testing::write_text(tree_.root() + "/proc/devices",
                      "Character devices:\n195 nvidia\n300 nvidia-uvm\n");
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_an_upgraded_library) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::last_write_time(
      tree_.libraries() + "/libcuda.so.570.133.20",
      std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_a_slice_that_is_gone) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::remove_all(tree_.root() + "/proc/driver/nvidia/capabilities/gpu0/mig/gi9");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->gpus[0].mig.size(), 6U);
}

TEST_F(Cache, does_not_keep_what_was_found_while_the_machine_changed) {
  DriverTree tree("one", with_nvml());
  std::string program = state_.path() + "/probe";
  testing::write_text(program, "#!/bin/sh\necho 580.65.06 > '" + tree.root() +
                                   "/sys/module/nvidia/version'\nexit 1\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  ProbeOptions options = options_for(tree, false);
  options.state_dir = state_.path();
  options.probe_program = program;
  auto cached = [&] {
    EXPECT_TRUE(cached_inventory(options, Refresh::if_stale, log_).ok());
    return std::filesystem::exists(state_.path() + "/gpu/" + cache_name(tree.root()));
  };
  EXPECT_FALSE(cached());
  EXPECT_TRUE(cached());  // the second time it is as it was
}

TEST_F(Cache, a_damaged_file_is_made_anew) {
  ASSERT_TRUE(ask().ok());
  testing::write_text(file(), "{\"format\": 1, \"sentin");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  EXPECT_EQ(inventory->gpus.size(), 1U);
  EXPECT_THAT(testing::read_text(file()), HasSubstr("\"fingerprint\""));
}

TEST_F(Cache, a_directory_that_can_not_be_made_is_a_warning) {
  testing::write_text(state_.path() + "/gpu", "in the way");
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok()) << to_line(inventory.error());
  ASSERT_EQ(log_.lines.size(), 1U);
  EXPECT_THAT(log_.lines[0], StartsWith("cannot cache the GPU inventory: "));
}

TEST_F(Cache, many_at_once_get_the_same_answer) {
  std::vector<std::thread> threads;
  std::vector<size_t> slices(8);
  for (size_t& count : slices) {
    threads.emplace_back([this, &count] {
      ProbeOptions options = options_for(tree_, false);
      options.state_dir = state_.path();
      NullLog log;
      auto inventory = cached_inventory(options, Refresh::if_stale, log);
      count = inventory.ok() ? inventory->gpus[0].mig.size() : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(slices, ElementsAre(7, 7, 7, 7, 7, 7, 7, 7));
}

TEST_F(Cache, notices_a_module_that_was_loaded_again_with_other_numbers_for_the_fabric) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::string devices = testing::read_text(tree_.root() + "/proc/devices");
  testing::write_text(tree_.root() + "/proc/devices",
                      devices.substr(0, devices.find("226 drm")) + "229 drm\n\nBlock devices:\n");
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, does_not_mind_a_driver_of_something_else) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::string devices = testing::read_text(tree_.root() + "/proc/devices");
  testing::write_text(tree_.root() + "/proc/devices",
                      "Character devices:\n246 hidraw\n" + devices.substr(devices.find('\n') + 1));
  EXPECT_TRUE(is_cached());
}

TEST_F(Cache, notices_a_slice_that_was_made) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::string access = "DeviceFileMinor: 3\nDeviceFileMode: 292\nDeviceFileModify: 1\n";
  std::string mig = tree_.root() + "/proc/driver/nvidia/capabilities/gpu0/mig/gi0/";
  testing::write_text(mig + "access", access);
  testing::write_text(mig + "ci0/access", access);
  auto inventory = ask();
  ASSERT_TRUE(inventory.ok());
  EXPECT_EQ(inventory->gpus[0].mig.size(), 8U);
}

TEST_F(Cache, notices_a_library_that_was_removed_whatever_its_name) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::remove(tree_.libraries() + "/libnvidia-opencl.so.570.133.20");
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_a_channel_that_was_made) {
  ASSERT_TRUE(ask().ok());
  mark();
  testing::write_text(tree_.root() + "/dev/nvidia-caps-imex-channels/channel7", "");
  EXPECT_FALSE(is_cached());
}

TEST_F(Cache, notices_what_the_policy_adds) {
  ASSERT_TRUE(ask().ok());
  mark();
  ProbeOptions options = options_for(tree_, false);
  options.state_dir = state_.path();
  options.configured.files = {"/etc/other.json"};
  EXPECT_NE(cached_inventory(options, Refresh::if_stale, log_)->nvml, "marked");
}

TEST_F(Cache, is_not_believed_when_others_may_write_it) {
  ASSERT_TRUE(ask().ok());
  mark();
  std::filesystem::permissions(file(), std::filesystem::perms::group_write,
                               std::filesystem::perm_options::add);
  EXPECT_FALSE(is_cached());
  auto mode = std::filesystem::status(file()).permissions();
  EXPECT_EQ(mode, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

TEST_F(Cache, a_fifo_or_a_directory_in_its_place_does_not_stop_a_start) {
  ASSERT_TRUE(ask().ok());
  std::filesystem::remove(file());
  ASSERT_EQ(::mkfifo(file().c_str(), 0600), 0);
  EXPECT_EQ(ask()->gpus.size(), 1U);
  std::filesystem::remove(file());
  std::filesystem::create_directory(file());
  EXPECT_EQ(ask()->gpus.size(), 1U);
}

TEST_F(Cache, every_truncation_is_made_anew) {
  ASSERT_TRUE(ask().ok());
  std::string text = testing::read_text(file());
  for (size_t length = 0; length < text.size() - 1; length += 997) {
    testing::write_text(file(), text.substr(0, length));
    auto directory = sys::open_at(sys::cwd(), state_.path() + "/gpu", O_RDONLY | O_DIRECTORY);
    auto found = find_cached(*directory, *DriverRoot::open(tree_.root()), {});
    ASSERT_TRUE(found.ok()) << length;
    EXPECT_FALSE(found->has_value()) << length;
  }
}

TEST(CacheOfAmd, notices_another_partitioning) {
  DriverTree tree("amd");
  Scratch state;
  NullLog log;
  ProbeOptions options = options_for(tree, false);
  options.state_dir = state.path();
  ASSERT_TRUE(cached_inventory(options, Refresh::if_stale, log).ok());
  auto is_cached = [&] {
    auto directory = sys::open_at(sys::cwd(), state.path() + "/gpu", O_RDONLY | O_DIRECTORY);
    return find_cached(*directory, *DriverRoot::open(tree.root()), {})->has_value();
  };
  EXPECT_TRUE(is_cached());
  testing::write_text(tree.root() + "/sys/class/kfd/kfd/topology/generation_id", "3\n");
  EXPECT_FALSE(is_cached());
}

TEST(CacheName, differs_for_every_root) {
  EXPECT_EQ(cache_name("/"), "inventory.json");
  EXPECT_NE(cache_name("/a/b"), cache_name("/a-b"));
  EXPECT_NE(cache_name("/a_b"), cache_name("/a/b"));
  EXPECT_LT(cache_name("/" + std::string(4000, 'x')).size(), 250U);
}

}  // namespace
}  // namespace berth::gpu
