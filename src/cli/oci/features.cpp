// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "cli/oci/verb.hpp"
#include "json/value.hpp"
#include "oci/capabilities.hpp"
#include "oci/edit.hpp"
#include "plan/attributes.hpp"
#include "plan/mount_options.hpp"
#include "plan/plan.hpp"
#include "runtime/seccomp/seccomp.hpp"

namespace berth::cli::oci {
namespace {

template <class Words>
json::Value list(const Words& words) {
  json::Array array;
  for (const auto& word : words) array.emplace_back(std::string(word));
  return array;
}

json::Value enabled(bool is_enabled = true) {
  return json::Object{{"enabled", is_enabled}};
}

json::Value seccomp() {
  runtime::SeccompWords words = runtime::seccomp_words();
  return json::Object{{"enabled", true},
                      {"actions", list(words.actions)},
                      {"operators", list(words.operators)},
                      {"archs", list(words.architectures)},
                      {"knownFlags", list(words.known_flags)},
                      {"supportedFlags", list(words.supported_flags)}};
}

json::Value on_linux() {
  std::vector<std::string> options = plan::mount_option_names();
  bool maps_ids = std::ranges::find(options, "idmap") != options.end();
  json::Object cgroup{
      {"v1", true}, {"v2", true}, {"systemd", true}, {"systemdUser", true}, {"rdma", true}};
  json::Object rdt{{"enabled", true}, {"schemata", true}, {"monitoring", true}};
  json::Object policy{{"modes", list(plan::memory_policy_modes())},
                      {"flags", list(plan::memory_policy_flags())}};
  return json::Object{{"namespaces", list(plan::namespace_types())},
                      {"capabilities", list(berth::oci::capability_names())},
                      {"cgroup", std::move(cgroup)},
                      {"seccomp", seccomp()},
                      {"apparmor", enabled()},
                      {"selinux", enabled()},
                      {"intelRdt", std::move(rdt)},
                      {"memoryPolicy", std::move(policy)},
                      {"mountExtensions", json::Object{{"idmap", enabled(maps_ids)}}},
                      {"netDevices", enabled()}};
}

// The members are those of runtime-spec features.md and features-linux.md. They describe this
// program, whether or not the running kernel has the features.
Result<int> run_features(Session& session, const NoOptions&, const Arguments&) {
  json::Object annotations{{"io.github.seccomp.libseccomp.version", runtime::libseccomp_version()},
                           {"org.opencontainers.runc.checkpoint.enabled", "true"}};
  json::Object document{{"ociVersionMin", "1.0.0"},
                        {"ociVersionMax", std::string(berth::oci::kRuntimeSpecVersion)},
                        {"hooks", list(berth::oci::hook_names())},
                        {"mountOptions", list(plan::mount_option_names())},
                        {"linux", on_linux()},
                        {"annotations", std::move(annotations)},
                        {"potentiallyUnsafeConfigAnnotations",
                         json::Array{json::Value(std::string(berth::oci::kDeviceSourceAnnotation)),
                                     json::Value(std::string(berth::oci::kKeepGroupsAnnotation))}}};
  session.out = json::dump(json::Value(std::move(document)), 2) + "\n";
  return 0;
}

}  // namespace

const Verb features_verb{
    .text = {.name = "features",
             .summary = "Print the features of this runtime as JSON",
             .example = "berth-runtime features"},
    .command = [] { return make_command(no_flags, run_features); },
};

}  // namespace berth::cli::oci
