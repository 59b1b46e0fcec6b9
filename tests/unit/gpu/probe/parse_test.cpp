// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gpu/probe/driver_capabilities.hpp"
#include "gpu/probe/nodes.hpp"
#include "gpu/probe/nvml_facts.hpp"

namespace berth::gpu {
namespace {

TEST(NodeTable, takes_comments_and_short_paths) {
  auto nodes =
      parse_node_table("# made by root\n/dev/nvidia0 195 0 666\nnvidiactl 195 255 0660\n\n");
  ASSERT_TRUE(nodes.ok()) << to_line(nodes.error());
  ASSERT_EQ(nodes->size(), 2U);
  EXPECT_EQ((*nodes)[0].mode, 0666U);
  EXPECT_EQ((*nodes)[1].path, "/dev/nvidiactl");
  EXPECT_EQ((*nodes)[1].mode, 0660U);
  EXPECT_FALSE(parse_node_table("/dev/nvidia0 195 0 999").ok());
  EXPECT_FALSE(parse_node_table("/dev/nvidia0 195 -1 666").ok());
}

TEST(DriverFiles, a_version_has_at_least_two_numbers) {
  EXPECT_EQ(driver_version_of("libcuda.so.570.133.20"), "570.133.20");
  EXPECT_EQ(driver_version_of("libcuda.so.390.157"), "390.157");
  EXPECT_EQ(driver_version_of("libcuda.so.1"), "");
  EXPECT_EQ(driver_version_of("libcuda.so"), "");
  EXPECT_EQ(driver_version_of("libcuda.so.570..20"), "");
  EXPECT_EQ(driver_version_of("libcuda.so.570.133.20.bak"), "");
}

TEST(DriverFiles, names_belong_to_capabilities) {
  EXPECT_EQ(library_capabilities("libnvidia-ml"), std::vector<std::string>{"utility"});
  EXPECT_TRUE(library_capabilities("libGLdispatch").empty());
}

TEST(Nvml, pci_addresses_are_spelled_as_the_kernel_does) {
  EXPECT_EQ(kernel_pci_address("00000000:1B:00.0"), "0000:1b:00.0");
  EXPECT_EQ(kernel_pci_address("00010000:AF:00.0"), "10000:af:00.0");
  EXPECT_EQ(kernel_pci_address("0000:1b:00.0"), "0000:1b:00.0");
}

}  // namespace
}  // namespace berth::gpu
