// SPDX-License-Identifier: Apache-2.0
#include "engine/state/configs.hpp"

#include <utility>

#include "engine/state/directory.hpp"
#include "engine/state/layout.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxContainerConfig = size_t{16} << 20;

}  // namespace

std::optional<std::string> config_of(const Paths& paths, const std::string& id) {
  for (Lifetime lifetime : {Lifetime::kept, Lifetime::removed}) {
    std::string bundle = container_files(paths, id, lifetime) + "/" + std::string(kBundleDirectory);
    auto config =
        sys::read_file_if_exists(sys::cwd(), bundle + "/config.json", kMaxContainerConfig);
    if (config.ok() && *config) return std::move(*config);
  }
  return std::nullopt;
}

Result<std::vector<std::string>> containers_with(const Paths& paths, const std::string& needle) {
  std::vector<std::string> out;
  for (std::string& id : TRY(container_ids(paths.root))) {
    auto config = config_of(paths, id);
    if (!config || config->find(needle) != std::string::npos) out.push_back(std::move(id));
  }
  return out;
}

}  // namespace berth::engine
