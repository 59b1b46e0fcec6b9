// SPDX-License-Identifier: Apache-2.0
#include "gpu/inventory/kfd.hpp"

#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

TEST(Kfd, a_node_tells_the_address_and_the_architecture) {
  auto node = parse_kfd_node(
      "simd_count 440\nlocation_id 536881408\ndomain 1\ndrm_render_minor 130\n"
      "gfx_target_version 90010\nunique_id 11259375000000000001\nname aldebaran\n");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->pci_address, "0001:29:00.0");
  EXPECT_EQ(node->partition, 2U);
  EXPECT_EQ(node->architecture, "gfx90a");
  EXPECT_EQ(node->render_minor, 130U);
  EXPECT_EQ(node->unique_id, 11259375000000000001ULL);
}

TEST(Kfd, a_processor_is_no_gpu_and_lies_are_survived) {
  EXPECT_FALSE(parse_kfd_node("cpu_cores_count 64\nsimd_count 0\ndrm_render_minor 0\n"));
  EXPECT_FALSE(parse_kfd_node(""));
  EXPECT_FALSE(parse_kfd_node("simd_count -1\ndrm_render_minor 128\n"));
  auto node = parse_kfd_node(
      "simd_count 1\ndrm_render_minor 18446744073709551615\nlocation_id 18446744073709551615\n"
      "domain 18446744073709551615\ngfx_target_version 18446744073709551615\n");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(node->pci_address, "ffffffff:ff:1f.7");
}

}  // namespace
}  // namespace berth::gpu
