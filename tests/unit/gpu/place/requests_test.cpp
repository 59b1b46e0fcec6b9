// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "gpu/place/finish.hpp"
#include "unit/gpu/driver_tree.hpp"

namespace berth::gpu {
namespace {

using testing::read_text;
using testing::Scratch;

TEST(PlaceRequests, cover_the_parameters_that_let_programs_make_nodes) {
  Scratch scratch;
  oci::ContainerEdits edits;
  edits.freeze_device_nodes = true;
  ASSERT_TRUE(place_requests(edits, scratch.path(), "A: 1\nModifyDeviceFiles: 1\nB: 2\n").ok());
  ASSERT_EQ(edits.mounts.size(), 1u);
  EXPECT_EQ(edits.mounts[0].destination, "/proc/driver/nvidia/params");
  EXPECT_EQ(read_text(edits.mounts[0].source), "A: 1\nModifyDeviceFiles: 0\nB: 2\n");
  EXPECT_FALSE(edits.freeze_device_nodes);
}

TEST(PlaceRequests, cover_nothing_where_there_is_nothing_to_say) {
  Scratch scratch;
  for (const char* params : {"", "ModifyDeviceFiles: 0\n"}) {
    oci::ContainerEdits edits;
    edits.freeze_device_nodes = true;
    ASSERT_TRUE(place_requests(edits, scratch.path(), params).ok());
    EXPECT_TRUE(edits.mounts.empty());
  }
  oci::ContainerEdits edits;
  ASSERT_TRUE(place_requests(edits, scratch.path(), "ModifyDeviceFiles: 1\n").ok());
  EXPECT_TRUE(edits.mounts.empty());
}

TEST(PlaceRequests, name_the_granted_gpus_in_the_application_profile) {
  Scratch scratch;
  oci::ContainerEdits edits;
  edits.application_profile = true;
  for (const char* path : {"/dev/nvidia0", "/dev/nvidia5", "/dev/nvidiactl", "/dev/nvidia64",
                           "/dev/nvidia-uvm", "/dev/dri/card0"}) {
    edits.device_nodes.push_back({.path = path});
  }
  ASSERT_TRUE(place_requests(edits, scratch.path(), "").ok());
  ASSERT_EQ(edits.mounts.size(), 1u);
  EXPECT_EQ(edits.mounts[0].destination,
            "/etc/nvidia/nvidia-application-profiles-rc.d/10-container.conf");
  EXPECT_EQ(read_text(edits.mounts[0].source),
            "{\"profiles\": [{\"name\": \"_container_\", \"settings\": [\"EGLVisibleDGPUDevices\", "
            "33]}], \"rules\": [{\"pattern\": [], \"profile\": \"_container_\"}]}\n");
}

}  // namespace
}  // namespace berth::gpu
