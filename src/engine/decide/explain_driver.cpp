// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/explain_driver.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"

namespace berth::engine {
namespace {

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
    auto first = std::find_if(own.begin(), own.end(), [](const scan::ImageLibrary& library) {
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
    return std::any_of(lines.begin(), lines.end(),
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
    bool named = std::any_of(library_path_.begin(), library_path_.end(), [&](std::string_view one) {
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

  // For CDI devices Berth does not search the image.
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

}  // namespace

std::optional<gpu::Reason> driver_mode(const Provenance& provenance) {
  if (!has_nvidia(provenance)) return std::nullopt;
  DriverMode mode = provenance.grant.mode;
  std::string why(meaning_of(mode));
  if (!provenance.mode_from.empty()) why += "; " + provenance.mode_from;
  return gpu::Reason{"driver-mode", enum_text(mode), true, why, {}};
}

std::optional<gpu::Reason> loaded_libcuda(const Provenance& provenance, const oci::Spec& spec) {
  return Loader(provenance, spec).run();
}

}  // namespace berth::engine
