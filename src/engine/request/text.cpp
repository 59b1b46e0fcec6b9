// SPDX-License-Identifier: Apache-2.0
#include "engine/request/text.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "sys/process/signals.hpp"

namespace berth::engine {
namespace {

using TextPair = std::pair<std::string, std::string>;
using Mode = NamespaceMode::Kind;

constexpr std::array<std::pair<std::string_view, Network>, 8> kNetworkWords = {{
    {"none", Network::none},
    {"host", Network::host},
    {"bridge", Network::bridge},
    {"default", Network::bridge},  // docker's name for the bridge
    {"podman", Network::bridge},   // podman's name for the bridge
    {"private", Network::bridge},  // podman's name for any private network
    {"pasta", Network::pasta},
    {"slirp4netns", Network::slirp4netns},
}};

Error wrong_text(std::string what) {
  return make_error(Kind::usage, std::move(what));
}

std::string double_quote(std::string_view text) {
  return "\"" + escape_controls(text) + "\"";
}

bool is_address(std::string_view text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  std::string word(text);
  return word.find('\0') == std::string::npos &&
         (inet_pton(AF_INET, word.c_str(), bytes.data()) == 1 ||
          inet_pton(AF_INET6, word.c_str(), bytes.data()) == 1);
}

/// "1024", "-1" or "unlimited".
std::optional<int64_t> parse_limit(std::string_view text) {
  if (text == "unlimited") return -1;
  auto number = parse_i64(text);
  if (number && *number < -1) return std::nullopt;
  return number;
}

bool is_access(std::string_view text) {
  std::set<char> seen(text.begin(), text.end());
  return !text.empty() && seen.size() == text.size() &&
         text.find_first_not_of("rwm") == std::string_view::npos;
}

Result<TextPair> split_pair(std::string_view text) {
  size_t equals = text.find('=');
  std::string name(text.substr(0, equals));
  if (trim(name).empty()) return wrong_text("expected NAME=VALUE");
  if (text.find('\0') != std::string_view::npos) return wrong_text("a null character");
  return TextPair{std::move(name),
                  equals == std::string_view::npos ? "" : std::string(text.substr(equals + 1))};
}

// The same check as in dockerd, but without the host name, which --hostname sets.
bool is_namespaced(std::string_view key) {
  static constexpr std::array<std::string_view, 8> kIpc = {
      "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.sem",
      "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced"};
  return std::ranges::find(kIpc, key) != kIpc.end() || key.starts_with("net.") ||
         key.starts_with("fs.mqueue.");
}

std::optional<uint64_t> parse_port(std::string_view text) {
  auto port = parse_u64(text);
  return port && *port <= 65535 ? port : std::nullopt;
}

struct Unit {
  std::string_view name;
  int64_t nanoseconds;
};
constexpr std::array kUnits = {Unit{"ns", 1},
                               Unit{"us", 1'000},
                               Unit{"µs", 1'000},
                               Unit{"ms", 1'000'000},
                               Unit{"s", 1'000'000'000},
                               Unit{"m", 60'000'000'000},
                               Unit{"h", 3'600'000'000'000}};

/// Removes a part such as "1.5h" from the front of `text`, and returns the duration; nothing if
/// there is no such part, or the duration is too long.
std::optional<int64_t> take_duration(std::string_view& text) {
  size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  auto amount = parse_decimal(text.substr(0, digits));
  std::string_view rest = text.substr(digits);
  std::string_view unit = rest.substr(0, std::min(rest.find_first_of("0123456789."), rest.size()));
  auto known = std::ranges::find_if(kUnits, [&](const Unit& one) { return one.name == unit; });
  if (!amount || known == kUnits.end()) return std::nullopt;
  double value = *amount * static_cast<double>(known->nanoseconds);
  if (value > 9e18) return std::nullopt;
  text.remove_prefix(digits + unit.size());
  return static_cast<int64_t>(value + 0.5);
}

}  // namespace

Result<Network> parse_network(std::string_view text) {
  for (const auto& [word, mode] : kNetworkWords) {
    if (word == text) return mode;
  }
  return make_error(Kind::usage,
                    "network " + quote(text) +
                        ": expected none, host, bridge, pasta, slirp4netns or container:NAME",
                    "berth run --help");
}

Result<Ulimit> parse_ulimit(std::string_view text) {
  static constexpr std::array<std::string_view, 16> kNames = {
      "as",   "core",   "cpu",   "data", "fsize",  "locks",  "memlock",    "msgqueue",
      "nice", "nofile", "nproc", "rss",  "rtprio", "rttime", "sigpending", "stack"};
  auto invalid = wrong_text("invalid ulimit argument: expected TYPE=SOFT[:HARD]");
  size_t equals = text.find('=');
  if (equals == std::string_view::npos) return invalid;
  Ulimit ulimit;
  ulimit.name = text.substr(0, equals);
  if (std::ranges::find(kNames, ulimit.name) == kNames.end()) {
    return wrong_text("invalid ulimit type: " + escape_controls(ulimit.name));
  }
  auto values = split(text.substr(equals + 1), ':');
  auto soft = parse_limit(values[0]);
  auto hard = values.size() == 2 ? parse_limit(values[1]) : soft;
  if (values.size() > 2 || !soft || !hard) return invalid;
  if (*hard != -1 && (*soft > *hard || *soft == -1)) {
    return wrong_text("ulimit soft limit must be less than or equal to hard limit: " +
                      std::string(values[0]) + " > " + std::string(values[1]));
  }
  ulimit.soft = *soft;
  ulimit.hard = *hard;
  return ulimit;
}

Result<TextPair> parse_sysctl(std::string_view text) {
  TextPair pair = TRY(split_pair(text));
  if (text.find('=') == std::string_view::npos || !is_namespaced(pair.first)) {
    return wrong_text("sysctl '" + escape_controls(text) +
                      "' is not allowed: expected NAME=VALUE of net., fs.mqueue. or the kernel's "
                      "settings of shared memory and messages");
  }
  return pair;
}

Result<TextPair> parse_label(std::string_view text) {
  TextPair pair = TRY(split_pair(text));
  if (pair.first.find_first_of(" \t\n\v\f\r") != std::string::npos) {
    return wrong_text("its name has a blank");
  }
  return pair;
}

Result<TextPair> parse_annotation(std::string_view text) {
  TextPair pair = TRY(split_pair(text));
  if (pair.first.starts_with("dev.berth.")) {
    return wrong_text("annotations of dev.berth. are Berth's own");
  }
  return pair;
}

Result<std::string> parse_add_host(std::string_view text) {
  // Docker also accepts "name=address", which is easier to read with IPv6.
  size_t at = text.find_first_of("=:");
  if (at == std::string_view::npos || at == 0) {
    return wrong_text("bad format for add-host: " + double_quote(text) + ", expected NAME:ADDRESS");
  }
  std::string_view name = text.substr(0, at);
  std::string_view address = text.substr(at + 1);
  if (address.size() > 2 && address.front() == '[' && address.back() == ']') {
    address = address.substr(1, address.size() - 2);
  }
  if (name.find_first_of(" \t\n\r\v\f#") != std::string_view::npos ||
      escape_controls(name) != name) {
    return wrong_text("bad format for add-host: " + double_quote(text) + ", expected NAME:ADDRESS");
  }
  if (address != "host-gateway" && !is_address(address)) {
    return wrong_text("invalid IP address in add-host: " + double_quote(address));
  }
  return std::string(name) + ":" + std::string(address);
}

Result<std::string> parse_dns(std::string_view text) {
  std::string_view word = trim(text);
  if (!is_address(word)) return wrong_text(escape_controls(text) + " is not an ip address");
  return std::string(word);
}

Result<std::string> parse_domain(std::string_view text) {
  std::string_view word = trim(text);
  bool good = !word.empty() && word.size() <= 255;
  for (char c : word) {
    good = good && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '-' || c == '_' || c == '.');
  }
  if (!good) return wrong_text(escape_controls(text) + " is not a valid domain");
  return std::string(word);
}

Result<std::string> parse_dns_option(std::string_view text) {
  if (trim(text).empty() || escape_controls(text) != text) {
    return wrong_text(escape_controls(text) + " is not an option of resolv.conf");
  }
  return std::string(text);
}

Result<std::string> parse_expose(std::string_view text) {
  auto invalid =
      wrong_text("invalid range format for --expose: expected PORT[-PORT][/tcp|udp|sctp]");
  size_t slash = text.find('/');
  std::string protocol = "tcp";
  if (slash != std::string_view::npos) protocol = to_lower(text.substr(slash + 1));
  if (protocol != "tcp" && protocol != "udp" && protocol != "sctp") return invalid;
  auto ports = split(text.substr(0, slash), '-');
  auto first = parse_port(ports[0]);
  auto last = ports.size() == 2 ? parse_port(ports[1]) : first;
  if (ports.size() > 2 || !first || !last || *last < *first) return invalid;
  return std::string(text.substr(0, slash)) + "/" + protocol;
}

Result<RestartPolicy> parse_restart(std::string_view text) {
  RestartPolicy policy;
  if (text.empty()) return policy;
  auto parts = split(text, ':');
  auto when = from_json_text(parts[0], std::type_identity<Restart>());
  if (!when.ok()) {
    return wrong_text("invalid restart policy '" + escape_controls(parts[0]) +
                      "': expected no, on-failure[:N], always or unless-stopped");
  }
  policy.when = *when;
  if (parts.size() == 1) return policy;
  if (policy.when != Restart::on_failure) {
    return wrong_text("maximum retry count cannot be used with restart policy '" +
                      std::string(parts[0]) + "'");
  }
  auto most = parse_u64(parts[1]);
  if (parts.size() > 2 || !most || *most > std::numeric_limits<int32_t>::max()) {
    return wrong_text("invalid restart policy format: maximum retry count must be an integer");
  }
  policy.most = static_cast<uint32_t>(*most);
  return policy;
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  auto invalid = wrong_text("expected a time such as 30s, 1m30s or 500ms");
  if (text == "0") return std::chrono::nanoseconds(0);
  if (text.empty()) return invalid;
  int64_t total = 0;
  while (!text.empty()) {
    auto part = take_duration(text);
    if (!part || total > std::numeric_limits<int64_t>::max() - *part) return invalid;
    total += *part;
  }
  return std::chrono::nanoseconds(total);
}

Result<void> parse_log_option(std::string_view text, LogSettings& log) {
  auto [name, value] = TRY(split_pair(text));
  if (name == "max-size") {
    log.max_bytes = parse_bytes(value);
    if (log.max_bytes.value_or(0) == 0) return wrong_text("max-size: expected a size such as 10m");
    return {};
  }
  if (name == "max-file") {
    log.max_files = parse_u64(value);
    if (!log.max_files || *log.max_files < 1) return wrong_text("max-file cannot be less than 1");
    return {};
  }
  return wrong_text("unknown log opt '" + escape_controls(name) +
                    "': expected max-size or max-file");
}

Result<LogDriver> parse_log_driver(std::string_view text) {
  auto driver = from_json_text(text, std::type_identity<LogDriver>());
  if (driver.ok()) return driver;
  return wrong_text("no log driver named '" + escape_controls(text) +
                    "' is registered: expected json-file, local or none");
}

Result<HostDevice> parse_host_device(std::string_view text) {
  auto parts = split(text, ':');
  auto invalid =
      wrong_text("invalid device specification: expected /dev/SOURCE[:/dev/TARGET][:rwm]");
  if (parts.size() > 3 || !parts[0].starts_with('/')) return invalid;
  HostDevice device;
  device.source = device.destination = parts[0];
  if (parts.size() == 3) {
    if (!is_access(parts[2]))
      return wrong_text("invalid device mode: " + escape_controls(parts[2]));
    device.access = parts[2];
  }
  if (parts.size() == 2 && is_access(parts[1])) {
    device.access = parts[1];
  } else if (parts.size() > 1) {
    if (!parts[1].starts_with('/') || parts[1].ends_with('/')) return invalid;
    device.destination = parts[1];
  }
  return device;
}

Result<std::string> parse_device_rule(std::string_view text) {
  auto invalid = wrong_text("invalid device cgroup format '" + escape_controls(text) +
                            "': expected such as 'c 195:* rwm'");
  auto words = split(text, ' ');
  if (words.size() != 3) return invalid;
  auto numbers = split(words[1], ':');
  auto is_number = [](std::string_view one) {
    auto number = parse_u64(one);
    return one == "*" || (number && *number <= std::numeric_limits<uint32_t>::max());
  };
  bool good = (words[0] == "a" || words[0] == "b" || words[0] == "c") && numbers.size() == 2 &&
              std::ranges::all_of(numbers, is_number) && is_access(words[2]);
  if (!good) return invalid;
  return std::string(text);
}

Result<NamespaceMode> parse_namespace(NamespaceFlag flag, std::string_view text) {
  struct AllowedWords {
    NamespaceFlag flag;
    std::string_view name;   ///< as in the errors of docker
    std::string_view words;  ///< "usual" is always allowed
    bool container;
  };
  static constexpr std::array kAllowed = {
      AllowedWords{NamespaceFlag::pid, "PID", "host private", true},
      AllowedWords{NamespaceFlag::ipc, "IPC", "host private none shareable", true},
      AllowedWords{NamespaceFlag::uts, "UTS", "host private", true},
      AllowedWords{NamespaceFlag::userns, "USER", "host keep-id", false},
      AllowedWords{NamespaceFlag::cgroupns, "CGROUP", "host private", true},
  };
  const AllowedWords& allowed =
      *std::ranges::find_if(kAllowed, [&](const AllowedWords& one) { return one.flag == flag; });
  auto words = split(allowed.words, ' ');
  auto mode = from_json_text(text, std::type_identity<NamespaceMode>());
  bool keeps = flag == NamespaceFlag::userns && text.starts_with("keep-id:");
  if (keeps) return mode;
  bool good = mode.ok() &&
              (mode->kind == Mode::usual || (mode->kind == Mode::container && allowed.container) ||
               std::ranges::find(words, text) != words.end());
  if (good) return mode;
  std::string expected = allowed.container ? "container:NAME" : "";
  for (std::string_view word : words) {
    expected.insert(0, std::string(word) + (expected.empty() ? "" : ", "));
  }
  return wrong_text("invalid " + std::string(allowed.name) + " mode: expected one of " + expected);
}

Result<std::string> parse_stream(std::string_view text) {
  std::string stream = to_lower(text);
  if (stream == "stdin" || stream == "stdout" || stream == "stderr") return stream;
  return wrong_text("valid streams are STDIN, STDOUT and STDERR");
}

Result<uint64_t> parse_cpus(std::string_view text) {
  Error wrong = make_error(Kind::usage, "expected a number such as 1.5");
  size_t dot = text.find('.');
  std::string_view whole = text.substr(0, dot);
  std::string fraction(dot == std::string_view::npos ? "" : text.substr(dot + 1));
  if (text.empty() || fraction.size() > 3 || (dot != std::string_view::npos && fraction.empty()))
    return wrong;
  fraction.resize(3, '0');
  auto units = whole.empty() ? std::optional<uint64_t>(0) : parse_u64(whole);
  auto thousandths = parse_u64(fraction);
  if (!units || !thousandths || *units > 1'000'000) return wrong;
  uint64_t millis = *units * 1000 + *thousandths;
  if (millis > 0 && millis < 10)
    return wrong;  // the kernel's minimum quota is 1 ms of a 100 ms period
  return millis;
}

Result<int> parse_signal(std::string_view text) {
  auto number = sys::signal_number(text);
  if (!number) return make_error(Kind::usage, "expected a signal such as TERM or 15");
  return *number;
}

}  // namespace berth::engine
