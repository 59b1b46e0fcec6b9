// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/scan_text.hpp"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using facts::GpuCode;

TEST(ScanText, an_image_of_which_nothing_is_known) {
  EXPECT_EQ(scan_text({}), "program  unknown\n");
}

TEST(ScanText, targets_come_in_the_order_of_their_numbers) {
  facts::ImageFacts f;
  f.gpu_code = {{{{GpuCode::Kind::sass, "100f", ""},
                  {GpuCode::Kind::sass, "100", ""},
                  {GpuCode::Kind::sass, "90a", ""},
                  {GpuCode::Kind::sass, "90", ""},
                  {GpuCode::Kind::gfx, "gfx942", ""},
                  {GpuCode::Kind::gfx, "gfx1100", ""}},
                 false,
                 1,
                 "/k",
                 false}};
  EXPECT_NE(scan_text(f).find("sass 90 90a 100 100f, gfx gfx1100 gfx942"), std::string::npos);
}

TEST(ScanText, tells_the_version_of_cuda_and_what_is_for_linkers) {
  facts::ImageFacts f;
  facts::GpuCodeSet set;
  set.code = {{GpuCode::Kind::sass, "80", ""}};
  set.files = 1;
  set.example = "/k.so";
  set.cuda = "12.4";
  f.gpu_code = {set};
  set.example = "/k.a";
  set.cuda.clear();
  f.linker_code = {set};
  EXPECT_EQ(scan_text(f),
            "program   unknown\n"
            "gpu code  sass 80, CUDA 12.4  /k.so\n"
            "to link   sass 80             /k.a\n");
}

TEST(ScanText, has_a_fact_a_line_with_its_file) {
  facts::ImageFacts f;
  f.architecture = "amd64";
  f.program = "/usr/bin/python3.11";
  f.cpu = {{{3, "note"}, 2, "/usr/lib/libx.so", true}, {{3, "instructions"}, 1, "/app", false}};
  f.hwcaps = {"x86-64-v3", "x86-64-v4"};
  f.glibc = "2.36";
  f.unmet = {{"/opt/a\nb", "GLIBC_2.38", false}};
  f.gpu_code = {{{{GpuCode::Kind::sass, "80", ""},
                  {GpuCode::Kind::sass, "90a", ""},
                  {GpuCode::Kind::ptx, "90", "8.7"}},
                 true,
                 3,
                 "/opt/libk.so",
                 false}};
  f.cuda_runtimes = {"12.8"};
  f.compat = "575.57.08";
  f.compat_cuda = "12.9";
  f.compat_drivers = {535, 550};
  f.mpi = {{"/usr/lib/libmpi.so.40", "openmpi", "libmpi.so.40"}};
  EXPECT_EQ(scan_text(f),
            "program    amd64                               /usr/bin/python3.11\n"
            "processor  x86-64-v3, the loader refuses less  /usr/lib/libx.so and 1 more (the main "
            "program's)\n"
            "processor  x86-64-v3, by its instructions      /app\n"
            "also for   x86-64-v3 x86-64-v4\n"
            "libc       glibc 2.36\n"
            "missing    GLIBC_2.38                          /opt/a\\nb\n"
            "gpu code   sass 80 90a, ptx 90 (8.7), zstd     /opt/libk.so and 2 more\n"
            "cuda       12.8\n"
            "compat     575.57.08, CUDA 12.9, kernel modules 535 550\n"
            "mpi        openmpi libmpi.so.40                /usr/lib/libmpi.so.40\n");
}

}  // namespace
}  // namespace berth::cli
