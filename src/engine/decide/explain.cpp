// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/explain.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <unordered_set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/decide/explain_driver.hpp"
#include "engine/decide/reason.hpp"
#include "gpu/grant/reasons.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr const char* kExplanationFile = "explain";
constexpr size_t kMaxExplained = size_t{4} << 20;
constexpr std::string_view kSource = "source", kItem = "item";

/// Appends one line. Escapes control characters: in foreign text they would start another line or
/// member.
void append_line(std::string& out, std::string_view kind,
                 std::initializer_list<std::string_view> members) {
  out += kind;
  for (std::string_view member : members) {
    out += '\t';
    out += escape_controls(member);
  }
  out += '\n';
}

std::string_view word_of(bool value) {
  return value ? "yes" : "no";
}

/// The reason for a mount without an item of its own.
std::string why_mounted(const std::string& destination, const std::string& why) {
  if (destination == "/etc/ld.so.cache" || destination.starts_with("/etc/ld-musl-")) {
    return "with it the loader finds the driver's libraries";
  }
  if (scan::is_in_driver_place(destination + "/")) return "the directory of the driver's files";
  if (destination.starts_with("/proc/driver/nvidia")) return "shows only granted GPUs";
  return why;
}

/// Adds the parts of `edits` without an item, for the reason `why` unless their path gives a better
/// one.
void add_edits(const oci::ContainerEdits& edits, const std::string& why, Explanation& explanation) {
  std::unordered_set<std::string_view> known;
  known.reserve(explanation.items.size());
  for (const gpu::Reason& item : explanation.items) known.insert(item.object);
  std::vector<gpu::Reason> added;  // kept apart, since `known` refers to the items
  auto add = [&](const char* kind, const std::string& object, std::string reason,
                 const std::string& from) {
    if (known.contains(object)) return;
    added.push_back({kind, object, true, std::move(reason), from});
  };
  for (const oci::DeviceNode& node : edits.device_nodes) {
    add("node", node.path, why, node.host_path == node.path ? "" : node.host_path);
  }
  for (const oci::Mount& mount : edits.mounts) {
    add("mount", mount.destination, why_mounted(mount.destination, why), mount.source);
  }
  for (const oci::Link& link : edits.links) add("link", link.path, "leads to " + link.target, "");
  for (const std::string& variable : edits.env) add("variable", variable, why, "");
  for (uint32_t gid : edits.additional_gids) {
    add("group", std::to_string(gid), "a node is accessible only to that group", "");
  }
  for (const oci::NetDeviceEdit& device : edits.net_devices) {
    add("interface", device.name, why, device.host_name);
  }
  std::move(added.begin(), added.end(), std::back_inserter(explanation.items));
}

}  // namespace

bool Explanation::granted() const {
  return std::any_of(items.begin(), items.end(), [](const gpu::Reason& item) {
    return item.given && item.kind != "requirement" && item.kind != "capabilities" &&
           item.kind != "driver-mode" && item.kind != kRootItem && item.kind != kRuleItem &&
           !item.kind.starts_with(kMpiItems);
  });
}

bool Explanation::asks_nothing() const {
  return sources.empty() && std::all_of(items.begin(), items.end(), [](const gpu::Reason& item) {
           return item.kind == kRootItem || item.kind == kRuleItem ||
                  item.kind.starts_with(kMpiItems);
         });
}

Explanation explain(Provenance provenance, const oci::Spec& spec) {
  Explanation out{std::move(provenance.sources), {}};
  auto mode = driver_mode(provenance);
  auto loads = loaded_libcuda(provenance, spec);
  gpu::complete_reasons(provenance.inventory, provenance.grant);
  out.items = std::move(provenance.grant.reasons);
  if (mode) out.items.insert(out.items.begin(), std::move(*mode));
  add_edits(provenance.placed, "of the driver", out);
  add_edits(provenance.cdi, "CDI device " + join(provenance.cdi_names, ", "), out);
  oci::ContainerEdits by_hand;
  by_hand.device_nodes = std::move(provenance.by_hand);
  add_edits(by_hand, "given by its path, which brings no driver files; --gpus does", out);
  for (const oci::DeviceNode& node : provenance.kept_back) {
    out.items.push_back({"node", node.path, false, "the policy or the job does not allow it", ""});
  }
  if (loads) out.items.push_back(std::move(*loads));
  for (policy::Verdict& rule : provenance.rules) {
    out.items.push_back({kRuleItem, std::move(rule.rule), rule.applied, std::move(rule.why),
                         std::move(rule.place)});
  }
  std::move(provenance.mpi.begin(), provenance.mpi.end(), std::back_inserter(out.items));
  if (provenance.root) out.items.push_back(std::move(*provenance.root));
  return out;
}

std::string write_explanation(const Explanation& explanation) {
  std::string out;
  out.reserve(explanation.items.size() * 160);
  for (const gpu::Verdict& source : explanation.sources) {
    append_line(out, kSource, {word_of(source.used), source.source, source.text, source.why});
  }
  for (const gpu::Reason& item : explanation.items) {
    append_line(out, kItem,
                {word_of(item.given), item.kind, item.object, item.why, item.host_path});
  }
  return out;
}

Result<Explanation> parse_explanation(std::string_view text) {
  Explanation out;
  size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    auto parts = split(line, '\t');
    bool flag = parts.size() > 1 && parts[1] == "yes";
    if (parts.size() == 5 && parts[0] == kSource) {
      out.sources.push_back(
          {std::string(parts[2]), std::string(parts[3]), flag, std::string(parts[4])});
    } else if (parts.size() == 6 && parts[0] == kItem) {
      out.items.push_back({std::string(parts[2]), std::string(parts[3]), flag,
                           std::string(parts[4]), std::string(parts[5])});
    } else {
      return make_error(Kind::corrupt, std::string(kExplanationFile) + ": line " +
                                           std::to_string(number) + ": no such line");
    }
  }
  return out;
}

Result<void> keep(const Explanation& explanation, const sys::Fd& files) {
  if (explanation.empty()) return {};
  return sys::write_file(files, kExplanationFile, write_explanation(explanation), 0600);
}

Result<Explained> explain_container(const Context& context, std::string_view reference) {
  ContainerSummary container = TRY(get_container(context, reference));
  Lifetime lifetime = container.remove ? Lifetime::removed : Lifetime::kept;
  std::string path =
      container_files(context.paths, container.id, lifetime) + "/" + kExplanationFile;
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxExplained));
  Explained out{container.id, container.name, container.image, {}};
  if (text) out.explanation = TRY(parse_explanation(*text));
  auto files = read_container(context.paths, container.id);
  if (!files.ok() || !files->exit) return out;
  out.status = files->exit->exit_code;
  out.reason = reason_of_container(context, container.id, *files->exit);
  return out;
}

}  // namespace berth::engine
