// SPDX-License-Identifier: Apache-2.0
#include "facts/image_facts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scan/loader.hpp"
#include "scan/mpi.hpp"

namespace berth::facts {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Paths to contents; a content "-> path" is a link.
class Fake : public scan::Tree {
 public:
  std::map<std::string, std::string> files;

  Result<std::optional<File>> find_file(const std::string& path) const override {
    auto found = files.find(path);
    if (found == files.end()) return std::optional<File>();
    if (found->second.starts_with("-> ")) return find_file(found->second.substr(3));
    return std::optional<File>(File{path, found->second.size()});
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    std::vector<std::string> names;
    for (const auto& [name, content] : files) {
      if (!name.starts_with(path + "/")) continue;
      std::string rest = name.substr(path.size() + 1);
      rest = rest.substr(0, rest.find('/'));
      if (names.empty() || names.back() != rest) names.push_back(rest);
    }
    return names;
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    const std::string& bytes = files.at(file.path);
    return offset < bytes.size() ? bytes.substr(offset, length) : std::string();
  }
};

/// An image of a tree and the facts of its files.
class Image {
 public:
  ImageCommand command{.arguments = {"app"},
                       .environment = {"PATH=/usr/bin:/opt/bin"},
                       .working_directory = "/work",
                       .architecture = "amd64"};
  Fake tree;

  FileFacts& add(const std::string& path) {
    tree.files["/" + path] =
        "\x7f"
        "ELF";
    FileFacts facts;
    facts.path = path;
    facts.machine = "amd64";
    files_.push_back(std::move(facts));
    return files_.back();
  }
  FileFacts& library(const std::string& path, const std::string& soname) {
    FileFacts& facts = add(path);
    facts.soname = soname;
    return facts;
  }
  FileFacts& program(const std::string& path, std::vector<std::string> needed) {
    FileFacts& facts = add(path);
    facts.program = true;
    facts.interpreter = "/lib64/ld-linux-x86-64.so.2";
    facts.needed = std::move(needed);
    return facts;
  }
  ImageFacts facts() {
    std::vector<FileFacts> sorted = files_;
    std::sort(sorted.begin(), sorted.end());
    auto drawn = draw_together(tree, sorted, command);
    EXPECT_TRUE(drawn.ok());
    return std::move(*drawn);
  }

 private:
  std::vector<FileFacts> files_;
};

TEST(ImageFacts, an_image_without_programs_has_none) {
  Image image;
  ImageFacts facts = image.facts();
  EXPECT_EQ(facts.program, "");
  EXPECT_EQ(facts.architecture, "");
  EXPECT_THAT(facts.gpu_code, IsEmpty());
}

TEST(ImageFacts, the_main_program_is_found_through_path_links_and_scripts) {
  Image image;
  image.program("usr/bin/python3.11", {"libc.so.6"});
  image.tree.files["/usr/bin/python3"] = "-> /usr/bin/python3.11";
  image.tree.files["/opt/bin/app"] = "#!/usr/bin/env -S PYTHONUNBUFFERED=1 python3 -u\nimport os\n";
  EXPECT_EQ(image.facts().program, "/usr/bin/python3.11");
  EXPECT_EQ(image.facts().architecture, "amd64");
  EXPECT_FALSE(image.facts().is_static);
  image.command.arguments = {"./start.sh", "app"};
  EXPECT_EQ(image.facts().program, "");
  image.tree.files["/work/./start.sh"] = "#! /usr/bin/python3";
  EXPECT_EQ(image.facts().program, "/usr/bin/python3.11");
  image.tree.files["/work/./start.sh"] = "#!/work/./start.sh\n";  // of itself
  EXPECT_EQ(image.facts().program, "");
}

TEST(ImageFacts, a_program_that_needs_nothing_is_static) {
  Image image;
  image.program("usr/bin/app", {}).interpreter = "";
  EXPECT_TRUE(image.facts().is_static);
}

TEST(ImageFacts, what_the_main_program_loads_is_marked) {
  Image image;
  image.program("usr/bin/app", {"liba.so.1", "libgone.so"}).runpath = "$ORIGIN:/opt/lib";
  image.library("opt/lib/liba.so.1", "liba.so.1").needed = {"libb.so.1"};
  FileFacts& by_cache = image.library("opt/b/libb.so.1", "libb.so.1");
  by_cache.isa = {3, "note"};
  image.library("usr/lib/libother.so", "libother.so").isa = {4, "note"};
  image.library("usr/lib/glibc-hwcaps/x86-64-v3/libb.so.1", "libb.so.1").isa = {3, "note"};
  scan::LoaderCache cache;
  cache.entries = {{"libb.so.1", "/opt/b/libb.so.1", 0x303, 0, 0}};
  image.tree.files["/etc/ld.so.cache"] = write_loader_cache(cache);
  ImageFacts facts = image.facts();
  ASSERT_EQ(facts.cpu.size(), 2U);
  EXPECT_EQ(facts.cpu[0].isa.level, 4U);
  EXPECT_FALSE(facts.cpu[0].main);
  EXPECT_EQ(facts.cpu[1].isa.level, 3U);
  EXPECT_TRUE(facts.cpu[1].main);
  EXPECT_EQ(facts.cpu[1].example, "/opt/b/libb.so.1");
  EXPECT_EQ(facts.cpu[1].files, 1U);
  EXPECT_THAT(facts.hwcaps, ElementsAre("x86-64-v3"));
}

TEST(ImageFacts, rpath_holds_for_what_libraries_need_and_runpath_does_not) {
  Image image;
  FileFacts& app = image.program("usr/bin/app", {"liba.so"});
  app.rpath = "/opt/lib";
  image.library("opt/lib/liba.so", "liba.so").needed = {"libb.so"};
  image.library("opt/lib/libb.so", "libb.so").isa = {2, "note"};
  EXPECT_TRUE(image.facts().cpu[0].main);

  Image other;
  other.program("usr/bin/app", {"liba.so"}).runpath = "/opt/lib";
  other.library("opt/lib/liba.so", "liba.so").needed = {"libb.so"};
  other.library("opt/lib/libb.so", "libb.so").isa = {2, "note"};
  EXPECT_FALSE(other.facts().cpu[0].main);
  other.command.environment.push_back("LD_LIBRARY_PATH=/opt/lib");
  EXPECT_TRUE(other.facts().cpu[0].main);
}

TEST(ImageFacts, libraries_of_another_machine_are_passed_over) {
  Image image;
  image.program("usr/bin/app", {"liba.so"});
  image.library("lib64/liba.so", "liba.so").machine = "386";
  image.library("usr/lib/liba.so", "liba.so").isa = {3, "note"};
  EXPECT_TRUE(image.facts().cpu[0].main);
}

TEST(ImageFacts, versions_that_the_image_lacks_are_told) {
  Image image;
  image.program("usr/bin/app", {"libc.so.6"}).needs = {{"GLIBC", "2.38"}};
  image.library("usr/lib/libc.so.6", "libc.so.6").offers = {{"GLIBC", "2.36"}};
  image.library("usr/lib/libx.so", "libx.so").needs = {{"GLIBC", "2.4"}, {"GLIBCXX", "3.4.31"}};
  image.library("usr/lib/libstdc++.so.6", "libstdc++.so.6").offers = {{"GLIBCXX", "3.4.30"}};
  image.library("usr/lib/libnobody.so", "libnobody.so").needs = {{"GOMP", "5.0"}};
  ImageFacts facts = image.facts();
  EXPECT_EQ(facts.glibc, "2.36");
  EXPECT_EQ(facts.libstdcxx, "3.4.30");
  ASSERT_EQ(facts.unmet.size(), 2U);
  EXPECT_EQ(facts.unmet[0].path, "/usr/bin/app");
  EXPECT_EQ(facts.unmet[0].version, "GLIBC_2.38");
  EXPECT_TRUE(facts.unmet[0].main);
  EXPECT_EQ(facts.unmet[1].version, "GLIBCXX_3.4.31");
  EXPECT_FALSE(facts.unmet[1].main);
}

// As conda has it: a second libstdc++ beside the system's.
TEST(ImageFacts, a_newer_library_anywhere_satisfies_what_is_opened_by_name) {
  Image image;
  image.library("usr/lib/libx.so", "libx.so").needs = {{"GLIBCXX", "3.4.31"}};
  image.library("usr/lib/libstdc++.so.6", "libstdc++.so.6").offers = {{"GLIBCXX", "3.4.30"}};
  image.library("opt/conda/lib/libstdc++.so.6", "libstdc++.so.6").offers = {{"GLIBCXX", "3.4.33"}};
  EXPECT_THAT(image.facts().unmet, IsEmpty());
}

TEST(ImageFacts, code_for_gpus_is_told_by_sets) {
  Image image;
  image.program("usr/bin/app", {"libk.so"});
  std::vector<GpuCode> code = {{GpuCode::Kind::sass, "80", ""}, {GpuCode::Kind::ptx, "80", "7.4"}};
  image.library("usr/lib/libk.so", "libk.so").gpu_code = code;
  image.library("opt/a.so", "").gpu_code = code;
  image.library("opt/b.so", "").gpu_code = code;
  ImageFacts facts = image.facts();
  ASSERT_EQ(facts.gpu_code.size(), 2U);
  EXPECT_TRUE(facts.gpu_code[0].main);
  EXPECT_EQ(facts.gpu_code[0].example, "/usr/lib/libk.so");
  EXPECT_EQ(facts.gpu_code[1].files, 2U);
  EXPECT_EQ(facts.gpu_code[1].code, code);
}

TEST(ImageFacts, code_for_linkers_is_told_apart) {
  Image image;
  std::vector<GpuCode> code = {{GpuCode::Kind::sass, "80", ""}};
  image.add("usr/lib/libcudadevrt.a").linker_code = code;
  image.add("usr/lib/other.a").linker_code = code;
  ImageFacts facts = image.facts();
  EXPECT_THAT(facts.gpu_code, IsEmpty());
  ASSERT_EQ(facts.linker_code.size(), 1U);
  EXPECT_EQ(facts.linker_code[0].code, code);
  EXPECT_EQ(facts.linker_code[0].files, 2U);
  EXPECT_EQ(facts.linker_code[0].example, "/usr/lib/libcudadevrt.a");
}

TEST(ImageFacts, code_has_the_cuda_version_of_its_compiler_or_of_the_runtime_it_needs) {
  Image image;
  const std::vector<GpuCode> code = {{GpuCode::Kind::sass, "80", ""}};
  FileFacts& known = image.library("opt/a.so", "");
  known.gpu_code = code;
  known.cuda = "12.4";
  known.needed = {"libcudart.so.12"};
  FileFacts& unknown = image.library("opt/b.so", "");
  unknown.gpu_code = code;
  unknown.needed = {"libcudart.so.11.0"};
  ImageFacts facts = image.facts();
  ASSERT_EQ(facts.gpu_code.size(), 2U);
  EXPECT_EQ(facts.gpu_code[0].cuda, "11.0");
  EXPECT_EQ(facts.gpu_code[1].cuda, "12.4");
  EXPECT_THAT(facts.cuda_runtimes, IsEmpty());
}

TEST(ImageFacts, the_runtime_that_the_main_program_needs_counts_where_the_image_has_none) {
  Image image;
  image.program("usr/bin/app", {"libcudart.so.12"});
  EXPECT_THAT(image.facts().cuda_runtimes, ElementsAre("12"));
  image.library("usr/local/cuda/lib64/libcudart.so.12.8.90", "libcudart.so.12");
  EXPECT_THAT(image.facts().cuda_runtimes, ElementsAre("12.8"));
}

TEST(ImageFacts, versions_of_cuda_and_mpi_are_those_of_their_files) {
  Image image;
  image.library("usr/local/cuda/lib64/libcudart.so.12.8.90", "libcudart.so.12");
  std::string packages = "usr/lib/python3/site-packages/";
  image.library(packages + "nvidia/cu13/lib/libcudart.so.13", "libcudart.so.13");
  image.tree.files["/" + packages + "nvidia_cuda_runtime-13.0.96.dist-info/METADATA"] = "";
  image.library("opt/lib/libcudart.so.11", "libcudart.so.11");
  image.library("usr/lib/libmpi.so.12.1.8", "libmpi.so.12");
  image.library("usr/lib/libmpi.so.40.30.4", "libmpi.so.40");
  image.library("usr/lib/libmpi_cxx.so.40", "libmpi_cxx.so.40");
  ImageFacts facts = image.facts();
  EXPECT_THAT(facts.cuda_runtimes, ElementsAre("11", "12.8", "13.0"));
  ASSERT_EQ(facts.mpi.size(), 2U);
  EXPECT_EQ(facts.mpi[0].family, "mpich");
  EXPECT_EQ(facts.mpi[1].family, "openmpi");
}

TEST(ImageFacts, an_mpi_has_the_family_that_a_node_profile_gives_it) {
  Image image;
  for (const char* name : {"libmpi.so.1", "libmpi_abi.so.0", "libmpi_intel.so.12"}) {
    image.library(std::string("usr/lib/") + name, name);
  }
  ImageFacts facts = image.facts();
  ASSERT_EQ(facts.mpi.size(), 3U);
  for (const auto& mpi : facts.mpi) EXPECT_EQ(mpi.family, scan::mpi_family(mpi.soname));
}

}  // namespace
}  // namespace berth::facts
