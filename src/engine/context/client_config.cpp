// SPDX-License-Identifier: Apache-2.0
#include "engine/context/client_config.hpp"

#include "json/value.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxConfig = size_t{1} << 20;

std::string config_path(const Environment& environment) {
  if (auto directory = environment.get_filled("DOCKER_CONFIG")) {
    return std::string(*directory) + "/config.json";
  }
  auto home = environment.get_filled("HOME");
  return home ? std::string(*home) + "/.docker/config.json" : "";
}

}  // namespace

std::string client_config(const Context& context, std::string_view member) {
  std::string path = config_path(context.environment);
  if (path.empty()) return "";
  auto text = sys::read_file_if_exists(sys::cwd(), path, kMaxConfig);
  if (text.ok() && !*text) return "";
  auto config = text.ok() ? json::parse(**text, path) : Result<json::Value>(text.error());
  if (!config.ok()) {
    context.log.warn(to_line(config.error()) + ", ignoring");
    return "";
  }
  const json::Value* value = config->find(member);
  const std::string* found = value != nullptr ? value->string() : nullptr;
  return found != nullptr ? *found : "";
}

}  // namespace berth::engine
