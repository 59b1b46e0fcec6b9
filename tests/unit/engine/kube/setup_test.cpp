// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/setup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kRuntime = "/usr/bin/berth-runtime";
constexpr const char* kImports = "imports = [\"/etc/containerd/conf.d/*.toml\"]\n";

SetupPlan plan(const std::string& config, const std::string& version, SetupRequest request = {}) {
  return plan_containerd({config, version}, request, kRuntime).value();
}

TEST(SetupOfContainerd2, is_a_drop_in_with_the_plugin_of_the_files_own_version) {
  SetupPlan made = plan("version = 3\n" + std::string(kImports), "2.1.4");
  ASSERT_THAT(made.files, SizeIs(1));
  EXPECT_THAT(made.lines, IsEmpty());
  EXPECT_EQ(made.files[0].path, "/etc/containerd/conf.d/50-berth.toml");
  EXPECT_THAT(made.files[0].text,
              AllOf(HasSubstr("\nversion = 3\n"),
                    HasSubstr("\n[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes."
                              "berth.options]\nBinaryName = \"/usr/bin/berth-runtime\"\n"),
                    HasSubstr("container_annotations = [\"cdi.k8s.io/*\"")));
  made = plan("version = 2\n" + std::string(kImports) +
                  "[plugins.\"io.containerd.grpc.v1.cri\"]\nsandbox_image = \"p\"\n",
              "2.0.0");
  EXPECT_THAT(made.files.at(0).text, AllOf(HasSubstr("\nversion = 2\n"),
                                           HasSubstr("\"io.containerd.grpc.v1.cri\".containerd")));
}

TEST(SetupOfContainerd1, writes_nothing_where_a_drop_in_would_replace_the_nodes_section) {
  SetupPlan made = plan("version = 2\n" + std::string(kImports) +
                            "[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/x\"\n",
                        "1.7.24");
  EXPECT_THAT(made.files, IsEmpty());
  EXPECT_THAT(made.lines, AllOf(HasSubstr("runtimes.berth]"), Not(HasSubstr("version"))));
  EXPECT_THAT(made.why, HasSubstr("would lose"));
}

TEST(SetupOfContainerd1, is_a_drop_in_where_the_section_is_not_there) {
  SetupPlan made = plan("version = 2\n" + std::string(kImports), "1.6.20");
  EXPECT_THAT(made.lines, IsEmpty());
  EXPECT_THAT(made.files, SizeIs(1));
}

TEST(SetupOfContainerd, knows_lines_that_were_added_by_hand) {
  std::string config =
      "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/x\"\n";
  SetupPlan first = plan(config, "1.6.20");
  SetupPlan second = plan(config + first.lines, "1.6.20");
  EXPECT_THAT(second.lines, IsEmpty());
  EXPECT_THAT(second.files, IsEmpty());
}

TEST(SetupOfContainerd, takes_over_systemds_cgroups) {
  std::string runc =
      "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.runc.options]\n";
  std::string start = "version = 3\n" + std::string(kImports) + runc;
  EXPECT_THAT(plan(start + "SystemdCgroup = true\n", "2.1.0").files.at(0).text,
              HasSubstr("\nSystemdCgroup = true\n"));
  EXPECT_THAT(plan(start + "SystemdCgroup = false\n", "2.1.0").files.at(0).text,
              HasSubstr("\nSystemdCgroup = false\n"));
}

TEST(SetupOfContainerd, names_the_import_that_is_missing) {
  SetupPlan made = plan("version = 3\nimports = [\"/etc/containerd/other/*.toml\"]\n", "2.1.0");
  EXPECT_EQ(made.lines, kImports);
  EXPECT_THAT(made.why, HasSubstr("imports no files of /etc/containerd/conf.d"));
  EXPECT_THAT(plan("version = 3\nimports = [\"conf.d/*.toml\"]\n", "2.1.0").lines, IsEmpty());
}

TEST(SetupOfContainerd, without_a_version_goes_by_the_format) {
  EXPECT_THAT(plan_containerd({std::nullopt, std::nullopt}, {}, kRuntime).value().lines,
              AllOf(HasSubstr("version = 2\n"), HasSubstr(kImports)));
  EXPECT_THAT(plan_containerd({"version = 1\n", std::nullopt}, {}, kRuntime).error().what,
              HasSubstr("version 1"));
  EXPECT_EQ(plan_containerd({"[[[", std::nullopt}, {}, kRuntime).error().kind, Kind::corrupt);
}

TEST(SetupWithAHub, writes_a_hosts_file_that_falls_back_to_the_registry) {
  SetupRequest request;
  request.hub = "http://hub:5050/";
  request.registry = "registry.example.org";
  std::string config = "version = 3\n" + std::string(kImports);
  SetupPlan made = plan(config, "2.1.0", request);
  ASSERT_THAT(made.files, SizeIs(2));
  EXPECT_EQ(made.files[1].path, "/etc/containerd/certs.d/registry.example.org/hosts.toml");
  EXPECT_FALSE(made.files[1].restart);
  EXPECT_THAT(
      made.files[1].text,
      AllOf(HasSubstr("server = \"https://registry.example.org\"\n"),
            HasSubstr("[host.\"http://hub:5050\"]\ncapabilities = [\"pull\", \"resolve\"]")));
  EXPECT_THAT(made.files[0].text,
              HasSubstr("[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = "
                        "\"/etc/containerd/certs.d\"\n"));
  // With a directory of hosts files, that one is used.
  made =
      plan(config + "[plugins.\"io.containerd.cri.v1.images\".registry]\nconfig_path = \"/c:/d\"\n",
           "2.1.0", request);
  EXPECT_EQ(made.files.at(1).path, "/c/registry.example.org/hosts.toml");
  EXPECT_THAT(made.files[0].text, Not(HasSubstr("config_path")));
  request.registry = std::nullopt;
  EXPECT_EQ(plan(config, "2.1.0", request).files.at(1).path,
            "/etc/containerd/certs.d/_default/hosts.toml");
}

TEST(SetupWithAHub, refuses_addresses_and_names_that_are_none) {
  for (const char* hub : {"hub:5050", "http://", "http://h/../x", "http://a\"b", "ftp://h"}) {
    SetupRequest request;
    request.hub = hub;
    EXPECT_EQ(plan_containerd({std::nullopt, "2.1.0"}, request, kRuntime).error().kind,
              Kind::usage);
  }
  for (const char* name : {"../..", "", "a/b", ".", "-x"}) {
    SetupRequest request;
    request.hub = "http://hub:5050";
    request.registry = name;
    EXPECT_EQ(plan_crio(request, kRuntime).error().kind, Kind::usage);
    EXPECT_EQ(plan_containerd({std::nullopt, "2.1.0"}, request, kRuntime).error().kind,
              Kind::usage);
  }
}

TEST(SetupOfCrio, is_a_drop_in_and_a_mirror) {
  SetupRequest request;
  SetupPlan made = plan_crio(request, kRuntime).value();
  ASSERT_THAT(made.files, SizeIs(1));
  EXPECT_EQ(made.files[0].path, "/etc/crio/crio.conf.d/50-berth.conf");
  EXPECT_THAT(made.files[0].text,
              HasSubstr("[crio.runtime.runtimes.berth]\nruntime_path = "
                        "\"/usr/bin/berth-runtime\"\nruntime_type = \"oci\"\n"));
  request.hub = "http://hub:5050";
  EXPECT_THAT(plan_crio(request, kRuntime).error().hint, HasSubstr("--registry"));
  request.registry = "registry.example.org";
  made = plan_crio(request, kRuntime).value();
  EXPECT_THAT(made.files.at(1).text,
              AllOf(HasSubstr("prefix = \"registry.example.org\"\n"),
                    HasSubstr("[[registry.mirror]]\nlocation = \"hub:5050\"\ninsecure = true\n")));
}

}  // namespace
}  // namespace berth::engine
