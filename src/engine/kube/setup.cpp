// SPDX-License-Identifier: Apache-2.0
#include "engine/kube/setup.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <string_view>

#include "base/text.hpp"
#include "policy/site/toml.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"

namespace berth::engine {
namespace {

using policy::toml_string;
using policy::TomlEntry;

constexpr std::string_view kHeader = "# Written by 'berth node setup', which also removes it.\n";
constexpr const char* kContainerdConfig = "/etc/containerd/config.toml";
constexpr const char* kContainerdDropIn = "/etc/containerd/conf.d/50-berth.toml";
constexpr const char* kCerts = "/etc/containerd/certs.d";
constexpr const char* kCrioDropIn = "/etc/crio/crio.conf.d/50-berth.conf";
constexpr const char* kMirrorDropIn = "/etc/containers/registries.conf.d/50-berth-hub.conf";
constexpr size_t kLongestConfig = size_t{1} << 20;
constexpr auto kPatience = std::chrono::seconds(10);

// ---- containerd ---------------------------------------------------------------------------------

/// What containerd's config.toml says that matters here.
struct ContainerdConfig {
  int64_t version = 0;  ///< of the format: 2, 3
  std::vector<std::string> imports;
  bool has_cri = false;         ///< a section of the CRI plugin
  bool systemd_cgroup = false;  ///< of some runtime
  bool has_runtime = false;     ///< the runtime "berth"
  std::string config_path;      ///< of registries: "/etc/containerd/certs.d"
};

constexpr std::string_view kOldCri = "io.containerd.grpc.v1.cri";
constexpr std::string_view kRuntimePlugin = "io.containerd.cri.v1.runtime";
constexpr std::string_view kImagesPlugin = "io.containerd.cri.v1.images";

Result<ContainerdConfig> read_containerd(const std::string& text) {
  ContainerdConfig config;
  for (const TomlEntry& entry : TRY(policy::parse_toml(text, kContainerdConfig))) {
    const std::vector<std::string>& path = entry.path;
    if (path == std::vector<std::string>{"version"}) {
      if (const auto* number = entry.value.get_if<int64_t>()) config.version = *number;
    }
    if (path == std::vector<std::string>{"imports"}) {
      if (const auto* list = entry.value.array()) {
        for (const json::Value& one : *list) {
          if (const auto* pattern = one.string()) config.imports.push_back(*pattern);
        }
      }
    }
    if (path.size() < 2 || path[0] != "plugins") continue;
    if (path[1] != kOldCri && path[1] != kRuntimePlugin && path[1] != kImagesPlugin) continue;
    config.has_cri = true;
    auto runtime = std::ranges::find(path, "runtimes");
    if (runtime != path.end() && ++runtime != path.end() && *runtime == "berth") {
      config.has_runtime = true;
    }
    const auto* on = entry.value.get_if<bool>();
    if (path.back() == "SystemdCgroup" && on != nullptr && *on) config.systemd_cgroup = true;
    const auto* place = entry.value.string();
    if (path.back() == "config_path" && place != nullptr) config.config_path = *place;
  }
  return config;
}

/// Whether the drop-in is among the imported files. Relative patterns start at /etc/containerd.
bool imports_drop_in(const std::vector<std::string>& imports) {
  return std::ranges::any_of(imports, [](const std::string& one) {
    std::string pattern = one.starts_with('/') ? one : "/etc/containerd/" + one;
    return ::fnmatch(pattern.c_str(), kContainerdDropIn, FNM_PATHNAME) == 0;
  });
}

std::string runtime_tables(const std::string& plugin, const ContainerdConfig& config,
                           const std::string& program) {
  std::string table = fmt::format("plugins.{}.containerd.runtimes.berth", toml_string(plugin));
  return fmt::format(
      "[{0}]\n"
      "runtime_type = \"io.containerd.runc.v2\"\n"
      "# berth-runtime reads the GPUs of a container here.\n"
      "container_annotations = [\"cdi.k8s.io/*\", \"berth.dev/*\"]\n"
      "pod_annotations = [\"berth.dev/*\"]\n"
      "[{0}.options]\n"
      "BinaryName = {1}\n"
      "SystemdCgroup = {2}\n",
      table, toml_string(program), config.systemd_cgroup);
}

std::string registry_table(const std::string& plugin) {
  return fmt::format("[plugins.{}.registry]\nconfig_path = {}\n", toml_string(plugin),
                     toml_string(kCerts));
}

bool is_before(const std::string& version, uint64_t major, uint64_t minor) {
  auto parts = split(version, '.');
  uint64_t first = parse_u64(parts[0]).value_or(0);
  uint64_t second = parts.size() < 2 ? 0 : parse_u64(parts[1]).value_or(0);
  return first < major || (first == major && second < minor);
}

// ---- the hub ------------------------------------------------------------------------------------

/// "http://hub:5050/" → "http://hub:5050".
Result<std::string> url_of(std::string_view text) {
  std::string_view rest = text;
  bool good = rest.starts_with("http://") || rest.starts_with("https://");
  if (good) rest.remove_prefix(rest.find("//") + 2);
  while (rest.ends_with('/')) rest.remove_suffix(1);
  good = good && !rest.empty() && std::ranges::all_of(rest, [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '.' || c == ':' || c == '-' || c == '[' || c == ']';
         });
  if (!good) {
    return make_error(Kind::usage,
                      "expected the hub's address, such as http://hub:5050, got " + quote(text));
  }
  return std::string(text.substr(0, text.find("//") + 2)) + std::string(rest);
}

Result<void> check_registry(const std::string& name) {
  bool good =
      !name.empty() && !name.starts_with('.') && !name.starts_with('-') &&
      std::ranges::all_of(name, [](char c) {
        return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == ':' || c == '-';
      });
  if (good) return {};
  return make_error(Kind::usage,
                    "expected a registry such as registry.example.org, got " + quote(name));
}

/// containerd reads it for every pull. Without the hub it asks the registry itself.
Result<SetupFile> hosts_file(const SetupRequest& request, const std::string& directory) {
  std::string url = TRY(url_of(*request.hub));
  std::string text(kHeader);
  if (request.registry) {
    TRY(check_registry(*request.registry));
    text += "server = " + toml_string("https://" + *request.registry) + "\n";
  }
  text += fmt::format("[host.{}]\ncapabilities = [\"pull\", \"resolve\"]\n", toml_string(url));
  std::string of = request.registry.value_or("_default");
  return SetupFile{directory + "/" + of + "/hosts.toml", std::move(text), false};
}

// ---- files --------------------------------------------------------------------------------------

std::string below(const std::string& root, const std::string& path) {
  return root == "/" ? path : root + path;
}

bool is_ours(const std::string& text) {
  return text.starts_with(kHeader);
}

Result<std::optional<std::string>> our_text(const std::string& place) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), place, kLongestConfig));
  if (text && !is_ours(*text)) {
    return make_error(Kind::exists, quote(place) + ": not written by 'berth node setup'",
                      "move it away");
  }
  return text;
}

/// "containerd github.com/containerd/containerd 1.6.20~ds1 …" → "1.6.20~ds1".
std::optional<std::string> containerd_version() {
  sys::SpawnOptions program;
  program.program = "/usr/bin/env";
  program.args = {"env", "containerd", "--version"};
  program.env = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"};
  program.working_directory = "/";
  auto output = sys::run_command(std::move(program), "", kPatience, 4096);
  if (!output.ok() || output->status.shell_code() != 0) return std::nullopt;
  auto words = split_blank(output->out);
  if (words.size() < 3) return std::nullopt;
  std::string_view version = words[2];
  if (version.starts_with('v')) version.remove_prefix(1);
  return std::string(version);
}

Result<SetupPlan> make_plan(const SetupRequest& request, const std::string& program) {
  if (request.runtime == NodeRuntime::crio) return plan_crio(request, program);
  ContainerdFacts facts;
  facts.config = TRY(
      sys::read_file_if_exists(sys::cwd(), below(request.root, kContainerdConfig), kLongestConfig));
  if (request.root == "/") facts.version = containerd_version();
  return plan_containerd(facts, request, program);
}

Result<void> write_files(const SetupRequest& request, SetupDone& done) {
  // Nothing is written if one of the files is somebody else's.
  std::vector<const SetupFile*> wanted;
  for (const SetupFile& file : done.plan.files) {
    auto present = TRY(our_text(below(request.root, file.path)));
    if (present != file.text) wanted.push_back(&file);
  }
  for (const SetupFile* file : wanted) {
    std::string place = below(request.root, file->path);
    if (!request.dry_run) {
      TRY(sys::make_directories(sys::cwd(), place.substr(0, place.rfind('/')), 0755));
      TRY(sys::replace_file(sys::cwd(), place, file->text, 0644));
    }
    done.changed.push_back(file->path);
    done.restart = done.restart || file->restart;
  }
  return {};
}

Result<void> remove_file(const SetupRequest& request, const std::string& path, bool restart,
                         SetupDone& done) {
  std::string place = below(request.root, path);
  auto text = sys::read_file_if_exists(sys::cwd(), place, kLongestConfig);
  if (!text.ok()) return std::move(text).error();
  if (!*text || !is_ours(**text)) return {};
  if (!request.dry_run) TRY(sys::remove_entry(sys::cwd(), place));
  done.changed.push_back(path);
  done.restart = done.restart || restart;
  return {};
}

Result<SetupDone> remove_files(const SetupRequest& request) {
  SetupDone done;
  if (request.runtime == NodeRuntime::crio) {
    TRY(remove_file(request, kCrioDropIn, true, done));
    TRY(remove_file(request, kMirrorDropIn, true, done));
    return done;
  }
  TRY(remove_file(request, kContainerdDropIn, true, done));
  auto registries = sys::list_directory(sys::cwd(), below(request.root, kCerts));
  if (!registries.ok() && registries.error().kind == Kind::not_found) return done;
  for (const std::string& one : TRY(std::move(registries))) {
    TRY(remove_file(request, std::string(kCerts) + "/" + one + "/hosts.toml", false, done));
  }
  return done;
}

}  // namespace

// containerd before 2.0 takes a section [plugins."io.containerd.grpc.v1.cri"] of a drop-in in the
// place of the whole one of config.toml, so that the node would lose its other settings: then
// nothing is written, unless config.toml has no such section. containerd#5837, containerd#9982
// 2.x loses it beside a drop-in of another version: ours has the version of config.toml.
Result<SetupPlan> plan_containerd(const ContainerdFacts& facts, const SetupRequest& request,
                                  const std::string& program) {
  ContainerdConfig config;
  if (facts.config) config = TRY(read_containerd(*facts.config));
  if (facts.config && config.version < 2) {
    return make_error(Kind::unsupported,
                      fmt::format("{}: its format is version 1", kContainerdConfig),
                      "containerd config migrate");
  }
  bool old = facts.version ? is_before(*facts.version, 2, 0) : config.version < 3;
  int64_t version = facts.config ? config.version : (old ? 2 : 3);
  std::string runtime(version < 3 ? kOldCri : kRuntimePlugin);
  std::string images(version < 3 ? kOldCri : kImagesPlugin);
  // Lines that an administrator has added are enough.
  std::string tables = config.has_runtime ? "" : runtime_tables(runtime, config, program);
  SetupPlan plan;
  plan.main_file = kContainerdConfig;
  if (request.hub) {
    if (config.config_path.empty()) tables += registry_table(images);
    // Several directories are separated by colons.
    std::string directory =
        config.config_path.empty() ? kCerts : std::string(split(config.config_path, ':').front());
    plan.files.push_back(TRY(hosts_file(request, directory)));
  }
  SetupFile drop_in{kContainerdDropIn, fmt::format("{}version = {}\n{}", kHeader, version, tables),
                    true};
  bool default_import = facts.version && !is_before(*facts.version, 2, 2) && !facts.config;
  bool imported = default_import || imports_drop_in(config.imports);
  if (tables.empty()) return plan;
  if (old && config.has_cri) {
    plan.lines = tables;
    plan.why = "containerd before 2.0 would lose the section [plugins." + toml_string(kOldCri) +
               "] of " + kContainerdConfig + " for that of a drop-in";
    return plan;
  }
  plan.files.insert(plan.files.begin(), std::move(drop_in));
  if (imported) return plan;
  plan.why = std::string(kContainerdConfig) + " imports no files of /etc/containerd/conf.d";
  std::string line = "imports = [\"/etc/containerd/conf.d/*.toml\"]\n";
  // A key of the top: before the first table.
  plan.lines = facts.config ? line : fmt::format("version = {}\n{}", version, line);
  return plan;
}

Result<SetupPlan> plan_crio(const SetupRequest& request, const std::string& program) {
  SetupPlan plan;
  plan.main_file = "/etc/crio/crio.conf";
  // CRI-O finds CDI files since 1.23, and its monitor is that of its default runtime.
  plan.files.push_back({kCrioDropIn,
                        fmt::format("{}[crio.runtime.runtimes.berth]\nruntime_path = {}\n"
                                    "runtime_type = \"oci\"\nruntime_root = \"/run/berth-crio\"\n",
                                    kHeader, toml_string(program)),
                        true});
  if (!request.hub) return plan;
  if (!request.registry) {
    return make_error(Kind::usage, "CRI-O needs the name of the registry that the hub stands for",
                      "--registry registry.example.org");
  }
  TRY(check_registry(*request.registry));
  std::string url = TRY(url_of(*request.hub));
  std::string host = url.substr(url.find("//") + 2);
  plan.files.push_back(
      {kMirrorDropIn,
       fmt::format("{}[[registry]]\nprefix = {}\nlocation = {}\n[[registry.mirror]]\nlocation = "
                   "{}\ninsecure = {}\n",
                   kHeader, toml_string(*request.registry), toml_string(*request.registry),
                   toml_string(host), url.starts_with("http://")),
       true});
  return plan;
}

Result<SetupDone> set_up_node(const Context& context, const SetupRequest& request) {
  if (request.remove) return remove_files(request);
  SetupDone done;
  std::string program = request.program.value_or(context.paths.libexec + "/berth-runtime");
  done.plan = TRY(make_plan(request, program));
  if (done.plan.lines.empty()) TRY(write_files(request, done));
  return done;
}

}  // namespace berth::engine
