// SPDX-License-Identifier: Apache-2.0
#include "node/file/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace berth::node {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kByHand = R"(
architecture = "amd64"
rack = "of no interest"

[cpu]
microarchitecture = "broadwell"

[driver]
module_version = "396.44"

[[gpus]]
compute_capability = "3.7"

[[gpus]]
compute_capability = "sm_52"
model = "Tesla M60"
)";

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ =
        std::filesystem::temp_directory_path() /
        ("berth-node-" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
         ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string put(const std::string& name, std::string_view text) {
    std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }
  std::string directory() const { return directory_; }

 private:
  std::filesystem::path directory_;
};

std::string fault(std::string_view text, Form form, std::string_view document = "n") {
  auto read = read_profile(text, form, document);
  return read.ok() ? "none" : to_line(read.error());
}

TEST(Load, a_profile_by_hand_says_little_and_is_whole) {
  auto read = read_profile(kByHand, Form::toml, "n.toml");
  ASSERT_TRUE(read.ok()) << to_line(read.error());
  EXPECT_EQ(read->version, 1u);
  EXPECT_EQ(read->cpu.level, 3u);
  EXPECT_THAT(read->cpu.ancestors, Contains("haswell"));
  EXPECT_EQ(read->driver.cuda_version, "9.2");
  ASSERT_EQ(read->gpus.size(), 2u);
  EXPECT_EQ(read->gpus[0].vendor, "nvidia");
  EXPECT_EQ(read->gpus[1].compute_capability, "5.2");
  EXPECT_EQ(read->gpus[1].model, "Tesla M60");
}

TEST(Load, what_is_written_is_not_what_follows) {
  auto written = read_written(kByHand, Form::toml, "n.toml");
  ASSERT_TRUE(written.ok());
  EXPECT_EQ(written->driver.cuda_version, "");
  EXPECT_EQ(written->cpu.level, 0u);
  EXPECT_EQ(written->gpus[1].compute_capability, "5.2");
}

TEST(Load, both_forms_read_what_was_written) {
  Profile profile = *read_profile(kByHand, Form::toml, "n.toml");
  profile.name = "k80";
  profile.fabric = {"efa", "roce"};
  profile.mpi = {{"mpich", "libmpi.so.12", "/usr/lib/libmpi.so.12"}};
  profile.cpu.model = "a \"quoted\" \\ model \x01";
  profile.gpus[0].memory_bytes = 11441ULL << 20;
  profile.gpus[1].mig_profiles = {"1g.10gb", "2g.20gb"};
  profile.gpus[1].mig = true;
  for (Form form : {Form::json, Form::toml}) {
    std::string text = write_profile(profile, form);
    auto again = read_profile(text, form, "again");
    ASSERT_TRUE(again.ok()) << to_line(again.error()) << text;
    EXPECT_EQ(write_profile(*again, Form::json), write_profile(profile, Form::json));
  }
}

TEST(Load, json_has_every_member) {
  Profile profile;
  profile.architecture = "arm64";
  std::string text = write_profile(profile, Form::json);
  for (const char* member : {"\"gpus\": []", "\"rocm\": \"\"", "\"mpi\": []", "\"level\": 0"}) {
    EXPECT_THAT(text, HasSubstr(member));
  }
  EXPECT_EQ(write_profile(profile, Form::toml),
            "version = 1\narchitecture = \"arm64\"\nos = \"linux\"\nsynthetic = false\n\n[cpu]\n"
            "level = 0\n");
}

TEST(Load, faults_name_their_member) {
  EXPECT_EQ(fault(R"({"architecture": 7})", Form::json),
            "n: architecture: expected a string, got a number");
  EXPECT_THAT(fault("{}", Form::json), StartsWith("n: architecture: "));
  EXPECT_EQ(fault(R"({"architecture": "amd64", "gpus": [{"mig": "yes"}]})", Form::json),
            "n: gpus[0].mig: expected true or false, got a string");
  EXPECT_EQ(fault("architecture = \"amd64\"\n[cpu]\nlevel = \"3\"\n", Form::toml),
            "n: cpu.level: expected an integer, got a string");
  EXPECT_EQ(fault("architecture = \"amd64\"\ngpus = 3\n", Form::toml),
            "n: gpus: expected an array, got a number");
  EXPECT_EQ(fault("architecture = \"amd64\"\ncpu = \"zen4\"\n", Form::toml),
            "n: cpu: expected an object, got a string");
  EXPECT_THAT(fault("{", Form::json), StartsWith("n: "));
  EXPECT_THAT(fault("architecture\n", Form::toml), StartsWith("n:1: "));
}

TEST(Load, a_later_version_is_refused_whatever_else_it_says) {
  EXPECT_EQ(fault(R"({"version": 2, "architecture": ["amd64"]})", Form::json),
            "n: version: this Berth reads profiles of version 1, this one is of 2");
  EXPECT_EQ(fault("version = 9\n", Form::toml),
            "n: version: this Berth reads profiles of version 1, this one is of 9");
  EXPECT_EQ(fault("version = 0\narchitecture = \"amd64\"\n", Form::toml),
            "n: version: this Berth reads profiles of version 1, this one is of 0");
}

TEST(Load, a_document_of_too_many_entries_is_refused) {
  std::string text = "architecture = \"amd64\"\n";
  for (int i = 0; i < 20'000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  EXPECT_EQ(fault(text, Form::toml), "n: more than 10000 entries");
}

TEST_F(Files, a_saved_profile_has_the_name_of_its_file) {
  Profile profile = *read_profile(kByHand, Form::toml, "n");
  profile.name = "some-host";
  for (const char* name : {"node-7.toml", "node-7.json"}) {
    ASSERT_TRUE(save_profile(profile, directory() + "/" + name).ok());
    auto loaded = load_profile(directory() + "/" + name);
    ASSERT_TRUE(loaded.ok()) << to_line(loaded.error());
    EXPECT_EQ(loaded->name, "node-7");
    EXPECT_EQ(loaded->driver.module_version, "396.44");
  }
}

TEST_F(Files, a_name_without_an_ending_is_refused) {
  auto loaded = load_profile("/etc/hostname");
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(to_line(loaded.error()), "'/etc/hostname': a profile's name ends in .json or .toml");
  EXPECT_FALSE(form_of(".json").ok());
}

TEST_F(Files, a_fleet_is_sorted_by_name) {
  put("b.toml", kByHand);
  put("a.json", R"({"architecture": "arm64"})");
  put("README.md", "no profile");
  put(".hidden.json", "broken");
  auto fleet = load_fleet(directory());
  ASSERT_TRUE(fleet.ok()) << to_line(fleet.error());
  ASSERT_EQ(fleet->size(), 2u);
  EXPECT_EQ((*fleet)[0].name, "a");
  EXPECT_EQ((*fleet)[1].name, "b");
}

TEST_F(Files, a_broken_file_of_a_fleet_is_named) {
  put("a.toml", kByHand);
  put("b.json", R"({"architecture": 1})");
  auto fleet = load_fleet(directory());
  ASSERT_FALSE(fleet.ok());
  EXPECT_EQ(to_line(fleet.error()),
            directory() + "/b.json: architecture: expected a string, got a number");
}

TEST_F(Files, a_fleet_has_no_two_of_one_name_and_is_not_empty) {
  EXPECT_EQ(load_fleet(directory()).error().kind, Kind::not_found);
  put("a.toml", kByHand);
  put("a.json", R"({"architecture": "arm64"})");
  auto fleet = load_fleet(directory());
  ASSERT_FALSE(fleet.ok());
  EXPECT_EQ(to_line(fleet.error()), "'" + directory() + "': two profiles are named 'a'");
}

}  // namespace
}  // namespace berth::node
