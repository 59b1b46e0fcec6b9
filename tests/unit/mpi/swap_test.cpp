// SPDX-License-Identifier: Apache-2.0
#include "mpi/swap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/mpi/system.hpp"

namespace berth::mpi {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

const std::string kHostPlace = "/opt/site/lib/";

/// A node with Open MPI as a module, and an image with Debian's.
class SwapOpenMpi : public ::testing::Test {
 protected:
  SwapOpenMpi() {
    image_.add_glibc({"GLIBC_2.2.5", "GLIBC_2.34"});
    image_.add_openmpi(System::kDebian, "40.20.1");
    image_.add_hwloc();
    host_.add_glibc({"GLIBC_2.2.5", "GLIBC_2.34", "GLIBC_2.38"});
    core_ = &host_.add_openmpi(kHostPlace);
    host_.add_hwloc();
  }

  Decision decide(const Question& question = {}) {
    Libraries image = image_.libraries(), host = host_.libraries("/opt/site/lib");
    auto decision = mpi::decide(image, host, question);
    EXPECT_TRUE(decision.ok());
    return std::move(*decision);
  }

  System image_, host_;
  Library* core_ = nullptr;
};

std::vector<std::string> host_paths(const Decision& decision) {
  std::vector<std::string> out;
  for (const Brought& one : decision.libraries) out.push_back(one.host_path);
  return out;
}

const Brought* find(const Decision& decision, const std::string& name) {
  for (const Brought& one : decision.libraries) {
    if (one.names[0] == name) return &one;
  }
  return nullptr;
}

const Note* note(const Decision& decision, const std::string& object) {
  for (const Note& one : decision.notes) {
    if (one.object == object) return &one;
  }
  return nullptr;
}

TEST_F(SwapOpenMpi, a_program_that_needs_more_of_its_mpi_than_the_host_has_keeps_it) {
  image_.add(System::kDebian + "libopen_mpi.so.40", "libopen_mpi.so.40");
  image_.add("/app", "app", {"libmpi.so.40", "libopen_mpi.so.40"});
  Question question;
  question.program = "/app";
  Decision decision = decide(question);
  EXPECT_FALSE(decision.swapped());
  EXPECT_THAT(decision.own_stays,
              HasSubstr("/app needs libopen_mpi.so.40, which the host's Open MPI"));
}

TEST_F(SwapOpenMpi, brings_the_mpi_in_one_piece_and_leaves_the_rest_to_the_image) {
  Decision decision = decide();
  EXPECT_TRUE(decision.swapped());
  EXPECT_TRUE(decision.openmpi);
  EXPECT_THAT(host_paths(decision), UnorderedElementsAre(kHostPlace + "libmpi.so.40.30.4",
                                                         kHostPlace + "libopen-rte.so.40.30.2",
                                                         kHostPlace + "libopen-pal.so.40.30.2"));
  const Brought* core = find(decision, "libmpi.so.40");
  ASSERT_NE(core, nullptr);
  EXPECT_THAT(core->over, ElementsAre(System::kDebian + "libmpi.so.40.20.1"));
  ASSERT_NE(note(decision, "libhwloc.so.15"), nullptr);
  EXPECT_FALSE(note(decision, "libhwloc.so.15")->given);
  EXPECT_EQ(decision.why,
            "Open MPI 4.1.4, libmpi.so.40 (40.20.1) is replaced by Open MPI 4.1.4, libmpi.so.40 "
            "(40.30.4) of the host (/opt/site/lib/libmpi.so.40.30.4)");
}

TEST_F(SwapOpenMpi, brings_a_library_whose_like_in_the_image_lacks_a_symbol) {
  host_.add(kHostPlace + "libopen-pal.so.40.30.2", "libopen-pal.so.40", {"libhwloc.so.15"})
      .symbols.undefined = {"hwloc_get_numanode_objs", "malloc"};
  host_.add_hwloc().symbols.defined.insert("hwloc_get_numanode_objs");
  Decision decision = decide();
  const Brought* hwloc = find(decision, "libhwloc.so.15");
  ASSERT_NE(hwloc, nullptr);
  EXPECT_EQ(hwloc->why,
            "needed by libopen-pal.so.40.30.2, for which the image's has no "
            "hwloc_get_numanode_objs");
  EXPECT_THAT(hwloc->over, ElementsAre(System::kDebian + "libhwloc.so.15.6.1"));
}

TEST_F(SwapOpenMpi, brings_a_library_that_the_image_does_not_have) {
  core_->needed.push_back("libsite.so.1");
  host_.add(kHostPlace + "libsite.so.1", "libsite.so.1");
  Decision decision = decide();
  ASSERT_NE(find(decision, "libsite.so.1"), nullptr);
  EXPECT_THAT(find(decision, "libsite.so.1")->over, IsEmpty());
}

TEST_F(SwapOpenMpi, names_the_version_and_the_symbol_of_glibc_that_the_image_lacks) {
  core_->symbols.needs = {{"libc.so.6", "GLIBC_2.34", ""},
                          {"libc.so.6", "GLIBC_2.38", "__isoc23_strtol"}};
  Decision decision = decide();
  EXPECT_FALSE(decision.swapped());
  EXPECT_TRUE(decision.has_mpi);
  EXPECT_EQ(decision.why,
            "Open MPI 4.1.4, libmpi.so.40 (40.20.1) stays: the image's libc.so.6 has no GLIBC_2.38 "
            "(__isoc23_strtol), needed by /opt/site/lib/libmpi.so.40.30.4");
}

TEST_F(SwapOpenMpi, takes_the_next_that_fits_and_else_tells_of_the_first) {
  core_->symbols.needs = {{"libc.so.6", "GLIBC_2.38", ""}};
  Library& next = host_.add_openmpi(System::kDebian, "40.30.9");
  EXPECT_THAT(decide().why, HasSubstr("of the host (" + next.path + ")"));
  next.symbols.needs = {{"libc.so.6", "GLIBC_2.99", ""}};
  host_.add_mpich(System::kDebian);
  EXPECT_THAT(decide().why, HasSubstr("GLIBC_2.38"));
}

TEST_F(SwapOpenMpi, holds_what_comes_along_against_glibc_as_well) {
  host_.add(kHostPlace + "libopen-pal.so.40.30.2", "libopen-pal.so.40").symbols.needs = {
      {"libm.so.6", "GLIBC_2.29", "exp"}};
  EXPECT_THAT(decide().why, HasSubstr("the image's libm.so.6 is not there, needed by "
                                      "/opt/site/lib/libopen-pal.so.40.30.2"));
}

TEST_F(SwapOpenMpi, goes_on_without_plugins_that_the_image_cannot_load) {
  Library& plugin = host_.add(kHostPlace + "openmpi/mca_mtl_ofi.so", "mca_mtl_ofi.so",
                              {"libmpi.so.40", "libfabric.so.1", "libgone.so.1"});
  plugin.symbols.needs = {{"libc.so.6", "GLIBC_2.38", ""}};
  Library& fabric = host_.add(System::kDebian + "libfabric.so.1.20.0", "libfabric.so.1");
  Decision decision = decide();
  EXPECT_THAT(host_paths(decision), Contains(fabric.path));
  EXPECT_THAT(decision.directories, ElementsAre("/opt/site/lib/openmpi"));
  fabric.symbols.needs = {{"libc.so.6", "GLIBC_2.38", "arc4random"}};
  decision = decide();
  EXPECT_TRUE(decision.swapped());
  EXPECT_THAT(host_paths(decision), Not(Contains(fabric.path)));
  ASSERT_NE(note(decision, "libfabric.so.1"), nullptr);
  EXPECT_THAT(note(decision, "libfabric.so.1")->why, HasSubstr("GLIBC_2.38 (arc4random)"));
}

TEST_F(SwapOpenMpi, brings_the_fabric_of_the_host_with_plugins_of_its_own) {
  core_->needed.push_back("libucp.so.0");
  host_.add(System::kDebian + "libucp.so.0.0.0", "libucp.so.0", {"libucs.so.0"});
  host_.add(System::kDebian + "libucs.so.0.0.0", "libucs.so.0");
  host_.add(System::kDebian + "ucx/libuct_ib.so.0.0.0", "libuct_ib.so.0", {"libibverbs.so.1"});
  host_.add(System::kDebian + "libibverbs.so.1.14", "libibverbs.so.1");
  host_.add(System::kDebian + "libibverbs/libmlx5-rdmav34.so", "libmlx5-rdmav34.so",
            {"libmlx5.so.1"});
  host_.add(System::kDebian + "libmlx5.so.1.24", "libmlx5.so.1");
  image_.add(System::kDebian + "libucp.so.0.0.0", "libucp.so.0");
  Decision decision = decide();
  for (const char* name : {"libucp.so.0", "libucs.so.0", "libibverbs.so.1", "libmlx5.so.1"}) {
    EXPECT_NE(find(decision, name), nullptr) << name;
  }
  EXPECT_THAT(decision.directories,
              UnorderedElementsAre(System::kDebian + "ucx", System::kDebian + "libibverbs"));
}

TEST_F(SwapOpenMpi, lays_it_over_every_file_that_comes_before_the_cache) {
  image_.add_openmpi("/opt/own/lib/", "40.10.0");
  Library& program = image_.add("/app", "app", {"libmpi.so.40"});
  program.search = "/opt/own/lib";
  Question question;
  question.program = "/app";
  Decision decision = decide(question);
  ASSERT_NE(find(decision, "libmpi.so.40"), nullptr);
  EXPECT_THAT(find(decision, "libmpi.so.40")->over,
              UnorderedElementsAre(System::kDebian + "libmpi.so.40.20.1",
                                   "/opt/own/lib/libmpi.so.40.10.0"));
  EXPECT_THAT(find(decision, "libopen-pal.so.40")->over,
              UnorderedElementsAre(System::kDebian + "libopen-pal.so.40.30.2",
                                   "/opt/own/lib/libopen-pal.so.40.30.2"));
}

TEST_F(SwapOpenMpi, leaves_a_program_what_it_has_brought_for_itself) {
  core_->needed.push_back("libstdc++.so.6");
  host_.add(System::kDebian + "libstdc++.so.6.0.30", "libstdc++.so.6");
  image_.add("/opt/app/lib/libstdc++.so.6.0.33", "libstdc++.so.6");
  image_.add("/app", "app", {"libmpi.so.40", "libstdc++.so.6"}).search = "/opt/app/lib";
  Question question;
  question.program = "/app";
  Decision decision = decide(question);
  ASSERT_NE(find(decision, "libstdc++.so.6"), nullptr);
  EXPECT_THAT(find(decision, "libstdc++.so.6")->over, IsEmpty());
}

TEST_F(SwapOpenMpi, stays_out_of_the_way_of_a_program_that_needs_more) {
  image_.add_openmpi(System::kDebian, "40.20.1").symbols.defined.insert("MPI_Session_init");
  image_.add("/app", "app", {"libmpi.so.40"}).symbols.undefined = {"MPI_Session_init", "puts"};
  EXPECT_TRUE(decide().swapped());
  Question question;
  question.program = "/app";
  EXPECT_THAT(decide(question).why,
              HasSubstr("/app needs MPI_Session_init, which the host's Open MPI 4.1.4, "
                        "libmpi.so.40 (40.30.4) does not have"));
}

TEST_F(SwapOpenMpi, brings_fortran_where_the_host_has_it_and_warns_where_it_cannot_work) {
  Library& own = image_.add(System::kDebian + "libmpi_mpifh.so.40.20.1", "libmpi_mpifh.so.40");
  own.symbols.undefined = {"ompi_inner"};
  image_.add_openmpi(System::kDebian, "40.20.1").symbols.defined.insert("ompi_inner");
  Decision decision = decide();
  EXPECT_THAT(decision.warnings,
              ElementsAre("programs with libmpi_mpifh.so.40 will not run with the host's MPI: "
                          "ompi_inner is missing there"));
  host_.add(kHostPlace + "libmpi_mpifh.so.40.30.0", "libmpi_mpifh.so.40");
  decision = decide();
  EXPECT_THAT(decision.warnings, IsEmpty());
  EXPECT_NE(find(decision, "libmpi_mpifh.so.40"), nullptr);
}

TEST_F(SwapOpenMpi, keeps_to_the_rule_that_was_asked_for) {
  Question question;
  question.rule = Rule::strict;
  EXPECT_THAT(decide(question).why, HasSubstr("by the rule 'strict' 40.30 is not 40.20"));
}

TEST(Swap, answers_to_every_name_of_the_mpich_abi) {
  System image, host;
  image.add_glibc({});
  image.add_mpich(System::kDebian, "libmpich.so.12");
  image.add(System::kDebian + "libmpichfort.so.12.2.2", "libmpichfort.so.12");
  host.add_mpich("/opt/cray/pe/lib64/", "libmpi_gnu_123.so.12", "12.0.0");
  host.add("/opt/cray/pe/lib64/libmpifort.so.12.0.0", "libmpifort.so.12");
  host.cache({{"libmpi_gnu.so.12", "/opt/cray/pe/lib64/libmpi_gnu_123.so.12"}});
  Libraries image_libraries = image.libraries(), host_libraries = host.libraries();
  auto decision = decide(image_libraries, host_libraries, {});
  ASSERT_TRUE(decision.ok());
  const Brought* core = find(*decision, "libmpi_gnu_123.so.12");
  ASSERT_NE(core, nullptr);
  EXPECT_THAT(core->names, ElementsAre("libmpi_gnu_123.so.12", "libmpich.so.12"));
  EXPECT_THAT(core->over, ElementsAre(System::kDebian + "libmpich.so.12.2.2"));
  ASSERT_NE(find(*decision, "libmpifort.so.12"), nullptr);
  EXPECT_THAT(find(*decision, "libmpifort.so.12")->over,
              ElementsAre(System::kDebian + "libmpichfort.so.12.2.2"));
}

TEST(Swap, refuses_an_abi_that_nobody_knows) {
  System image, host;
  image.add_glibc({});
  image.add("/usr/lib64/libmpi.so.0", "libmpi.so.0");
  host.add_openmpi(kHostPlace);
  Libraries image_libraries = image.libraries(), host_libraries = host.libraries("/opt/site/lib");
  auto decision = decide(image_libraries, host_libraries, {});
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->swapped());
  EXPECT_EQ(decision->why, "unknown ABI, libmpi.so.0 stays: its ABI is not known");
}

TEST(Swap, says_that_there_is_nothing_to_replace_or_to_replace_it_by) {
  System image, host;
  Libraries none = image.libraries(), nobody = host.libraries();
  auto nothing = decide(none, nobody, {});
  ASSERT_TRUE(nothing.ok());
  EXPECT_FALSE(nothing->has_mpi);
  System with;
  with.add_openmpi(System::kDebian);
  Libraries some = with.libraries();
  auto alone = decide(some, nobody, {});
  ASSERT_TRUE(alone.ok());
  EXPECT_THAT(alone->why, HasSubstr("this node has no MPI"));
}

TEST(Swap, leaves_images_of_musl_alone) {
  System image, host;
  image.add_mpich("/usr/lib/");
  image.add_file("/lib/ld-musl-x86_64.so.1");
  host.add_mpich(System::kDebian);
  Libraries image_libraries = image.libraries(), host_libraries = host.libraries();
  auto decision = decide(image_libraries, host_libraries, {});
  ASSERT_TRUE(decision.ok());
  EXPECT_FALSE(decision->swapped());
  EXPECT_THAT(decision->why, HasSubstr("musl"));
}

}  // namespace
}  // namespace berth::mpi
