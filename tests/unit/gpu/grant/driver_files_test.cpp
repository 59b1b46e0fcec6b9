// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/driver_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kCuda = "/lib64/libcuda.so.570.133.20";

void add(Inventory& inventory, const std::string& name, bool elf32 = false) {
  DriverFile file;
  file.name = name;
  file.elf32 = elf32;
  inventory.files.push_back(std::move(file));
}

Inventory without_cuda() {
  Inventory inventory = gpu_machine(1);
  add(inventory, "libnvidia-ml.so.570.133.20");
  add(inventory, "libcuda.so.570.133.20", true);
  return inventory;
}

std::string line(const Inventory& inventory, const std::set<std::string>& granted) {
  auto checked = check_needed(inventory, granted);
  return checked.ok() ? "" : to_line(checked.error());
}

TEST(NeededFiles, who_computes_is_refused_without_libcuda) {
  Inventory inventory = without_cuda();
  constexpr const char* kTry =
      "; try: berth doctor gpu; without CUDA: --gpus all,capabilities=utility";
  for (const char* one : {"compute", "video"}) {
    EXPECT_EQ(line(inventory, {"utility", one}),
              std::string("driver 570.133.20 has no libcuda below '/'") + kTry);
  }
  inventory.unusable = {{"/lib64/libcudadebugger.so.570.133.20", "no ELF file", {"compute"}},
                        {kCuda, "of driver 555.1, and its other files are of 570", {"compute"}}};
  EXPECT_EQ(line(inventory, {"compute"}),
            "driver 570.133.20 has no usable libcuda below '/': '/lib64/libcuda.so.570.133.20': of "
            "driver 555.1, and its other files are of 570" +
                std::string(kTry));
  add(inventory, "libcuda.so.570.133.20");
  EXPECT_EQ(line(inventory, {"compute"}), "");
}

TEST(NeededFiles, who_does_not_compute_is_not) {
  EXPECT_EQ(line(without_cuda(), {"utility"}), "");
  EXPECT_EQ(line(without_cuda(), {"graphics", "display", "utility"}), "");
}

TEST(NeededFiles, nvml_is_needed_by_who_asks_for_nothing_else) {
  Inventory inventory = gpu_machine(1);
  EXPECT_EQ(line(inventory, {"utility"}),
            "driver 570.133.20 has no libnvidia-ml below '/'; try: berth doctor gpu");
  add(inventory, "libcuda.so.570.133.20");
  EXPECT_EQ(line(inventory, {"compute", "utility"}), "");
}

TEST(NeededFiles, a_driver_without_any_names_the_file_that_is_there) {
  Inventory inventory = gpu_machine(1);
  inventory.driver.library_version.clear();
  inventory.unusable = {{kCuda, "for aarch64, and this machine is x86_64", {"compute"}}};
  EXPECT_EQ(to_line(check_versions(inventory).error()),
            "the kernel module is 570.133.20 but no usable driver files were found below '/': "
            "'/lib64/libcuda.so.570.133.20': for aarch64, and this machine is x86_64; try: berth "
            "doctor gpu");
}

TEST(LostFiles, are_a_warning_of_one_line_where_they_are_wanted) {
  Inventory inventory = gpu_machine(1);
  auto warnings = [&](const std::set<std::string>& granted) {
    std::vector<std::string> out;
    warn_of_lost(inventory, granted, out);
    return out;
  };
  EXPECT_THAT(warnings({"compute", "utility"}), IsEmpty());
  inventory.unusable = {
      {"/lib64/libnvidia-ptxjitcompiler.so.570.133.20", "no ELF file", {"compute", "video"}},
      {"/lib64/libnvidia-opencl.so.570.133.20", "no ELF file", {"compute"}},
      {"/lib32/libcuda.so.555.1", "of driver 555.1", {"compat32"}}};
  EXPECT_THAT(warnings({"compute", "utility"}),
              ElementsAre("the container lacks a file of the driver: "
                          "'/lib64/libnvidia-ptxjitcompiler.so.570.133.20': no ELF file (and 1 "
                          "more); see 'berth doctor gpu'"));
  EXPECT_THAT(warnings({"compat32"}),
              ElementsAre("the container lacks a file of the driver: '/lib32/libcuda.so.555.1': of "
                          "driver 555.1; see 'berth doctor gpu'"));
  EXPECT_THAT(warnings({"graphics"}), IsEmpty());
}

}  // namespace
}  // namespace berth::gpu
