// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/known_hooks.hpp"

#include <gtest/gtest.h>

namespace berth::gpu::cdi {
namespace {

std::optional<KnownHook> nvidia(std::vector<std::string> args,
                                const std::string& program = "/usr/bin/nvidia-cdi-hook") {
  args.insert(args.begin(), "nvidia-cdi-hook");
  return recognise({.hook_name = "createContainer", .path = program, .args = std::move(args)});
}

TEST(KnownHooks, make_links) {
  auto hook = nvidia({"create-symlinks", "--link", "libcuda.so.1::/usr/lib/libcuda.so",
                      "--link=../card0::/dev/dri/by-path/pci-0000:1b:00.0-card"});
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->links,
            (std::vector<oci::Link>{{"/usr/lib/libcuda.so", "libcuda.so.1"},
                                    {"/dev/dri/by-path/pci-0000:1b:00.0-card", "../card0"}}));
  EXPECT_FALSE(nvidia({"create-symlinks", "--link", "a:/b"}));
  EXPECT_FALSE(nvidia({"create-symlinks", "--link", "a::b"}));
  EXPECT_FALSE(nvidia({"create-symlinks", "--link", "a::/b::/c"}));
  EXPECT_FALSE(nvidia({"create-symlinks", "--link"}));
}

TEST(KnownHooks, name_folders_for_the_loader) {
  auto hook = nvidia(
      {"update-ldcache", "--ldconfig-path", "@/sbin/ldconfig", "--folder", "/a", "--folder=/b"});
  ASSERT_TRUE(hook);
  EXPECT_TRUE(hook->loader_cache);
  EXPECT_EQ(hook->loader_folders, (std::vector<std::string>{"/a", "/b"}));
  EXPECT_TRUE(nvidia({"update-ldcache"})->loader_cache);
  EXPECT_FALSE(nvidia({"update-ldcache", "--folder", "a"}));
  EXPECT_EQ(nvidia({"create-soname-symlinks", "--folder", "/a"})->soname_folders,
            std::vector<std::string>{"/a"});
}

TEST(KnownHooks, ask_for_forward_compatibility) {
  auto hook = nvidia({"enable-cuda-compat", "--host-driver-version=570.133.20"});
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->compat, (oci::CompatRequest{"570.133.20", "", "/usr/local/cuda/compat"}));
  hook = nvidia({"enable-cuda-compat", "--host-cuda-version", "12.8",
                 "--cuda-compat-container-root", "/opt/compat"});
  EXPECT_EQ(hook->compat, (oci::CompatRequest{"", "12.8", "/opt/compat"}));
  EXPECT_FALSE(nvidia({"enable-cuda-compat", "--cuda-compat-container-root", "opt"}));
}

TEST(KnownHooks, freeze_nodes_and_make_the_profile) {
  EXPECT_TRUE(nvidia({"disable-device-node-modification"})->freeze_device_nodes);
  EXPECT_TRUE(nvidia({"update-application-profile"})->application_profile);
  EXPECT_FALSE(nvidia({"disable-device-node-modification", "now"}));
}

TEST(KnownHooks, change_modes_only_to_what_they_are) {
  EXPECT_TRUE(nvidia({"chmod", "--mode", "755", "--path", "/dev/dri"}));
  EXPECT_FALSE(nvidia({"chmod", "--mode", "777", "--path", "/dev/dri"}));
  EXPECT_FALSE(nvidia({"chmod", "--mode", "755", "--path", "/etc"}));
}

TEST(KnownHooks, are_also_those_of_nvidia_ctk) {
  const std::string program = "/opt/toolkit/nvidia-ctk";
  EXPECT_TRUE(nvidia({"hook", "update-ldcache", "--folder", "/a"}, program));
  EXPECT_FALSE(nvidia({"update-ldcache", "--folder", "/a"}, program));
  EXPECT_FALSE(nvidia({"hook"}, program));
}

TEST(KnownHooks, are_not_other_programs_stages_names_or_flags) {
  EXPECT_FALSE(nvidia({"update-ldcache"}, "/usr/bin/nvidia-cdi-hook-2"));
  EXPECT_FALSE(nvidia({"sing"}));
  EXPECT_FALSE(nvidia({}));
  EXPECT_FALSE(nvidia({"update-ldcache", "--colour", "red"}));
  EXPECT_FALSE(nvidia({"update-ldcache", "/a"}));
  EXPECT_FALSE(recognise({.hook_name = "createRuntime",
                          .path = "/usr/bin/nvidia-cdi-hook",
                          .args = {"nvidia-cdi-hook", "update-ldcache"}}));
  EXPECT_FALSE(recognise({.hook_name = "createContainer", .path = "/usr/bin/nvidia-cdi-hook"}));
}

TEST(KnownHooks, are_our_own_too) {
  auto hook =
      recognise({.hook_name = "createContainer",
                 .path = "/usr/libexec/berth/berth-cdi-hook",
                 .args = {"berth-cdi-hook", "--link", "a::/b", "--loader-entry",
                          "libcuda.so.1::/usr/lib/libcuda.so.1::771", "--freeze-device-nodes"}});
  ASSERT_TRUE(hook);
  EXPECT_EQ(hook->links, (std::vector<oci::Link>{{"/b", "a"}}));
  EXPECT_EQ(hook->loader_entries,
            (std::vector<oci::LoaderLine>{{"libcuda.so.1", "/usr/lib/libcuda.so.1", 771}}));
  EXPECT_TRUE(hook->freeze_device_nodes);
}

}  // namespace
}  // namespace berth::gpu::cdi
