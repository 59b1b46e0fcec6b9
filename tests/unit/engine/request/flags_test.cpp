// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "engine/context/name.hpp"
#include "engine/context/time.hpp"
#include "engine/image/images.hpp"
#include "engine/request/text.hpp"
#include "engine/request/volume.hpp"
#include "engine/run/run.hpp"

namespace berth::engine {
namespace {

using testing::ElementsAre;

TEST(ParseVolume, reads_source_destination_and_options) {
  EXPECT_EQ(*parse_volume("/data:/mnt", "/home"), (Volume{"/data", "/mnt", false, "rprivate"}));
  EXPECT_EQ(*parse_volume("/data:/mnt/:ro,rslave", "/home"),
            (Volume{"/data", "/mnt", true, "rslave"}));
  EXPECT_EQ(*parse_volume("/data:/mnt:rw,Z", "/home"),
            (Volume{.source = "/data", .destination = "/mnt", .relabel = Relabel::own}));
}

TEST(ParseVolume, takes_relative_sources_below_the_working_directory) {
  EXPECT_EQ(parse_volume("./src:/src", "/home/ada")->source, "/home/ada/./src");
  EXPECT_EQ(parse_volume("..:/src", "/home/ada")->source, "/home/ada/..");
}

TEST(ParseVolume, says_what_is_wrong) {
  auto line = [](const char* text) { return to_line(parse_volume(text, "/").error()); };
  for (const char* text : {"data", ":/mnt", "/data:", "/a:/b:ro:x", ""}) {
    EXPECT_EQ(line(text), "volume '" + std::string(text) +
                              "': expected [SOURCE:]DESTINATION[:ro]; try: -v /data:/data:ro");
  }
  EXPECT_EQ(line("/data:mnt"), "volume 'mnt': the path is not absolute");
  EXPECT_EQ(line("/data:/"), "volume '/': the container's root cannot be mounted over");
  EXPECT_EQ(line("/data:/mnt:readonly"),
            "volume '/data:/mnt:readonly': unknown option 'readonly'; try: ro, rw or a propagation "
            "such as rslave");
  EXPECT_EQ(line("a:/mnt"),
            "volume 'a:/mnt': volume name is too short, names should be at least two alphanumeric "
            "characters");
  EXPECT_EQ(line("some/where:/mnt"),
            "volume 'some/where:/mnt': 'some/where' includes invalid characters for a local volume "
            "name, only \"[a-zA-Z0-9][a-zA-Z0-9_.-]\" are allowed. If you intended to pass a host "
            "directory, use absolute path");
}

TEST(ParseVolume, takes_a_name_or_none) {
  EXPECT_EQ(*parse_volume("cache:/mnt:nocopy,ro", "/"),
            (Volume{.destination = "/mnt", .read_only = true, .name = "cache", .no_copy = true}));
  EXPECT_EQ(*parse_volume("/mnt", "/"), (Volume{.destination = "/mnt", .anonymous = true}));
}

TEST(ParseMount, reads_the_three_types) {
  EXPECT_EQ(
      std::get<Volume>(*parse_mount("type=bind,src=/a,dst=/b,readonly,bind-propagation=shared,"
                                    "bind-nonrecursive")),
      (Volume{.source = "/a",
              .destination = "/b",
              .read_only = true,
              .propagation = "shared",
              .must_exist = true,
              .non_recursive = true}));
  EXPECT_EQ(
      std::get<Volume>(*parse_mount("source=cache,target=/b,ro=false,volume-nocopy=1,"
                                    "volume-label=a=1")),
      (Volume{.destination = "/b", .name = "cache", .no_copy = true, .labels = {{"a", "1"}}}));
  EXPECT_TRUE(std::get<Volume>(*parse_mount("type=volume,target=/b")).anonymous);
  EXPECT_EQ(std::get<Tmpfs>(*parse_mount("type=tmpfs,dst=/b,tmpfs-size=1m,tmpfs-mode=1770,ro")),
            (Tmpfs{"/b", {"size=1048576", "mode=1770", "ro"}}));
  EXPECT_EQ(std::get<Volume>(*parse_mount("type=bind,\"src=/a,b\",dst=/c")).source, "/a,b");
}

TEST(ParseMount, says_what_is_wrong_in_docker_s_words) {
  auto line = [](const char* text) {
    auto parsed = parse_mount(text);
    std::string said = parsed.ok() ? "read" : to_line(parsed.error());
    std::string start = "mount '" + std::string(text) + "': ";
    return said.starts_with(start) ? said.substr(start.size()) : said;
  };
  EXPECT_EQ(line("type=bind,src=/a"), "target is required");
  EXPECT_EQ(line("type=bind,dst=/a"),
            "invalid mount config for type \"bind\": field Source must not be empty");
  EXPECT_EQ(line("type=bind,src=a,dst=/a"),
            "invalid mount config for type \"bind\": invalid mount path: 'a' mount path must be "
            "absolute");
  EXPECT_EQ(line("type=nfs,dst=/a"), "mount type unknown: 'nfs'");
  EXPECT_EQ(line("dst=/a,colour=red"), "unexpected key 'colour'");
  EXPECT_EQ(line("dst=/a,source"), "invalid field 'source' must be a key=value pair");
  EXPECT_EQ(line("type=bind,src=/a,dst=/b,volume-nocopy"),
            "cannot mix 'volume-*' options with mount type 'bind'");
  EXPECT_EQ(line("dst=/b,tmpfs-size=1m"), "cannot mix 'tmpfs-*' options with mount type 'volume'");
  EXPECT_EQ(line("dst=/b,readonly=maybe"), "invalid value for readonly: maybe");
  EXPECT_EQ(line("dst=/b,volume-driver=nfs"),
            "volume-driver is not supported: the only driver is local");
  EXPECT_EQ(line("\"dst=/b"), "a quote is not closed");
  EXPECT_EQ(line("dst=/"), "mount '/': the container's root cannot be mounted over");
  EXPECT_EQ(line(""), "invalid field '' must be a key=value pair");
}

TEST(ParseTmpfs, reads_destination_and_options) {
  EXPECT_EQ(*parse_tmpfs("/run"), (Tmpfs{"/run", {}}));
  EXPECT_EQ(*parse_tmpfs("/run:size=1m,exec"), (Tmpfs{"/run", {"size=1m", "exec"}}));
  EXPECT_FALSE(parse_tmpfs("run").ok());
  EXPECT_FALSE(parse_tmpfs("/").ok());
  EXPECT_FALSE(parse_tmpfs("/run:,").ok());
  for (const char* good : {"size=0", "size=50%", "size=64m", "size=1G", "nr_inodes=10k",
                           "mode=1777", "mode=01777", "uid=5,gid=6", "huge=never"}) {
    EXPECT_TRUE(parse_tmpfs(std::string("/run:") + good).ok()) << good;
  }
  for (const char* bad : {"size=x", "size=", "size=64mb", "size=-1", "size=m", "nr_inodes=5%",
                          "mode=999", "mode=", "mode=rwx", "mode=100000", "uid=me", "gid="}) {
    auto read = parse_tmpfs(std::string("/run:") + bad);
    ASSERT_FALSE(read.ok()) << bad;
    EXPECT_EQ(to_line(read.error()), std::string("tmpfs '/run:") + bad + "': bad value in '" + bad +
                                         "'; try: size=64m, mode=1777, uid=0 or nr_inodes=10k");
  }
}

TEST(ParseCpus, reads_thousandths) {
  EXPECT_EQ(*parse_cpus("1.5"), 1500U);
  EXPECT_EQ(*parse_cpus(".25"), 250U);
  EXPECT_EQ(*parse_cpus("8"), 8000U);
  EXPECT_EQ(*parse_cpus("0"), 0U);  // no limit
  for (const char* wrong : {"", ".", "-1", "1.", "1.2345", "x", "1e3", "0.001", "2000000"}) {
    EXPECT_FALSE(parse_cpus(wrong).ok()) << wrong;
  }
}

TEST(ParseSignal, reads_names_and_numbers) {
  for (const char* text : {"15", "TERM", "SIGTERM", "sigterm"}) {
    EXPECT_EQ(*parse_signal(text), SIGTERM) << text;
  }
  EXPECT_EQ(*parse_signal("RTMIN+3"), SIGRTMIN + 3);
  for (const char* text : {"", "0", "-1", "65", "NOPE"}) EXPECT_FALSE(parse_signal(text).ok());
}

TEST(Familiar, leaves_out_what_reading_adds) {
  EXPECT_EQ(familiar("docker.io/library/ubuntu:latest"), "ubuntu:latest");
  EXPECT_EQ(familiar("docker.io/library/ubuntu"), "ubuntu");
  EXPECT_EQ(familiar("docker.io/some/tool:1"), "some/tool:1");
  EXPECT_EQ(familiar("docker.io/library/a/b:1"), "library/a/b:1");
  EXPECT_EQ(familiar("localhost:5000/a/b"), "localhost:5000/a/b");
  EXPECT_EQ(familiar("ubuntu"), "ubuntu");
  EXPECT_EQ(familiar("no reference"), "no reference");
}

TEST(CheckName, allows_dockers_names_alone) {
  for (const char* good : {"ab", "A1", "a.b-c_d", "0x"}) EXPECT_TRUE(check_name(good).ok()) << good;
  for (const char* bad : {"", "a", "-ab", ".ab", "a/b", "a b", "..", "\xc3\xa4nne"}) {
    EXPECT_FALSE(check_name(bad).ok()) << bad;
  }
  EXPECT_FALSE(check_name(std::string(256, 'a')).ok());
}

TEST(NameFrom, gives_names_that_pass_the_check) {
  for (uint64_t random = 0; random < 4096; random += 65) {
    EXPECT_TRUE(check_name(name_from(random)).ok()) << name_from(random);
  }
  EXPECT_NE(name_from(0), name_from(65));
}

TEST(ParseTime, reads_rfc_3339) {
  EXPECT_EQ(parse_time("1970-01-01T00:00:01Z"), 1);
  EXPECT_EQ(parse_time("2026-11-20T12:00:00.123456789Z"), 1795176000);
  EXPECT_EQ(parse_time("2026-11-20T13:00:00+01:00"), 1795176000);
  EXPECT_EQ(format_time(1795176000), "2026-11-20T12:00:00Z");
  for (const char* wrong : {"", "2026-11-20", "2026-13-20T12:00:00Z", "2026-11-20T12:00:00",
                            "2026-11-20T12:00:00.Z", "2026-11-20T12:00:00+1"}) {
    EXPECT_FALSE(parse_time(wrong)) << wrong;
  }
}

}  // namespace
}  // namespace berth::engine
