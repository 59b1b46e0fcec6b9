// SPDX-License-Identifier: Apache-2.0
#include "mpi/find.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/mpi/system.hpp"

namespace berth::mpi {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> cores(Libraries libraries, const std::string& first = "") {
  std::vector<std::string> out;
  auto found = find_mpi(libraries, first);
  EXPECT_TRUE(found.ok());
  for (const Installation& one : *found) {
    out.push_back(std::string(name_of(one.abi.family)) + " " + one.core->path);
  }
  return out;
}

TEST(FindMpi, takes_what_the_loader_finds_and_then_the_usual_places) {
  System system;
  system.add_openmpi("/opt/hpcx/ompi/lib/", "40.30.6");
  system.add_mpich("/opt/intel/oneapi/mpi/2021.5/lib/release/", "libmpi.so.12", "12.0.0");
  system.add_mpich(System::kDebian, "libmpich.so.12");
  EXPECT_THAT(cores(system.libraries()),
              ElementsAre("MPICH ABI " + System::kDebian + "libmpich.so.12.2.2",
                          "Open MPI /opt/hpcx/ompi/lib/libmpi.so.40.30.6",
                          "MPICH ABI /opt/intel/oneapi/mpi/2021.5/lib/release/libmpi.so.12.0.0"));
}

TEST(FindMpi, takes_what_a_module_names_before_all_else) {
  System system;
  system.add_mpich(System::kDebian, "libmpi.so.12");
  system.add_mpich("/opt/site/lib/", "libmpich.so.12");
  const std::string module = "MPICH ABI /opt/site/lib/libmpich.so.12.2.2",
                    usual = "MPICH ABI " + System::kDebian + "libmpi.so.12.2.2";
  EXPECT_THAT(cores(system.libraries("relative:/opt/site/lib")), ElementsAre(module, usual));
  EXPECT_THAT(cores(system.libraries()), ElementsAre(usual));
  EXPECT_THAT(cores(system.libraries(), "/opt/site/lib"), ElementsAre(module, usual));
}

TEST(FindMpi, of_a_number_that_nobody_knows_is_told_all_the_same) {
  System system;
  system.add("/opt/x/libmpi.so.77", "libmpi.so.77");
  system.cache(
      {{"libmpi.so.77", "/opt/x/libmpi.so.77"}, {"libmpi_cxx.so.77", "/opt/x/libmpi.so.77"}});
  EXPECT_THAT(cores(system.libraries()), ElementsAre("unknown ABI /opt/x/libmpi.so.77"));
}

TEST(FindMpi, finds_none_in_a_system_without) {
  System system;
  system.add_hwloc();
  EXPECT_THAT(cores(system.libraries()), IsEmpty());
}

TEST(DirectoriesOf, are_those_that_a_library_has_plugins_in) {
  System system;
  Library& pal = system.add(System::kDebian + "libopen-pal.so.40.30.2", "libopen-pal.so.40");
  system.add_file(System::kDebian + "openmpi/lib/openmpi3/mca_pml_ob1.so");
  system.add_file("/etc/openmpi/openmpi-mca-params.conf");
  system.add_file("/etc/libibverbs.d/mlx5.driver");
  auto found = directories_of(system, pal);
  ASSERT_TRUE(found.ok());
  EXPECT_THAT(*found, ElementsAre(System::kDebian + "openmpi/lib/openmpi3", "/etc/openmpi"));
  Library& own = system.add("/opt/ompi/lib/libopen-pal.so.80", "libopen-pal.so.80");
  system.add_file("/opt/ompi/etc/openmpi-mca-params.conf");
  auto beside = directories_of(system, own);
  ASSERT_TRUE(beside.ok());
  EXPECT_THAT(*beside, ElementsAre("/opt/ompi/etc"));
}

}  // namespace
}  // namespace berth::mpi
