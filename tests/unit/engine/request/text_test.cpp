// SPDX-License-Identifier: Apache-2.0
#include "engine/request/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

template <class T>
std::string line(const Result<T>& result) {
  return result.ok() ? "read" : to_line(result.error());
}

TEST(ParseUlimit, reads_one_number_for_both_limits) {
  EXPECT_EQ(*parse_ulimit("nofile=1024:2048"), (Ulimit{"nofile", 1024, 2048}));
  EXPECT_EQ(*parse_ulimit("nproc=64"), (Ulimit{"nproc", 64, 64}));
  EXPECT_EQ(*parse_ulimit("core=-1"), (Ulimit{"core", -1, -1}));
  EXPECT_EQ(*parse_ulimit("core=5:unlimited"), (Ulimit{"core", 5, -1}));
}

TEST(ParseUlimit, refuses_what_the_kernel_would) {
  EXPECT_EQ(line(parse_ulimit("nofile=2:1")),
            "ulimit soft limit must be less than or equal to hard limit: 2 > 1");
  EXPECT_EQ(line(parse_ulimit("nofile=-1:1")),
            "ulimit soft limit must be less than or equal to hard limit: -1 > 1");
  EXPECT_EQ(line(parse_ulimit("files=1")), "invalid ulimit type: files");
  for (const char* wrong : {"", "nofile", "nofile=", "nofile=a", "nofile=1:2:3", "nofile=-2"}) {
    EXPECT_EQ(line(parse_ulimit(wrong)), "invalid ulimit argument: expected TYPE=SOFT[:HARD]")
        << wrong;
  }
}

TEST(ParseSysctl, takes_only_what_belongs_to_a_namespace) {
  EXPECT_EQ(*parse_sysctl("net.core.somaxconn=5"),
            (std::pair<std::string, std::string>("net.core.somaxconn", "5")));
  EXPECT_TRUE(parse_sysctl("kernel.shmmax=1=2").ok());
  for (const char* wrong : {"vm.swappiness=1", "kernel.panic=1", "net.core.somaxconn", "=1", ""}) {
    EXPECT_FALSE(parse_sysctl(wrong).ok()) << wrong;
  }
}

TEST(ParseLabel, takes_a_name_alone_for_an_empty_value) {
  EXPECT_EQ(parse_label("a")->second, "");
  EXPECT_EQ(parse_label("a=b=c")->second, "b=c");
  EXPECT_FALSE(parse_label("=b").ok());
  EXPECT_FALSE(parse_label(" =b").ok());
  EXPECT_FALSE(parse_label("a b=c").ok());
}

TEST(ParseAnnotation, keeps_berths_own_to_berth) {
  EXPECT_TRUE(parse_annotation("org.example=1").ok());
  EXPECT_EQ(line(parse_annotation("dev.berth.device-source:/dev/null=/dev/sda")),
            "annotations of dev.berth. are Berth's own");
}

TEST(ParseAddHost, reads_addresses_of_both_families) {
  EXPECT_EQ(*parse_add_host("db:10.0.0.1"), "db:10.0.0.1");
  EXPECT_EQ(*parse_add_host("db:fe80::1"), "db:fe80::1");
  EXPECT_EQ(*parse_add_host("db=[fe80::1]"), "db:fe80::1");
  EXPECT_EQ(*parse_add_host("up:host-gateway"), "up:host-gateway");
  EXPECT_EQ(line(parse_add_host("db:10.0.0")), "invalid IP address in add-host: \"10.0.0\"");
  for (const char* wrong : {"db", ":10.0.0.1", "", "a b:10.0.0.1", "a\nb:10.0.0.1"}) {
    EXPECT_THAT(line(parse_add_host(wrong)), testing::StartsWith("bad format for add-host: "))
        << wrong;
  }
}

TEST(ParseExpose, adds_the_protocol) {
  EXPECT_EQ(*parse_expose("80"), "80/tcp");
  EXPECT_EQ(*parse_expose("3000-3010/UDP"), "3000-3010/udp");
  for (const char* wrong : {"", "a", "80/icmp", "65536", "9-8", "1-2-3"}) {
    EXPECT_FALSE(parse_expose(wrong).ok()) << wrong;
  }
}

TEST(ParseRestart, reads_dockers_policies_in_dockers_words) {
  EXPECT_EQ(parse_restart("")->when, Restart::no);
  EXPECT_EQ(parse_restart("unless-stopped")->when, Restart::unless_stopped);
  EXPECT_EQ(*parse_restart("on-failure:3"), (RestartPolicy{Restart::on_failure, 3}));
  EXPECT_EQ(line(parse_restart("always:3")),
            "maximum retry count cannot be used with restart policy 'always'");
  EXPECT_EQ(line(parse_restart("on-failure:x")),
            "invalid restart policy format: maximum retry count must be an integer");
  EXPECT_FALSE(parse_restart("on-failure:1:2").ok());
  EXPECT_FALSE(parse_restart("sometimes").ok());
}

TEST(ParseDuration, adds_parts_with_units) {
  using std::chrono::milliseconds;
  EXPECT_EQ(*parse_duration("1m30s"), milliseconds(90'000));
  EXPECT_EQ(*parse_duration("1.5s"), milliseconds(1'500));
  EXPECT_EQ(*parse_duration("10us"), std::chrono::microseconds(10));
  EXPECT_EQ(*parse_duration("0"), milliseconds(0));
  for (const char* wrong : {"", "5", "s", "-1s", "1x", "1 s", "9999999999h", "1h9999999999h"}) {
    EXPECT_FALSE(parse_duration(wrong).ok()) << wrong;
  }
}

TEST(ParseHostDevice, reads_target_and_rights_in_either_place) {
  EXPECT_EQ(*parse_host_device("/dev/a"), (HostDevice{"/dev/a", "/dev/a", "rwm"}));
  EXPECT_EQ(*parse_host_device("/dev/a:/dev/b"), (HostDevice{"/dev/a", "/dev/b", "rwm"}));
  EXPECT_EQ(*parse_host_device("/dev/a:r"), (HostDevice{"/dev/a", "/dev/a", "r"}));
  EXPECT_EQ(*parse_host_device("/dev/a:/dev/b:rw"), (HostDevice{"/dev/a", "/dev/b", "rw"}));
  EXPECT_EQ(line(parse_host_device("/dev/a:/dev/b:rx")), "invalid device mode: rx");
  for (const char* wrong : {"dev/a", "/dev/a:b", "/dev/a:/dev/b:r:w", "/dev/a:", "/dev/a:/b/"}) {
    EXPECT_FALSE(parse_host_device(wrong).ok()) << wrong;
  }
}

TEST(ParseDeviceRule, reads_what_the_kernel_reads) {
  EXPECT_EQ(*parse_device_rule("c 195:* rwm"), "c 195:* rwm");
  EXPECT_TRUE(parse_device_rule("a *:* m").ok());
  for (const char* wrong : {"", "d 1:2 r", "c 1 r", "c 1:2", "c 1:2 x", "c 1:2 rr",
                            "c 4294967296:1 r", "c -1:2 r", "c 1:2  r"}) {
    EXPECT_FALSE(parse_device_rule(wrong).ok()) << wrong;
  }
}

TEST(ParseNamespace, allows_each_flag_its_own_words) {
  using Mode = NamespaceMode::Kind;
  EXPECT_EQ(parse_namespace(NamespaceFlag::ipc, "shareable")->kind, Mode::shareable);
  EXPECT_EQ(parse_namespace(NamespaceFlag::pid, "container:db")->container, "db");
  EXPECT_EQ(parse_namespace(NamespaceFlag::pid, "")->kind, Mode::usual);
  EXPECT_EQ(line(parse_namespace(NamespaceFlag::pid, "shareable")),
            "invalid PID mode: expected one of private, host, container:NAME");
  EXPECT_FALSE(parse_namespace(NamespaceFlag::userns, "container:db").ok());
  EXPECT_EQ(parse_namespace(NamespaceFlag::userns, "keep-id:uid=5")->uid, 5U);
  EXPECT_EQ(to_json_text(*parse_namespace(NamespaceFlag::userns, "keep-id:gid=6,uid=5")),
            "keep-id:uid=5,gid=6");
  EXPECT_FALSE(parse_namespace(NamespaceFlag::userns, "keep-id:uid=").ok());
  EXPECT_FALSE(parse_namespace(NamespaceFlag::pid, "keep-id:uid=5").ok());
  EXPECT_FALSE(parse_namespace(NamespaceFlag::pid, "container:").ok());
}

TEST(ParseLogOption, reads_rotation_and_refuses_the_rest) {
  LogSettings log;
  EXPECT_TRUE(parse_log_option("max-size=10m", log).ok());
  EXPECT_TRUE(parse_log_option("max-file=3", log).ok());
  EXPECT_EQ(log.max_bytes, uint64_t{10} << 20);
  EXPECT_EQ(log.max_files, 3U);
  EXPECT_EQ(line(parse_log_option("max-file=0", log)), "max-file cannot be less than 1");
  EXPECT_EQ(line(parse_log_option("tag=x", log)),
            "unknown log opt 'tag': expected max-size or max-file");
  EXPECT_EQ(line(parse_log_driver("syslog")),
            "no log driver named 'syslog' is registered: expected json-file, local or none");
}

TEST(RequestText, what_goes_into_files_of_names_stays_one_word_of_one_line) {
  EXPECT_EQ(*parse_domain("my_site.example.org"), "my_site.example.org");
  EXPECT_EQ(*parse_domain("."), ".");
  EXPECT_EQ(to_line(parse_domain("a\nnameserver 6.6.6.6").error()),
            "a\\nnameserver 6.6.6.6 is not a valid domain");
  for (const char* text : {"", " ", "a b", "a\tb", "a#b", "a\n"}) {
    bool trimmed = std::string_view(text) == "a\n";
    EXPECT_EQ(parse_domain(text).ok(), trimmed) << text;
  }
  EXPECT_EQ(*parse_dns_option("ndots:2"), "ndots:2");
  EXPECT_FALSE(parse_dns_option("ndots:2\nnameserver 6.6.6.6").ok());
  EXPECT_FALSE(parse_dns_option("").ok());
}

}  // namespace
}  // namespace berth::engine
