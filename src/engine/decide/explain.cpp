// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/explain.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <unordered_set>

#include "base/text.hpp"
#include "engine/container/list.hpp"
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

/// Adds an item for each part of `edits` that has none. The reason is `why`, unless the path gives
/// a better one.
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

using policy::DriverMode;

constexpr std::string_view kLibcuda = "libcuda.so.1";

bool has_nvidia(const Provenance& provenance) {
  return provenance.grant.vendor == gpu::Vendor::nvidia && !provenance.grant.nodes.empty();
}

std::string_view meaning_of(DriverMode mode) {
  switch (mode) {
    case DriverMode::bind:
      return "the driver's files are the host's, each bound in its place";
    case DriverMode::volume:
      return "the driver's files are one volume of this version";
    case DriverMode::copy:
      return "the driver's files are copied into the container's own layer";
    case DriverMode::image:
      return "the driver's files are the image's own, none of the host's are added";
    case DriverMode::none:
      return "no driver files are added";
  }
  return {};
}

// Directories that the loader searches before its cache.
std::vector<std::string> library_path_of(const oci::Spec& spec) {
  constexpr std::string_view kVariable = "LD_LIBRARY_PATH=";
  std::vector<std::string> out;
  if (!spec.process) return out;
  for (const std::string& entry : spec.process->env) {
    if (!entry.starts_with(kVariable)) continue;
    for (std::string_view one : split(std::string_view(entry).substr(kVariable.size()), ':')) {
      if (!one.empty()) out.emplace_back(one);
    }
  }
  return out;
}

std::string in_brackets(const std::string& version) {
  return version.empty() ? "" : " (" + version + ")";
}

class Loader {
 public:
  Loader(const Provenance& provenance, const oci::Spec& spec)
      : evidence_(provenance), library_path_(library_path_of(spec)) {}

  std::optional<gpu::Reason> run() const {
    const std::string entry = entry_of_ours();
    if (entry.empty() && !has_nvidia(evidence_)) return std::nullopt;
    const auto& own = evidence_.image.libraries;
    auto first = std::ranges::find_if(own, [](const scan::ImageLibrary& library) {
      return library.before_cache && !scan::is_in_driver_place(library.path);
    });
    if (first != own.end()) return of_the_image(*first);
    if (!entry.empty()) return of_ours(entry);
    if (!own.empty()) return of_the_image(own.front());
    return gpu::Reason{
        "loads",
        std::string(kLibcuda),
        false,
        "no file of that name was given, and the image has none that its loader finds",
        {}};
  }

 private:
  static gpu::Reason loads(std::string why, std::string host_path = {}) {
    return {"loads", std::string(kLibcuda), true, std::move(why), std::move(host_path)};
  }

  /// The path in Berth's own entry of the loader's cache. CDI devices are applied after the grant,
  /// and later entries win.
  std::string entry_of_ours() const {
    for (const oci::LoaderLine& line : evidence_.cdi.loader_entries) {
      if (line.soname == kLibcuda) return line.path;
    }
    for (const scan::LoaderEntry& entry : evidence_.grant.loader_entries) {
      if (entry.soname == kLibcuda) return entry.path;
    }
    return {};
  }

  bool is_of_cdi(const std::string& path) const {
    const auto& lines = evidence_.cdi.loader_entries;
    return std::ranges::any_of(lines,
                               [&](const oci::LoaderLine& line) { return line.path == path; });
  }

  bool is_of_compat(const std::string& path) const {
    const auto& compat = evidence_.image.compat;
    return compat && path.starts_with(compat->directory + "/");
  }

  gpu::Reason of_the_image(const scan::ImageLibrary& library) const {
    std::string why = library.why + " leads to " + library.path;
    for (const gpu::GrantedFile& file : evidence_.grant.files) {
      if (file.container_path != library.real_path) continue;
      return loads(why + ", over which the driver's" + in_brackets(evidence_.grant.driver_version) +
                       " is laid",
                   file.host_path);
    }
    return loads(why +
                 (is_of_compat(library.real_path) ? ", of the image's compat package"
                                                  : ", the image's own") +
                 in_brackets(library.version));
  }

  gpu::Reason of_ours(const std::string& path) const {
    std::string directory = path.substr(0, path.rfind('/'));
    bool named = std::ranges::any_of(library_path_, [&](std::string_view one) {
      return one.substr(0, one.find_last_not_of('/') + 1) == directory;
    });
    const char* cache = evidence_.image.musl ? "musl's list of directories" : "the loader's cache";
    std::string why = std::string(named ? "LD_LIBRARY_PATH" : cache) + " leads to " + path;
    if (is_of_cdi(path)) return loads(why + ", of the CDI device" + searched_before());
    if (is_of_compat(path)) {
      return loads(why + ", of the image's compat package" +
                   in_brackets(evidence_.image.compat->version));
    }
    std::string host;
    for (const gpu::GrantedFile& file : evidence_.grant.files) {
      if (file.container_path.starts_with(directory + "/libcuda.so.")) host = file.host_path;
    }
    return loads(why + ", the driver's" + in_brackets(evidence_.grant.driver_version), host);
  }

  // For CDI devices Berth does not search the image, so this only names the directories that the
  // loader searches first.
  std::string searched_before() const {
    std::vector<std::string> others;
    for (const std::string& one : library_path_) {
      if (!scan::is_in_driver_place(one + "/")) others.push_back(one);
    }
    if (others.empty()) return {};
    return "; LD_LIBRARY_PATH is searched before: " + join(others, ":");
  }

  const Provenance& evidence_;
  std::vector<std::string> library_path_;
};

/// How NVIDIA's files enter the container ("driver-mode"). Nothing without granted GPUs, and for
/// GPUs of other vendors, because images contain the libraries of those. Pure.
std::optional<gpu::Reason> driver_mode(const Provenance& provenance) {
  if (!has_nvidia(provenance)) return std::nullopt;
  DriverMode mode = provenance.grant.mode;
  std::string why(meaning_of(mode));
  if (!provenance.mode_from.empty()) why += "; " + provenance.mode_from;
  return gpu::Reason{"driver-mode", enum_text(mode), true, why, {}};
}

/// The file that a program in the container loads as libcuda.so.1 ("loads"): its path in the
/// container, how the loader finds it, and its origin. `host_path` is the file on the host. Nothing
/// unless an NVIDIA GPU or a CDI device with a libcuda was granted. Pure.
/// Source: ld.so(8); docs/decisions/0029.
std::optional<gpu::Reason> loaded_libcuda(const Provenance& provenance, const oci::Spec& spec) {
  return Loader(provenance, spec).run();
}

}  // namespace

bool Explanation::granted() const {
  return std::ranges::any_of(items, [](const gpu::Reason& item) {
    return item.given && item.kind != "requirement" && item.kind != "capabilities" &&
           item.kind != "driver-mode" && item.kind != kRootItem && item.kind != kRuleItem &&
           !item.kind.starts_with(kMpiItems);
  });
}

bool Explanation::asks_nothing() const {
  return sources.empty() && std::ranges::all_of(items, [](const gpu::Reason& item) {
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
  std::string path = files_of(context, container) + "/" + kExplanationFile;
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
