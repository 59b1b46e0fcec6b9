// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/manifest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "yaml/read.hpp"

namespace berth::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> kinds(const json::Array& objects) {
  std::vector<std::string> out;
  for (const json::Value& one : objects) out.push_back(*one.find("kind")->string());
  return out;
}

ManifestRequest request() {
  return {"example.org/berth-node:1", "gpus", "/", false, {general_resources().front()}};
}

TEST(NodeManifest, has_what_has_to_exist_first_first) {
  EXPECT_THAT(kinds(node_manifest(request())),
              ElementsAre("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding",
                          "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
                          "DeviceClass", "RuntimeClass", "DaemonSet"));
}

TEST(NodeManifest, for_a_plugin_alone_has_no_rights_in_the_cluster) {
  ManifestRequest plugin = request();
  plugin.plugin_only = true;
  json::Array objects = node_manifest(plugin);
  EXPECT_THAT(kinds(objects),
              ElementsAre("Namespace", "ServiceAccount", "RuntimeClass", "DaemonSet"));
  EXPECT_THAT(json::dump(objects.back()), HasSubstr("\"automountServiceAccountToken\":false"));
  constexpr const char* kServer = "KUBERNETES_SERVICE_HOST";
  EXPECT_THAT(json::dump(objects.back()), HasSubstr(kServer));
  EXPECT_THAT(json::dump(node_manifest(request()).back()), Not(HasSubstr(kServer)));
}

TEST(NodeManifest, looks_for_drivers_where_the_nodes_have_them) {
  EXPECT_THAT(json::dump(node_manifest(request()).back()),
              HasSubstr("\"--driver-root\",\"/host\","));
  ManifestRequest other = request();
  other.driver_root = "/run/nvidia/driver";
  EXPECT_THAT(json::dump(node_manifest(other).back()),
              HasSubstr("\"--driver-root\",\"/host/run/nvidia/driver\","));
}

TEST(NodeManifest, has_a_class_for_each_name) {
  ManifestRequest many = request();
  many.resources = {{"berth.dev/gpu.nvidia", gpu::Vendor::nvidia, "", 1},
                    {"org.qnib.gpu.nv/K_80", std::nullopt, "k?0*", 1},
                    {"a.b/c", std::nullopt, "mig-1g.10gb", 1}};
  std::string text = json::dump(node_manifest(many));
  EXPECT_THAT(text, HasSubstr("\"name\":\"gpu.nvidia.berth.dev\""));
  EXPECT_THAT(text, HasSubstr("\"extendedResourceName\":\"berth.dev/gpu.nvidia\""));
  EXPECT_THAT(text, HasSubstr(R"(device.attributes[\"gpu.berth.dev\"].vendor == \"nvidia\")"));
  EXPECT_THAT(text, HasSubstr("\"name\":\"k-80.org.qnib.gpu.nv\""));
  EXPECT_THAT(text,
              HasSubstr(R"(.model.lowerAscii().matches(\"(^|[^a-z0-9])k.0.*($|[^a-z0-9])\"))"));
  EXPECT_THAT(
      text,
      HasSubstr(
          R"(.type == \"mig\" && device.attributes[\"gpu.berth.dev\"].profile.matches(\"^1g[.]10gb$\"))"));
}

TEST(NodeManifest, as_yaml_is_the_same) {
  json::Array objects = node_manifest(request());
  std::string text = manifest_yaml(objects);
  size_t at = 0, count = 0;
  while (at < text.size()) {
    ASSERT_EQ(text.substr(at, 4), "---\n");
    size_t end = std::min(text.find("\n---\n", at + 4), text.size() - 1) + 1;
    auto parsed = yaml::parse(text.substr(at + 4, end - at - 4), "manifest");
    ASSERT_TRUE(parsed.ok()) << to_line(parsed.error());
    EXPECT_EQ(*parsed, objects.at(count++));
    at = end;
  }
  EXPECT_EQ(count, objects.size());
}

}  // namespace
}  // namespace berth::engine
