// SPDX-License-Identifier: Apache-2.0
#include "scan/driver_files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "scan/loader.hpp"

namespace berth::scan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A little-endian 64-bit ELF header and nothing else.
std::string elf(uint16_t machine = kMachineX86_64) {
  std::string bytes(64, '\0');
  bytes.replace(0, 7,
                "\x7f"
                "ELF\2\1\1");
  bytes[16] = 3;
  bytes[18] = static_cast<char>(machine);
  return bytes;
}

// Paths to contents; a content "-> path" is a link.
class Fake : public Tree {
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
      if (name.starts_with(path + "/") && name.find('/', path.size() + 1) == std::string::npos) {
        names.push_back(name.substr(path.size() + 1));
      }
    }
    return names;
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    const std::string& bytes = files.at(file.path);
    return offset < bytes.size() ? bytes.substr(offset, length) : std::string();
  }
};

LoaderSettings x86() {
  LoaderSettings settings;
  settings.machine = kMachineX86_64;
  return settings;
}

std::vector<std::string> found(const Fake& tree, const LoaderSettings& settings = x86()) {
  std::vector<std::string> lines;
  auto files = find_driver_files(tree, settings);
  EXPECT_TRUE(files.ok());
  for (const ImageLibrary& one : files->libraries) {
    lines.push_back(one.path + " " + one.version + " " + one.why +
                    (one.before_cache ? " first" : ""));
  }
  return lines;
}

TEST(DriverFiles, an_image_without_any_has_none) {
  EXPECT_THAT(found({}), IsEmpty());
}

TEST(DriverFiles, come_in_the_order_of_the_loader) {
  Fake tree;
  tree.files = {{"/usr/lib64/libcuda.so.1", "-> /usr/lib64/libcuda.so.535.1"},
                {"/usr/lib64/libcuda.so.535.1", elf()},
                {"/opt/a/libcuda.so.1", "-> /opt/a/libcuda.so.550.1"},
                {"/opt/a/libcuda.so.550.1", elf()},
                {"/opt/b/libcuda.so.1", elf()}};
  LoaderCache cache;
  cache.entries = {{"libcuda.so.1", "/opt/b/libcuda.so.1", 0x303, 0, 0}};
  tree.files["/etc/ld.so.cache"] = write_loader_cache(cache);
  LoaderSettings settings = x86();
  settings.library_path = "relative:/none:/opt/a/";
  EXPECT_THAT(found(tree, settings),
              ElementsAre("/opt/a/libcuda.so.1 550.1 LD_LIBRARY_PATH first",
                          "/opt/b/libcuda.so.1  its loader cache",
                          "/usr/lib64/libcuda.so.1 535.1 a default directory"));
  settings.library_path = "/usr/local/nvidia/lib64:/opt/a";
  EXPECT_EQ(found(tree, settings)[0], "/opt/a/libcuda.so.1 550.1 LD_LIBRARY_PATH");
}

TEST(DriverFiles, those_of_another_machine_or_no_library_are_passed_over) {
  Fake tree;
  tree.files = {{"/usr/lib64/libcuda.so.1", "a text"},
                {"/usr/lib/libcuda.so.1", elf(kMachineAarch64)},
                {"/etc/ld.so.cache", "glibc-ld.so.cache1.1 and lies"}};
  EXPECT_THAT(found(tree), IsEmpty());
}

TEST(DriverFiles, a_copy_without_a_version_in_its_name_has_that_of_its_neighbours) {
  Fake tree;
  tree.files = {{"/usr/lib64/libcuda.so.1", elf()},
                {"/usr/lib64/libnvidia-ptxjitcompiler.so.570.1", elf()}};
  EXPECT_THAT(found(tree), ElementsAre("/usr/lib64/libcuda.so.1 570.1 a default directory"));
  tree.files["/usr/lib64/libcuda.so.550.1"] = elf();  // two versions: no one knows which it is
  EXPECT_THAT(found(tree), ElementsAre("/usr/lib64/libcuda.so.1  a default directory"));
}

TEST(DriverFiles, a_compat_package_has_one_library) {
  Fake tree;
  tree.files = {
      {"/usr/local/cuda/compat/libcuda.so.1", "-> /usr/local/cuda/compat/libcuda.so.575.57.08"},
      {"/usr/local/cuda/compat/libcuda.so.575.57.08", elf()}};
  auto one = find_driver_files(tree, x86());
  ASSERT_TRUE(one->compat.has_value());
  EXPECT_EQ(one->compat->version, "575.57.08");
  EXPECT_FALSE(one->compat->has_note);
  EXPECT_THAT(one->compat->libraries, ElementsAre("libcuda.so.1"));
  tree.files["/usr/local/cuda/compat/libcuda.so.590.1"] = elf();
  EXPECT_EQ(find_driver_files(tree, x86())->no_compat_why,
            "/usr/local/cuda/compat has more than one libcuda.so.*");
}

TEST(DriverFiles, compat_is_judged_by_note_version_and_brand) {
  CompatPackage compat{"/c", "575.57.08", true, "12.9", {535, 550, 570}, {}};
  EXPECT_TRUE(judge_compat(compat, "570.133.20", "12.8", {"tesla"}).use);
  EXPECT_FALSE(judge_compat(compat, "560.1", "12.6", {"tesla"}).use);
  compat.drivers.push_back(580);
  EXPECT_FALSE(judge_compat(compat, "580.1", "13.0", {"tesla"}).use);
  EXPECT_EQ(judge_compat(compat, "570.133.20", "12.8", {"tesla", "geforce"}).why,
            "/c (575.57.08): GPUs of brand geforce have no forward compatibility");
  EXPECT_TRUE(judge_compat(compat, "", "12.8", {}).use);
  EXPECT_FALSE(judge_compat(compat, "", "12.9", {}).use);
  compat.has_note = false;
  EXPECT_TRUE(judge_compat(compat, "570.133.20", "12.8", {}).use);
  EXPECT_FALSE(judge_compat(compat, "575.1", "12.9", {}).use);
}

TEST(DriverFiles, versions_compare_as_numbers) {
  EXPECT_LT(compare_versions("570.86.10", "570.133.20"), 0);
  EXPECT_EQ(compare_versions("12.0", "12"), 0);
  EXPECT_GT(compare_versions("13.0", "12.9"), 0);
}

}  // namespace
}  // namespace berth::scan
