// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/manifest.hpp"

#include <fmt/format.h>

#include <initializer_list>

#include "base/text.hpp"
#include "yaml/read.hpp"

namespace berth::engine {
namespace {

using json::Array;
using json::Object;
using json::Value;

constexpr const char* kName = "berth-node";
constexpr const char* kHost = "/host";  ///< the node's root directory in the container

Array words(std::initializer_list<const char*> list) {
  return Array(list.begin(), list.end());
}

Object labels() {
  return {{"app.kubernetes.io/name", kName}};
}

Object object_of(const char* version, const char* kind, Object metadata) {
  return {{"apiVersion", version}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

Object named(const std::string& name) {
  return {{"name", name}, {"labels", labels()}};
}

Object named_in(const std::string& name, const std::string& name_space) {
  return {{"name", name}, {"namespace", name_space}, {"labels", labels()}};
}

Object with(Object object, const char* member, Value value) {
  object.emplace_back(member, std::move(value));
  return object;
}

Value namespace_object(const std::string& name) {
  // Pods that mount directories of the node need it where Pod Security is on.
  Object metadata{{"name", name},
                  {"labels", Object{{"app.kubernetes.io/name", kName},
                                    {"pod-security.kubernetes.io/enforce", "privileged"}}}};
  return object_of("v1", "Namespace", std::move(metadata));
}

Object rule(const char* group, const char* resource, Array verbs) {
  return {
      {"apiGroups", words({group})}, {"resources", words({resource})}, {"verbs", std::move(verbs)}};
}

// Source: "RBAC" of dynamic-resource-allocation's example drivers.
// The rule for resourceclaims/driver: Kubernetes 1.36, DRAResourceClaimGranularStatusAuthorization.
Value cluster_role() {
  constexpr const char* kGroup = "resource.k8s.io";
  Array rules{
      rule("", "nodes", words({"get"})),
      rule(kGroup, "resourceclaims", words({"get", "list", "watch"})),
      rule(kGroup, "resourceclaims/status", words({"patch", "update"})),
      rule(kGroup, "resourceclaims/driver",
           words({"associated-node:patch", "associated-node:update"})),
      rule(kGroup, "resourceslices",
           words({"create", "delete", "get", "list", "patch", "update", "watch"})),
  };
  return with(object_of("rbac.authorization.k8s.io/v1", "ClusterRole", named(kName)), "rules",
              std::move(rules));
}

Value cluster_role_binding(const std::string& name_space) {
  Object binding = object_of("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", named(kName));
  binding.emplace_back(
      "roleRef",
      Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", kName}});
  binding.emplace_back(
      "subjects",
      Array{Object{{"kind", "ServiceAccount"}, {"name", kName}, {"namespace", name_space}}});
  return binding;
}

/// A directory of the node in the container.
struct NodeDirectory {
  const char* name;
  const char* path;   ///< on the node
  const char* place;  ///< in the container
  bool is_made = false;
  bool read_only = false;
};
constexpr NodeDirectory kDirectories[] = {
    // The driver's files, /dev, /sys and /proc/driver. Mounts that come later are seen, too.
    {"host", "/", kHost, false, true},
    // The ledger, which berth-node makes in it if need be, and CDI files.
    {"run", "/run", "/run"},
    {"config", "/etc/berth", "/etc/berth", true, true},
    {"device-plugins", "/var/lib/kubelet/device-plugins", "/var/lib/kubelet/device-plugins", true},
    {"pod-resources", "/var/lib/kubelet/pod-resources", "/var/lib/kubelet/pod-resources", true},
    {"plugins-registry", "/var/lib/kubelet/plugins_registry", "/var/lib/kubelet/plugins_registry",
     true},
    {"plugins", "/var/lib/kubelet/plugins", "/var/lib/kubelet/plugins", true},
};
// In the container, where nobody else writes. Not the node's own /run/berth: the inventory has
// paths below /host.
constexpr const char* kState = "/var/cache/berth-node";

Array mounts() {
  Array list;
  for (const NodeDirectory& one : kDirectories) {
    Object mount{{"name", one.name}, {"mountPath", one.place}};
    if (one.read_only) mount.emplace_back("readOnly", true);
    if (one.place == kHost) mount.emplace_back("mountPropagation", "HostToContainer");
    list.emplace_back(std::move(mount));
  }
  return list;
}

Array volumes() {
  Array list;
  for (const NodeDirectory& one : kDirectories) {
    Object path{{"path", one.path}, {"type", one.is_made ? "DirectoryOrCreate" : "Directory"}};
    list.emplace_back(Object{{"name", one.name}, {"hostPath", std::move(path)}});
  }
  return list;
}

Value field_variable(const char* name, const char* field) {
  return Object{{"name", name}, {"valueFrom", Object{{"fieldRef", Object{{"fieldPath", field}}}}}};
}

Value container_of(const ManifestRequest& request) {
  std::string root = request.driver_root == "/" ? "" : request.driver_root;
  // Annotations: berth-runtime finds the driver's files by itself, and CDI files made here would
  // have paths below /host.
  Array command{"/usr/bin/berth", "node",    "run",  "--driver-root", kHost + root, "--hand-over",
                "annotations",    "--state", kState, "--cdi-dir",     "/run/cdi"};
  Array variables{field_variable("NODE_NAME", "spec.nodeName"),
                  field_variable("POD_UID", "metadata.uid")};
  // Without rights in the cluster it need not look for the API server.
  if (request.plugin_only) {
    variables.push_back(Object{{"name", "KUBERNETES_SERVICE_HOST"}, {"value", ""}});
  }
  return Object{
      {"name", kName},
      {"image", request.image},
      {"command", std::move(command)},
      {"env", std::move(variables)},
      // For the devices of the driver and the kubelet's sockets.
      {"securityContext", Object{{"privileged", true}}},
      {"resources", Object{{"requests", Object{{"cpu", "10m"}, {"memory", "32Mi"}}}}},
      {"volumeMounts", mounts()},
  };
}

Value daemon_set(const ManifestRequest& request) {
  Object pod{
      {"serviceAccountName", kName},
      {"automountServiceAccountToken", !request.plugin_only},
      {"priorityClassName", "system-node-critical"},
      {"nodeSelector", Object{{"kubernetes.io/os", "linux"}}},
      {"tolerations", Array{Object{{"operator", "Exists"}}}},
      // The ledger names processes of the node.
      {"hostPID", true},
      {"terminationGracePeriodSeconds", 10},
      {"containers", Array{container_of(request)}},
      {"volumes", volumes()},
  };
  Object spec{
      {"selector", Object{{"matchLabels", labels()}}},
      {"updateStrategy",
       Object{{"type", "RollingUpdate"}, {"rollingUpdate", Object{{"maxUnavailable", "10%"}}}}},
      {"template", Object{{"metadata", Object{{"labels", labels()}}}, {"spec", std::move(pod)}}},
  };
  return with(object_of("apps/v1", "DaemonSet", named_in(kName, request.name_space)), "spec",
              std::move(spec));
}

/// `pattern`, with * and ?, of words that are joined by '-', as a regular expression of RE2.
/// Between the words of a model there is a blank: "NVIDIA RTX 6000 Ada Generation".
std::string expression_of(std::string_view pattern) {
  std::string out;
  for (char c : pattern) {
    bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
    if (c == '*' || c == '?') {
      out += c == '*' ? ".*" : ".";
    } else if (c == '-') {
      out += "[^a-z0-9.]+";
    } else {
      out += plain ? std::string(1, c) : fmt::format("[{}]", c);
    }
  }
  return out;
}

/// The CEL expression for devices of the models that match `pattern`, as kube::model_label() names
/// models: for a slice, that is its profile.
std::string model_test(const std::string& of, std::string_view pattern) {
  constexpr std::string_view kSlice = "mig-";
  auto matches = [](const std::string& value, const std::string& expression) {
    return fmt::format("{}.matches({})", value, json::dump(Value(expression)));
  };
  if (pattern.starts_with(kSlice)) {
    std::string profile = expression_of(pattern.substr(kSlice.size()));
    return of + ".type == \"mig\" && " + matches(of + ".profile", "^" + profile + "$");
  }
  return of + ".type != \"mig\" && " +
         matches(of + ".model.lowerAscii()",
                 "(^|[^a-z0-9])" + expression_of(pattern) + "($|[^a-z0-9])");
}

Value device_class(const kube::Resource& resource) {
  std::string of = fmt::format("device.attributes[\"{}\"]", kDraDriver);
  std::string test = fmt::format("device.driver == \"{}\"", kDraDriver);
  if (resource.vendor) {
    test += fmt::format(" && {}.vendor == \"{}\"", of, enum_text(*resource.vendor));
  }
  // A name for whole GPUs does not stand for slices, as in kube/plugin.
  test +=
      " && " + (resource.model.empty() ? of + ".type != \"mig\"" : model_test(of, resource.model));
  Object spec{{"extendedResourceName", resource.name},
              {"selectors", Array{Object{{"cel", Object{{"expression", std::move(test)}}}}}}};
  return with(
      object_of("resource.k8s.io/v1", "DeviceClass", named(device_class_name(resource.name))),
      "spec", std::move(spec));
}

constexpr const char* kPolicy = "berth-node-slices";

/// A token is of a pod on one node, and changes only that node's slices.
/// Source: the policy of kubernetes-sigs/dra-example-driver.
Value admission_policy(const std::string& name_space) {
  Object rule{{"apiGroups", words({"resource.k8s.io"})},
              {"apiVersions", words({"*"})},
              {"operations", words({"CREATE", "UPDATE", "DELETE"})},
              {"resources", words({"resourceslices"})}};
  std::string account = fmt::format("request.userInfo.username == \"system:serviceaccount:{}:{}\"",
                                    name_space, kName);
  Array variables{
      Object{{"name", "node"},
             {"expression",
              "request.userInfo.extra[?'authentication.kubernetes.io/node-name'][0].orValue('')"}},
      Object{{"name", "sliceNode"},
             {"expression",
              "(request.operation == 'DELETE' ? oldObject : object)"
              ".spec.?nodeName.orValue('')"}}};
  Array validations{
      Object{{"expression", "variables.node != ''"},
             {"message", "the token of berth-node names no node"}},
      Object{{"expression", "variables.node == variables.sliceNode"},
             {"message", "berth-node may only change the ResourceSlices of its own node"}}};
  Object spec{
      {"failurePolicy", "Fail"},
      {"matchConstraints", Object{{"resourceRules", Array{std::move(rule)}}}},
      {"matchConditions", Array{Object{{"name", kName}, {"expression", std::move(account)}}}},
      {"variables", std::move(variables)},
      {"validations", std::move(validations)}};
  return with(
      object_of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", named(kPolicy)),
      "spec", std::move(spec));
}

Value admission_binding() {
  return with(object_of("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding",
                        named(kPolicy)),
              "spec", Object{{"policyName", kPolicy}, {"validationActions", words({"Deny"})}});
}

}  // namespace

std::vector<kube::Resource> general_resources() {
  return {{"berth.dev/gpu", std::nullopt, "", 1},
          {"berth.dev/gpu.nvidia", gpu::Vendor::nvidia, "", 1},
          {"berth.dev/gpu.amd", gpu::Vendor::amd, "", 1},
          {"berth.dev/gpu.intel", gpu::Vendor::intel, "", 1}};
}

std::string device_class_name(std::string_view resource) {
  size_t slash = resource.find('/');
  std::string name = to_lower(resource.substr(slash + 1));
  for (char& c : name) {
    if (c == '_') c = '-';
  }
  return name + "." + std::string(resource.substr(0, slash));
}

json::Array node_manifest(const ManifestRequest& request) {
  Array objects{
      namespace_object(request.name_space),
      object_of("v1", "ServiceAccount", named_in(kName, request.name_space)),
  };
  if (!request.plugin_only) {
    objects.push_back(cluster_role());
    objects.push_back(cluster_role_binding(request.name_space));
    objects.push_back(admission_policy(request.name_space));
    objects.push_back(admission_binding());
    for (const kube::Resource& one : request.resources) objects.push_back(device_class(one));
  }
  objects.push_back(
      with(object_of("node.k8s.io/v1", "RuntimeClass", named("berth")), "handler", "berth"));
  objects.push_back(daemon_set(request));
  return objects;
}

std::string manifest_yaml(const json::Array& objects) {
  std::string text;
  for (const Value& one : objects) text += "---\n" + yaml::dump(one);
  return text;
}

}  // namespace berth::engine
