// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/known_hooks.hpp"

#include <algorithm>
#include <functional>

#include "gpu/cdi_hook/hook.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr const char* kCompatRoot = "/usr/local/cuda/compat";

/// Handles the value of a flag; returns false for an unknown value.
using TakeValue = std::function<bool(std::string_view)>;
using Flags = std::map<std::string_view, TakeValue>;

/// "--name value", "--name=value", "-name …"; false for anything else.
bool read_flags(const std::vector<std::string>& words, const Flags& flags) {
  for (size_t i = 0; i < words.size(); ++i) {
    std::string_view word = words[i];
    if (!word.starts_with('-')) return false;
    word.remove_prefix(word.starts_with("--") ? 2 : 1);
    size_t equals = word.find('=');
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

// The hook is an old workaround for a bug of crun, which made directories in /dev that only root
// could enter.
bool read_chmod(const Words& words) {
  std::string mode;
  std::vector<std::string> paths;
  bool good = read_flags(words, {{"mode", text_into(mode)}, {"path", path_into(paths)}});
  return good && (mode == "755" || mode == "0755") &&
         std::ranges::all_of(paths,
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
  auto request = parse_words(words);
  if (!request.ok()) return false;
  hook.links = std::move(request->links);
  hook.loader_entries = std::move(request->loader_entries);
  hook.freeze_device_nodes = request->freeze_device_nodes;
  return true;
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
  known.own = own;
  return known;
}

}  // namespace berth::gpu::cdi
