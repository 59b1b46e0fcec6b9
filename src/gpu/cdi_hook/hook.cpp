// SPDX-License-Identifier: Apache-2.0
// Runs as: a createContainer hook of an engine, i.e. as root of the container's user namespace, in
// the container's mount namespace, before pivot_root. Hostile: everything below the container's
// root.
#include "gpu/cdi_hook/hook.hpp"

#include <fcntl.h>
#include <linux/magic.h>

#include <set>

#include "base/text.hpp"
#include "gpu/cdi_hook/root.hpp"
#include "json/fields.hpp"
#include "oci/config.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "sys/user/confine.hpp"
#include "sys/user/namespace.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr std::string_view kSeparator = "::";

std::vector<std::string_view> split_texts(std::string_view text) {
  std::vector<std::string_view> parts;
  for (size_t at = text.find(kSeparator); at != std::string_view::npos;
       at = text.find(kSeparator)) {
    parts.push_back(text.substr(0, at));
    text.remove_prefix(at + kSeparator.size());
  }
  parts.push_back(text);
  return parts;
}

std::optional<oci::LoaderLine> loader_line_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 3 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  auto flags = parse_i64(parts[2]);
  if (!flags || !std::in_range<int32_t>(*flags)) return std::nullopt;
  return oci::LoaderLine{std::string(parts[0]), std::string(parts[1]),
                         static_cast<int32_t>(*flags)};
}

constexpr size_t kMaxConfig = size_t{64} << 20;
constexpr size_t kMaxLoaderFile = size_t{16} << 20;
constexpr size_t kMaxParams = size_t{64} << 10;
constexpr const char* kParams = "/proc/driver/nvidia/params";

#if defined(__x86_64__)
constexpr std::string_view kMuslArch = "x86_64";
#else
constexpr std::string_view kMuslArch = "aarch64";
#endif
constexpr std::string_view kMuslDefault = "/lib:/usr/local/lib:/usr/lib";  // musl ldso/dynlink.c

struct State {
  std::string bundle;
};

void fields(auto& v, State& state) {
  v.required("bundle", state.bundle);
}

std::vector<scan::LoaderEntry> to_entries(const std::vector<oci::LoaderLine>& lines) {
  std::vector<scan::LoaderEntry> entries;
  for (const oci::LoaderLine& line : lines) entries.push_back({line.soname, line.path, line.flags});
  return entries;
}

/// A loader cache that has `entries` before those of `image`, the cache of the image. A confined
/// child parses `image`; an unreadable cache counts as empty.
Result<std::string> merge_loader_cache(std::string_view image,
                                       const std::vector<oci::LoaderLine>& entries) {
  auto merge = [&](std::string_view bytes) -> std::optional<std::string> {
    auto base = scan::read_loader_cache(bytes);
    if (!base.ok()) return std::nullopt;
    return scan::write_loader_cache(scan::merge(std::move(*base), to_entries(entries)));
  };
  auto merged = TRY(sys::rewrite_confined(image, 2 * kMaxLoaderFile, merge));
  if (merged) return std::move(*merged);
  // A broken cache of an image counts as empty: the image's loader would not use it either.
  return scan::write_loader_cache(scan::merge({}, to_entries(entries)));
}

Result<void> put_loader_cache(const sys::Fd& root, const std::vector<oci::LoaderLine>& entries) {
  const std::string path = "/etc/ld.so.cache";
  std::string image = TRY(find_file(root, path, kMaxLoaderFile)).value_or("");
  return put_file(root, path, TRY(merge_loader_cache(image, entries)));
}

// Makes files for the container's own ldconfig and for linkers. They are never removed again, so
// only files that nearly every image needs are made.
Result<void> put_configuration(const sys::Fd& root, const std::vector<oci::LoaderLine>& lines) {
  std::vector<scan::LoaderEntry> entries = to_entries(lines);
  for (const scan::LibraryLink& link : scan::linker_links(entries)) {
    TRY(put_optional_link(root, link.path, link.target));
  }
  TRY(put_optional_file(root, scan::kMainConfiguration, scan::kMainConfigurationText));
  return put_optional_file(root, scan::kLoaderConfiguration, scan::loader_configuration(entries));
}

bool has(const sys::Fd& root, const std::string& path) {
  return sys::open_in_root(root, path, O_PATH).ok();
}

// Instead of a cache, musl has one list of directories for the whole system.
Result<void> put_musl_path(const sys::Fd& root, const std::vector<oci::LoaderLine>& entries) {
  std::string loader = "/ld-musl-" + std::string(kMuslArch) + ".so.1";
  if (!has(root, "/lib" + loader) && !has(root, "/usr/lib" + loader)) return {};
  std::string path = "/etc/ld-musl-" + std::string(kMuslArch) + ".path";
  std::string text;
  std::set<std::string> known;
  for (const oci::LoaderLine& line : entries) {
    std::string directory = line.path.substr(0, line.path.rfind('/'));
    if (known.insert(directory).second) text += directory + "\n";
  }
  auto image = TRY(find_file(root, path, kMaxLoaderFile));
  text += image ? *image : std::string(kMuslDefault) + "\n";
  return put_file(root, path, text);
}

// Mounts over procfs only: any other file that an image has at this path is left alone.
Result<void> freeze_device_nodes(const sys::Fd& root) {
  auto place = sys::open_in_root(root, kParams, O_PATH | O_NOFOLLOW);
  if (!place.ok() || TRY(sys::file_system_type(*place, kParams)) != PROC_SUPER_MAGIC) return {};
  auto file = TRY(sys::open_at(sys::cwd(), sys::fd_path(*place), O_RDONLY));
  std::string text = TRY(sys::read_all(file, kParams, kMaxParams));
  constexpr std::string_view kModify = "ModifyDeviceFiles: 1";
  size_t at = text.find(kModify);
  if (at == std::string::npos) return {};
  text[at + kModify.size() - 1] = '0';
  return cover_file(root, kParams, text);
}

}  // namespace

std::optional<oci::Link> link_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 2 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  return oci::Link{std::string(parts[1]), std::string(parts[0])};
}

std::vector<std::string> to_words(const HookRequest& request) {
  std::vector<std::string> words;
  for (const oci::Link& link : request.links) {
    words.insert(words.end(), {"--link", link.target + std::string(kSeparator) + link.path});
  }
  for (const oci::LoaderLine& line : request.loader_entries) {
    words.insert(words.end(),
                 {"--loader-entry", line.soname + std::string(kSeparator) + line.path +
                                        std::string(kSeparator) + std::to_string(line.flags)});
  }
  if (request.freeze_device_nodes) words.emplace_back("--freeze-device-nodes");
  return words;
}

Result<HookRequest> parse_words(const std::vector<std::string>& words) {
  HookRequest request;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--freeze-device-nodes") {
      request.freeze_device_nodes = true;
      continue;
    }
    bool is_link = words[i] == "--link";
    if (!is_link && words[i] != "--loader-entry") {
      return make_error(Kind::usage, "unknown flag " + quote(words[i]));
    }
    if (++i == words.size()) return make_error(Kind::usage, words[i - 1] + " needs a value");
    auto link = is_link ? link_of(words[i]) : std::nullopt;
    auto line = is_link ? std::nullopt : loader_line_of(words[i]);
    if (link) request.links.push_back(std::move(*link));
    if (line) request.loader_entries.push_back(std::move(*line));
    if (!link && !line) {
      return make_error(Kind::usage, words[i - 1] + ": cannot read " + quote(words[i]));
    }
  }
  return request;
}

Result<sys::Fd> open_container_root(std::string_view state_text) {
  State state = TRY(json::read<State>(state_text, "state"));
  std::string path = state.bundle + "/config.json";
  std::string text =
      TRY_CTX(sys::read_file(sys::cwd(), path, kMaxConfig), "cannot read the container's bundle");
  oci::Spec spec = TRY(oci::parse_spec(text, path));
  std::string root =
      spec.root.path.starts_with('/') ? spec.root.path : state.bundle + "/" + spec.root.path;
  if (spec.root.path.empty()) return make_error(Kind::corrupt, path + ": root.path: missing");
  return sys::open_at(sys::cwd(), root, O_PATH | O_DIRECTORY);
}

Result<void> run_hook(const HookRequest& request, const sys::Fd& root) {
  for (const oci::Link& link : request.links) {
    TRY_CTX(put_link(root, link.path, link.target), "cannot make the link " + quote(link.path));
  }
  if (!request.loader_entries.empty()) {
    TRY_CTX(put_loader_cache(root, request.loader_entries),
            "cannot write the container's loader cache");
    TRY_CTX(put_configuration(root, request.loader_entries),
            "cannot write the configuration of the container's ldconfig");
    TRY_CTX(put_musl_path(root, request.loader_entries), "cannot configure musl's loader");
  }
  if (!request.freeze_device_nodes) return {};
  TRY_CTX(freeze_device_nodes(root), "cannot cover " + quote(kParams));
  return {};
}

}  // namespace berth::gpu::cdi
