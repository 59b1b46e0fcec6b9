// SPDX-License-Identifier: Apache-2.0
#include "mpi/wire.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/mpi/system.hpp"

namespace berth::mpi {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class OneSystem : public ::testing::Test {
 protected:
  OneSystem() {
    system_.add_glibc({"GLIBC_2.34"});
    system_.add("/app", "app", {"libmodel.so", "libc.so.6"});
    system_.add(System::kDebian + "libmodel.so", "libmodel.so", {"libmpi.so.40"});
  }

  /// The MPI of /app.
  Used used_by_app() {
    Libraries libraries = system_.libraries();
    auto program = libraries.at("/app");
    auto found = find_mpi_of(libraries, **program);
    EXPECT_TRUE(found.ok() && found->size() == 1);
    return *use_of(libraries, (*found)[0]);
  }
  /// Open MPI 4, and with `version` 5.
  Library& openmpi(const std::string& version = "") {
    Library& core = system_.add_openmpi(System::kDebian, version.empty() ? "40.30.4" : "40.40.7");
    if (version.empty()) return core;
    core.symbols.mpi_version = version;
    core.needed = {"libopen-pal.so.80", "libpmix.so.2", "libc.so.6"};
    return core;
  }

  System system_;
};

constexpr Wires kNone, kPmi{true, false}, kPmix{false, true};

TEST_F(OneSystem, knows_the_mpi_that_a_library_of_the_program_is_linked_with) {
  openmpi("5.0.7");
  system_.add_mpich(System::kDebian);  // nobody asks for it
  EXPECT_EQ(used_by_app().abi.version, "5.0.7");
}

TEST_F(OneSystem, a_program_calls_its_mpi_where_it_is_linked_with_a_part_of_it) {
  Libraries libraries = system_.libraries();
  EXPECT_FALSE(calls_mpi(**libraries.at("/app"))) << "a library of it is";
  for (const char* part :
       {"libmpi.so.40", "libmpi_mpifh.so.40", "libmpifort.so.12", "libmpich.so.12"}) {
    Library program;
    program.needed = {"libc.so.6", part};
    EXPECT_TRUE(calls_mpi(program)) << part;
  }
}

TEST_F(OneSystem, tells_two_mpis_of_one_program) {
  openmpi();
  system_.add_mpich(System::kDebian);
  system_.add("/app", "app", {"libmodel.so", "libmpi.so.12"});
  Libraries libraries = system_.libraries();
  auto found = find_mpi_of(libraries, **libraries.at("/app"));
  EXPECT_THAT(*found, SizeIs(2));
}

TEST_F(OneSystem, open_mpi_5_takes_pmix_alone) {
  openmpi("5.0.7");
  Used mpi = used_by_app();
  EXPECT_TRUE(objection({.slurm = true, .ranks = 2, .offers = kNone}, mpi));
  EXPECT_TRUE(objection({.slurm = true, .ranks = 2, .offers = kPmi}, mpi));
  EXPECT_FALSE(objection({.slurm = true, .ranks = 2, .offers = kPmix}, mpi));
  EXPECT_FALSE(objection({.slurm = true, .ranks = 1, .offers = kNone}, mpi))
      << "a world of one is right";
}

TEST_F(OneSystem, open_mpi_4_takes_pmi_by_a_plugin) {
  openmpi();
  Launch step{.slurm = true, .ranks = 2, .offers = kPmi};
  EXPECT_FALSE(objection(step, used_by_app())) << "nobody knows what is linked in";
  const std::string plugins = System::kDebian + "openmpi/lib/openmpi3/";
  system_.add_file(plugins + "mca_pmix_ext3x.so");
  EXPECT_TRUE(objection(step, used_by_app()));
  system_.add_file(plugins + "mca_pmix_s2.so");
  EXPECT_FALSE(objection(step, used_by_app()));
  EXPECT_TRUE(objection({.slurm = true, .ranks = 2, .offers = kNone}, used_by_app()));
}

TEST_F(OneSystem, open_mpi_4_counts_the_ranks_of_its_node) {
  Launch launch{.ranks = 4, .offers = kPmix, .unordered = true};
  openmpi("5.0.7");
  EXPECT_FALSE(objection(launch, used_by_app()));
  openmpi();
  Objection said = objection(launch, used_by_app());
  EXPECT_THAT(said.why, HasSubstr("4 ranks would crash or hang: Open MPI"));
  EXPECT_FALSE(said.alone);
  launch.unordered = false;
  EXPECT_FALSE(objection(launch, used_by_app()));
}

TEST_F(OneSystem, open_mpi_6_has_its_own_handles_in_another_library) {
  Library& core =
      system_.add(System::kDebian + "libmpi.so.40", "libmpi.so.40", {"libopen_mpi.so.40"});
  core.symbols.defined = {"MPI_Init"};
  EXPECT_EQ(used_by_app().abi.family, Family::openmpi);
  EXPECT_TRUE(objection({.slurm = true, .ranks = 2, .offers = kPmi}, used_by_app()));
}

TEST_F(OneSystem, mpich_takes_pmix_where_it_is_linked_with_it) {
  system_.add("/app", "app", {"libmpi.so.12"});
  Library& core = system_.add_mpich(System::kDebian);
  EXPECT_TRUE(objection({.ranks = 2, .offers = kPmix}, used_by_app()));
  EXPECT_FALSE(objection({.ranks = 2, .offers = kPmi}, used_by_app()));
  core.needed.emplace_back("libpmix.so.2");
  EXPECT_FALSE(objection({.ranks = 2, .offers = kPmix}, used_by_app()));
}

TEST_F(OneSystem, a_library_of_slurms_or_a_vendors_has_ways_of_its_own) {
  system_.add("/app", "app", {"libmpi.so.12"});
  system_.add_mpich(System::kDebian).needed.emplace_back("libpmi2.so.0");
  EXPECT_FALSE(objection({.slurm = true, .ranks = 2, .offers = kNone}, used_by_app()));
  system_.add("/app", "app", {"libmpi_gnu.so.12"});
  system_.add_mpich(System::kDebian, "libmpi_gnu.so.12");
  EXPECT_FALSE(objection({.slurm = true, .ranks = 2, .offers = kNone}, used_by_app()));
}

TEST_F(OneSystem, says_what_is_taken_what_there_is_and_what_to_type) {
  openmpi("5.0.7");
  Objection said = objection({.slurm = true, .ranks = 8, .offers = kNone}, used_by_app());
  EXPECT_EQ(said.why,
            "8 ranks would not find each other: Open MPI 5.0.7, libmpi.so.40 (40.40.7) "
            "takes PMIx, "
            "and this step has neither PMI nor PMIx");
  EXPECT_EQ(said.hint, "srun --mpi=pmix");
  said = objection({.slurm = false, .ranks = 8, .offers = kPmi}, used_by_app());
  EXPECT_THAT(said.why, HasSubstr("and this launcher has PMI"));
  EXPECT_EQ(said.hint, "the mpirun of Open MPI");
}

}  // namespace
}  // namespace berth::mpi
