// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/container_words.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <tuple>

#include "base/text.hpp"
#include "cli/core/text_width.hpp"
#include "cli/core/words.hpp"
#include "cli/template/quote.hpp"

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

std::string range(uint16_t first, uint16_t last) {
  return std::to_string(first) + (first == last ? "" : "-" + std::to_string(last));
}

/// strftime(3) in this machine's time zone.
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
    return std::tie(p.protocol, p.host_ip, p.container_port, p.host_port);
  };
  // Published ones first: what can be reached is what people look for.
  std::sort(ports.begin(), ports.end(), [&](const auto& a, const auto& b) {
    if ((a.host_port == 0) != (b.host_port == 0)) return a.host_port != 0;
    return key(a) < key(b);
  });
  auto exposed_twice = [&](const engine::PortSummary& port) {
    return port.host_port == 0 && std::any_of(ports.begin(), ports.end(), [&](const auto& other) {
             return other.host_port != 0 && other.container_port == port.container_port &&
                    other.protocol == port.protocol;
           });
  };
  std::string text;
  for (size_t begin = 0; begin < ports.size();) {
    const engine::PortSummary& first = ports[begin];
    size_t end = begin + 1;
    auto follows = [&](const engine::PortSummary& next) {
      auto step = static_cast<uint16_t>(end - begin);
      bool host =
          first.host_port == 0 ? next.host_port == 0 : next.host_port == first.host_port + step;
      return host && next.host_ip == first.host_ip && next.protocol == first.protocol &&
             next.container_port == first.container_port + step && !exposed_twice(next);
    };
    if (exposed_twice(first)) {
      ++begin;
      continue;
    }
    while (end < ports.size() && follows(ports[end])) ++end;
    const engine::PortSummary& last = ports[end - 1];
    text += text.empty() ? "" : ", ";
    if (first.host_port != 0) {
      text += address(first) + ":" + range(first.host_port, last.host_port) + "->";
    }
    text += range(first.container_port, last.container_port) + "/" + first.protocol;
    begin = end;
  }
  return text;
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
