// SPDX-License-Identifier: Apache-2.0
#include "mpi/abi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Library library(const std::string& path, const std::string& soname) {
  Library out;
  out.path = path;
  out.soname = soname;
  out.symbols.defined = {"MPI_Init"};
  return out;
}

Abi abi(Family family, std::vector<uint64_t> numbers) {
  return {family, "libmpi.so." + std::to_string(numbers[0]), std::move(numbers), ""};
}

TEST(Abi, takes_its_numbers_from_the_files_own_name) {
  Abi of = classify(library("/usr/lib64/libmpi.so.12.2.2", "libmpi.so.12"));
  EXPECT_EQ(of.family, Family::mpich);
  EXPECT_THAT(of.numbers, ElementsAre(12, 2, 2));
  EXPECT_THAT(classify(library("/opt/libmpi_gnu_123.so.12.0.0", "libmpi_gnu_123.so.12")).numbers,
              ElementsAre(12, 0, 0));
}

TEST(Abi, does_not_believe_a_file_whose_name_is_not_that_of_its_soname) {
  EXPECT_THAT(classify(library("/opt/libmpi_gnu.so.9.9", "libmpi.so.12")).numbers, ElementsAre(12));
  EXPECT_THAT(classify(library("/opt/libmpi.so.40.1", "libmpi.so.12")).numbers, ElementsAre(12));
}

TEST(Abi, tells_open_mpi_1_10_from_mpich_which_have_one_soname) {
  Library old = library("/usr/lib64/openmpi/lib/libmpi.so.12.0.3", "libmpi.so.12");
  old.needed = {"libopen-rte.so.12", "libopen-pal.so.13"};
  EXPECT_EQ(classify(old).family, Family::openmpi);
  Library one_piece = library("/usr/lib64/openmpi/lib/libmpi.so.12.0.3", "libmpi.so.12");
  one_piece.symbols.defined.insert("ompi_mpi_comm_world");
  EXPECT_EQ(classify(one_piece).family, Family::openmpi);
}

TEST(Abi, knows_libraries_of_vendors) {
  for (const char* name : {"libmpich.so.12", "libmpi_cray.so.12", "libmpi_gnu_91.so.12",
                           "libmpi_intel.so.12", "libmpi_nvidia.so.12"}) {
    EXPECT_EQ(classify(library(std::string("/x/") + name, name)).family, Family::mpich) << name;
  }
  EXPECT_EQ(classify(library("/x/libmpi_abi.so.0", "libmpi_abi.so.0")).family, Family::standard);
}

TEST(Abi, of_another_library_is_unknown) {
  for (const char* name : {"libmpi.so.0", "libmpich.so.10", "libmpi_mt.so.4", "libmpi.so"}) {
    EXPECT_EQ(classify(library(std::string("/x/") + name, name)).family, Family::unknown) << name;
  }
  Library empty = library("/x/libmpi.so.12", "libmpi.so.12");
  empty.symbols.defined.clear();
  EXPECT_EQ(classify(empty).family, Family::unknown);
}

TEST(Abi, is_described_with_the_products_version) {
  Library core = library("/x/libmpi.so.40.30.4", "libmpi.so.40");
  core.needed = {"libopen-pal.so.40"};
  core.symbols.mpi_version = "4.1.4";
  EXPECT_EQ(describe(classify(core)), "Open MPI 4.1.4, libmpi.so.40 (40.30.4)");
}

TEST(Compare, never_mixes_families) {
  Verdict verdict =
      compare(abi(Family::mpich, {12, 0}), abi(Family::openmpi, {12, 0}), Rule::major);
  EXPECT_FALSE(verdict.fits);
  EXPECT_THAT(verdict.why, HasSubstr("of another ABI"));
  EXPECT_FALSE(
      compare(abi(Family::unknown, {12, 0}), abi(Family::unknown, {12, 0}), Rule::major).fits);
}

TEST(Compare, by_major_asks_for_the_same_first_number) {
  auto fits = [](std::vector<uint64_t> image, std::vector<uint64_t> host) {
    return compare(abi(Family::openmpi, std::move(image)), abi(Family::openmpi, std::move(host)),
                   Rule::major)
        .fits;
  };
  EXPECT_TRUE(fits({40, 30}, {40, 20}));
  EXPECT_TRUE(fits({40}, {40, 20}));
  EXPECT_FALSE(fits({20, 10}, {40, 30}));
}

TEST(Compare, by_full_warns_of_an_older_host) {
  auto told = [](std::vector<uint64_t> image, std::vector<uint64_t> host) {
    Verdict verdict = compare(abi(Family::mpich, std::move(image)),
                              abi(Family::mpich, std::move(host)), Rule::full);
    EXPECT_TRUE(verdict.fits);
    return verdict.warning;
  };
  EXPECT_EQ(told({12, 1}, {12, 2}), "");
  EXPECT_EQ(told({12, 2}, {12, 2}), "");
  EXPECT_EQ(told({12, 2}, {12, 1}), "the host's 12.1 is older than the image's 12.2");
  EXPECT_NE(told({12}, {12, 1}), "");
}

TEST(Compare, by_strict_asks_for_the_same_second_number) {
  auto fits = [](std::vector<uint64_t> image, std::vector<uint64_t> host) {
    return compare(abi(Family::mpich, std::move(image)), abi(Family::mpich, std::move(host)),
                   Rule::strict);
  };
  EXPECT_TRUE(fits({12, 2, 2}, {12, 2, 0}).fits);
  EXPECT_EQ(fits({12, 1}, {12, 2}).why, "by the rule 'strict' 12.2 is not 12.1");
  EXPECT_FALSE(fits({12}, {12}).fits);
}

}  // namespace
}  // namespace berth::mpi
