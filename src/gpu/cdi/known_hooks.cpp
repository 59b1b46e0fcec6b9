// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/known_hooks.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "base/text.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr std::string_view kSeparator = "::";
constexpr const char* kCompatRoot = "/usr/local/cuda/compat";

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

/// What a flag does with its value; false where the value is none that we understand.
using TakeValue = std::function<bool(std::string_view)>;
using Flags = std::map<std::string_view, TakeValue>;
/// Flags without a value.
using Switches = std::map<std::string_view, bool*>;

/// "--name value", "--name=value", "-name …"; false for anything else.
bool read_flags(const std::vector<std::string>& words, const Flags& flags,
                const Switches& switches = {}) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) return false;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    size_t equals = word.find('=');
    if (auto found = switches.find(word); found != switches.end()) {
      *found->second = true;
      continue;
    }
    auto flag = flags.find(word.substr(0, equals));
    if (flag == flags.end()) return false;
    if (equals == std::string_view::npos && ++i == words.size()) return false;
    if (!flag->second(equals == std::string_view::npos ? words[i] : word.substr(equals + 1))) {
      return false;
    }
  }
  return true;
}

TakeValue text_into(std::string& target) {
  return [&target](std::string_view value) {
    target = value;
    return true;
  };
}

TakeValue path_into(std::vector<std::string>& target) {
  return [&target](std::string_view value) {
    target.emplace_back(value);
    return value.starts_with('/');
  };
}

bool ignore_value(std::string_view) {
  return true;
}

TakeValue link_into(std::vector<oci::Link>& target) {
  return [&target](std::string_view value) {
    auto link = link_of(value);
    if (link) target.push_back(std::move(*link));
    return link.has_value();
  };
}

using Words = std::vector<std::string>;

bool read_create_symlinks(const Words& words, KnownHook& hook) {
  return read_flags(words, {{"link", link_into(hook.links)}});
}

bool read_update_ldcache(const Words& words, KnownHook& hook) {
  hook.loader_cache = true;
  return read_flags(words,
                    {{"folder", path_into(hook.loader_folders)}, {"ldconfig-path", ignore_value}});
}

bool read_soname_symlinks(const Words& words, KnownHook& hook) {
  return read_flags(words,
                    {{"folder", path_into(hook.soname_folders)}, {"ldconfig-path", ignore_value}});
}

bool read_cuda_compat(const Words& words, KnownHook& hook) {
  oci::CompatRequest request{"", "", kCompatRoot};
  bool good =
      read_flags(words, {{"host-driver-version", text_into(request.host_driver_version)},
                         {"host-cuda-version", text_into(request.host_cuda_version)},
                         {"cuda-compat-container-root", text_into(request.container_root)}});
  hook.compat = std::move(request);
  return good && hook.compat->container_root.starts_with('/');
}

bool read_no_flags(const Words& words, bool& target) {
  target = true;
  return words.empty();
}

// An old way round a fault of crun, which made directories of /dev that only root could enter.
bool read_chmod(const Words& words) {
  std::string mode;
  std::vector<std::string> paths;
  bool good = read_flags(words, {{"mode", text_into(mode)}, {"path", path_into(paths)}});
  return good && (mode == "755" || mode == "0755") &&
         std::all_of(paths.begin(), paths.end(),
                     [](const std::string& path) { return path.starts_with("/dev/"); });
}

bool read_nvidia_hook(const std::string& name, const Words& words, KnownHook& hook) {
  if (name == "create-symlinks") return read_create_symlinks(words, hook);
  if (name == "update-ldcache") return read_update_ldcache(words, hook);
  if (name == "create-soname-symlinks") return read_soname_symlinks(words, hook);
  if (name == "enable-cuda-compat") return read_cuda_compat(words, hook);
  if (name == "chmod") return read_chmod(words);
  if (name == "disable-device-node-modification") {
    return read_no_flags(words, hook.freeze_device_nodes);
  }
  if (name == "update-application-profile") return read_no_flags(words, hook.application_profile);
  return false;
}

bool read_own_hook(const Words& words, KnownHook& hook) {
  auto take_entry = [&hook](std::string_view value) {
    auto line = loader_line_of(value);
    if (line) hook.loader_entries.push_back(std::move(*line));
    return line.has_value();
  };
  return read_flags(words, {{"link", link_into(hook.links)}, {"loader-entry", take_entry}},
                    {{"freeze-device-nodes", &hook.freeze_device_nodes}});
}

}  // namespace

std::optional<KnownHook> recognise(const oci::cdi::Hook& hook) {
  if (hook.hook_name != "createContainer") return std::nullopt;
  std::string_view program = std::string_view(hook.path).substr(hook.path.rfind('/') + 1);
  size_t skip = 1;  // argv[0]
  if (program == "nvidia-ctk") {
    if (hook.args.size() < 2 || hook.args[1] != "hook") return std::nullopt;
    skip = 2;
  }
  bool nvidia = program == "nvidia-ctk" || program == "nvidia-cdi-hook";
  bool own = program == kOwnHook;
  if ((!nvidia && !own) || hook.args.size() < skip + (nvidia ? 1 : 0)) return std::nullopt;

  KnownHook known;
  auto begin = hook.args.begin() + static_cast<ptrdiff_t>(skip);
  bool good = own ? read_own_hook({begin, hook.args.end()}, known)
                  : read_nvidia_hook(*begin, {begin + 1, hook.args.end()}, known);
  if (!good) return std::nullopt;
  return known;
}

std::string to_hook_text(const oci::LoaderLine& line) {
  return line.soname + std::string(kSeparator) + line.path + std::string(kSeparator) +
         std::to_string(line.flags);
}

std::optional<oci::LoaderLine> loader_line_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 3 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  auto flags = parse_i64(parts[2]);
  if (!flags || !std::in_range<int32_t>(*flags)) return std::nullopt;
  return oci::LoaderLine{std::string(parts[0]), std::string(parts[1]),
                         static_cast<int32_t>(*flags)};
}

std::string to_hook_text(const oci::Link& link) {
  return link.target + std::string(kSeparator) + link.path;
}

std::optional<oci::Link> link_of(std::string_view text) {
  auto parts = split_texts(text);
  if (parts.size() != 2 || parts[0].empty() || !parts[1].starts_with('/')) return std::nullopt;
  return oci::Link{std::string(parts[1]), std::string(parts[0])};
}

}  // namespace berth::gpu::cdi
