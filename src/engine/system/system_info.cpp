// SPDX-License-Identifier: Apache-2.0
#include "engine/system/system_info.hpp"

#include <thread>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/stats.hpp"
#include "engine/image/images.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "engine/network/default_network.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

std::string text_of(const std::string& path) {
  auto text = sys::read_file_if_exists(sys::cwd(), path);
  return text.ok() && *text ? **text : "";
}

std::string operating_system() {
  constexpr std::string_view kName = "PRETTY_NAME=";
  std::string text = text_of("/etc/os-release");
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kName)) continue;
    std::string_view name = trim(line.substr(kName.size()));
    bool quoted = name.size() > 1 && name.front() == '"' && name.back() == '"';
    return std::string(quoted ? name.substr(1, name.size() - 2) : name);
  }
  return "";
}

}  // namespace

Result<SystemInfo> system_info(const Context& context) {
  SystemInfo info;
  info.images = TRY(list_images(context)).size();
  for (const ContainerSummary& container : TRY(list_containers(context, Which::all))) {
    std::string_view state = container_state_name(container.state);
    bool paused = state == "paused";
    bool runs = is_alive(container.state) && !paused;
    info.paused += paused ? 1 : 0;
    info.running += runs ? 1 : 0;
    info.stopped += !paused && !runs ? 1 : 0;
  }
  info.kernel = trim(text_of("/proc/sys/kernel/osrelease"));
  info.host = trim(text_of("/proc/sys/kernel/hostname"));
  info.system = operating_system();
#if defined(__x86_64__)
  info.architecture = "x86_64";
#elif defined(__aarch64__)
  info.architecture = "aarch64";
#endif
  info.processors = std::thread::hardware_concurrency();
  info.memory_bytes = machine_memory().value_or(0);
  auto unified = sys::stat_entry(sys::cwd(), "/sys/fs/cgroup/cgroup.controllers");
  info.cgroup_version = unified.ok() && *unified ? 2 : 1;
  info.rootfs_driver = to_json_text(TRY(rootfs_choice(context)).driver);
  info.default_network =
      to_json_text(TRY(default_network(context.environment, context.paths.config)).network);
  info.security.emplace_back("name=seccomp,profile=default");
  if (context.identity != Identity::root) info.security.emplace_back("name=rootless");
  return info;
}

}  // namespace berth::engine
