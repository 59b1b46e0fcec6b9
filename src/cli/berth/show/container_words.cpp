// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/container_words.hpp"

#include <ctime>
#include <tuple>

#include "base/text.hpp"
#include "cli/core/table.hpp"
#include "cli/core/words.hpp"
#include "cli/template/go_text.hpp"
#include "engine/container/list.hpp"

namespace berth::cli {
namespace {

constexpr size_t kCommandWidth = 20;
constexpr size_t kMountWidth = 15;

std::string lasting(int64_t since, Now now) {
  auto then = std::chrono::system_clock::time_point(std::chrono::seconds(since));
  return human_duration(std::chrono::duration_cast<std::chrono::seconds>(now - then));
}

std::string address(const engine::PortSummary& port) {
  return port.host_ip.find(':') == std::string::npos ? port.host_ip : "[" + port.host_ip + "]";
}

/// Consecutive ports, from container port `first` to `last`.
struct PortRun {
  engine::PortSummary first;
  uint16_t last = 0;
};

std::string words_of(const PortRun& run) {
  auto range = [&](unsigned port) {
    unsigned more = run.last - run.first.container_port;
    return std::to_string(port) + (more == 0 ? "" : "-" + std::to_string(port + more));
  };
  std::string text;
  if (run.first.host_port != 0) text = address(run.first) + ":" + range(run.first.host_port) + "->";
  return text + range(run.first.container_port) + "/" + run.first.protocol;
}

/// strftime(3) for the local time zone.
std::string local_time(int64_t seconds, const char* format) {
  std::time_t time = seconds;
  std::tm parts{};
  std::array<char, 80> text;
  if (localtime_r(&time, &parts) == nullptr) return "";
  return std::string(text.data(), std::strftime(text.data(), text.size(), format, &parts));
}

}  // namespace

std::string status_words(const engine::ListedContainer& container, Now now) {
  const engine::ContainerSummary& c = container.summary;
  const std::string_view state = engine::container_state_name(c.state);
  const std::string code = std::to_string(c.exit_code.value_or(0));
  const int64_t started = c.started_ns.value_or(c.created_ns) / 1'000'000'000;
  if (state == "created") return "Created";
  if (state == "dead") return "Dead";
  if (state == "removing") return "Removal In Progress";
  if (state == "exited") return "Exited (" + code + ") " + lasting(*c.finished_at, now) + " ago";
  if (state == "restarting") {
    return "Restarting (" + code + ") " + lasting(c.finished_at.value_or(started), now) + " ago";
  }
  std::string up = "Up " + lasting(started, now);
  if (state == "paused") return up + " (Paused)";
  if (container.health.empty()) return up;
  return up +
         (container.health == "starting" ? " (health: starting)" : " (" + container.health + ")");
}

std::string command_words(const std::vector<std::string>& command, Text text) {
  std::string line;
  for (size_t i = 0; i < command.size(); ++i) {
    bool blank = i > 0 && command[i].find(' ') != std::string::npos;
    line += (i > 0 ? " " : "") + (blank ? "'" + command[i] + "'" : command[i]);
  }
  return quote_as_go(text == Text::whole ? line : truncate(line, kCommandWidth));
}

std::string port_words(std::vector<engine::PortSummary> ports) {
  auto key = [](const engine::PortSummary& p) {
    return std::tie(p.container_port, p.host_ip, p.host_port, p.protocol);
  };
  std::ranges::sort(ports, [&](const auto& a, const auto& b) { return key(a) < key(b); });
  // The open range for each address and protocol, of ports with the same number on both sides.
  // Ports with different numbers come after them; docker never joins those.
  std::vector<PortRun> runs;
  std::vector<std::string> done, mapped;
  for (const engine::PortSummary& port : ports) {
    if (port.host_port != 0 && port.host_port != port.container_port) {
      mapped.push_back(words_of(PortRun{port, port.container_port}));
      continue;
    }
    auto run = std::ranges::find_if(runs, [&](const PortRun& known) {
      return known.first.host_ip == port.host_ip && known.first.protocol == port.protocol;
    });
    if (run == runs.end()) {
      runs.push_back({port, port.container_port});
    } else if (port.container_port == run->last + 1) {
      run->last = port.container_port;
    } else {
      done.push_back(words_of(*run));
      *run = {port, port.container_port};
    }
  }
  for (const PortRun& run : runs) done.push_back(words_of(run));
  done.insert(done.end(), mapped.begin(), mapped.end());
  return join(done, ", ");
}

std::string mount_words(const std::vector<engine::MountSummary>& mounts, Text text) {
  std::string line;
  for (const engine::MountSummary& mount : mounts) {
    const std::string& name = mount.name.empty() ? mount.source : mount.name;
    line += (line.empty() ? "" : ",") + (text == Text::whole ? name : truncate(name, kMountWidth));
  }
  return line;
}

std::string size_words(const engine::ContainerSize& size) {
  return human_bytes(size.written) + " (virtual " + human_bytes(size.whole) + ")";
}

std::string zoned_time(int64_t seconds) {
  return local_time(seconds, "%Y-%m-%d %H:%M:%S %z %Z");
}

std::string zoned_moment(int64_t nanoseconds) {
  constexpr int64_t kSecond = 1'000'000'000;
  std::string zone = local_time(nanoseconds / kSecond, "%z");
  if (zone.size() == 5) zone.insert(3, ":");
  std::string fraction = std::to_string(nanoseconds % kSecond);
  fraction.insert(0, 9 - fraction.size(), '0');
  return local_time(nanoseconds / kSecond, "%Y-%m-%dT%H:%M:%S.") + fraction +
         (zone == "+00:00" ? "Z" : zone);
}

}  // namespace berth::cli
