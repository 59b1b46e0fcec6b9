// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/gbm.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/grant/grant.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kUsual = "/usr/lib/x86_64-linux-gnu/gbm/nvidia-drm_gbm.so";

std::vector<std::string> backends(std::vector<std::string> capabilities,
                                  const GrantOptions& options = {}, bool elf32 = false,
                                  const std::string& version = "570.133.20") {
  Inventory inventory = gpu_machine(1);
  inventory.driver.module_version = inventory.driver.library_version = version;
  inventory.files.emplace_back().name = "libcuda.so." + version;
  DriverFile& file = inventory.files.emplace_back();
  file.name = "libnvidia-allocator.so." + version;
  file.host_path = "/lib64/" + file.name;
  file.soname = "libnvidia-allocator.so.1";
  file.capabilities = {"compute", "graphics", "display"};
  file.elf32 = elf32;
  Request request;
  request.want = Request::Want::all;
  request.capabilities = std::move(capabilities);
  auto grant = make_grant(request, inventory, options);
  EXPECT_TRUE(grant.ok()) << to_line(grant.error());
  std::vector<std::string> out;
  for (const GrantedFile& granted : grant->files) {
    if (granted.container_path.ends_with(kGbmBackend)) out.push_back(granted.container_path);
  }
  return out;
}

TEST(Gbm, backend_is_where_each_distributions_libgbm_looks) {
  EXPECT_THAT(backends({"graphics"}), ElementsAre(kUsual, "/usr/lib64/gbm/nvidia-drm_gbm.so",
                                                  "/usr/lib/gbm/nvidia-drm_gbm.so"));
  EXPECT_THAT(backends({"display", "compat32"}, {}, true),
              ElementsAre("/usr/lib/i386-linux-gnu/gbm/nvidia-drm_gbm.so",
                          "/usr/lib32/gbm/nvidia-drm_gbm.so"));
}

TEST(Gbm, backend_is_for_graphics_and_display) {
  EXPECT_THAT(backends({"compute"}), IsEmpty());
}

TEST(Gbm, a_driver_before_495_has_no_backend) {
  EXPECT_THAT(backends({"graphics"}, {}, false, "470.256.02"), IsEmpty());
}

TEST(Gbm, links_of_the_image_are_followed) {
  GrantOptions options;
  options.real_path = [](const std::string& path) {
    return path.starts_with("/usr/lib64/") ? "/usr/lib" + path.substr(10) : path;
  };
  EXPECT_THAT(backends({"graphics"}, options),
              ElementsAre(kUsual, "/usr/lib/gbm/nvidia-drm_gbm.so"));
}

TEST(Gbm, nothing_is_put_into_a_mount_of_the_user) {
  GrantOptions options;
  options.user_mounts = {{"/usr/lib64", "/srv/site"}, {"/usr/lib/gbm", "/srv/site"}};
  EXPECT_THAT(backends({"graphics"}, options), ElementsAre(kUsual));
}

}  // namespace
}  // namespace berth::gpu
