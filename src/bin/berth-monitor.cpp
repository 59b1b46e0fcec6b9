// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>

#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "monitor/monitor.hpp"
#include "sys/mount/null_device.hpp"

namespace {

using berth::sys::Fd;

Fd descriptor(const char* text) {
  auto number = berth::parse_u64(text);
  return number && *number > 2 && *number < 1'000'000 ? Fd(static_cast<int>(*number)) : Fd();
}

/// "PID:TICKS"
std::optional<berth::monitor::KnownProcess> known_process(const char* text) {
  auto words = berth::split(text, ':');
  if (words.size() != 2) return std::nullopt;
  auto pid = berth::parse_u64(words[0]);
  auto ticks = berth::parse_u64(words[1]);
  if (!pid || !ticks || *pid == 0 || *pid > INT32_MAX) return std::nullopt;
  return berth::monitor::KnownProcess{static_cast<int32_t>(*pid), *ticks};
}

/// "json-file:MAX-BYTES:MAX-FILES", "local:…"
std::optional<berth::logs::Settings> log_settings(const char* text) {
  auto words = berth::split(text, ':');
  if (words.size() != 3) return std::nullopt;
  auto bytes = berth::parse_u64(words[1]);
  auto files = berth::parse_u64(words[2]);
  bool local = words[0] == "local";
  if (!bytes || !files || *files == 0 || (!local && words[0] != "json-file")) return std::nullopt;
  return berth::logs::Settings{local ? berth::logs::Format::local : berth::logs::Format::json_file,
                               *bytes, *files};
}

/// False for invalid arguments: only berth starts this program.
bool parse(int argc, char** argv, berth::monitor::Options& options) {
  std::pair<const char*, std::string*> const texts[] = {{"id", &options.id},
                                                        {"directory", &options.directory},
                                                        {"files", &options.files},
                                                        {"state", &options.state},
                                                        {"bundle", &options.bundle},
                                                        {"runtime", &options.runtime},
                                                        {"runtime-root", &options.runtime_root},
                                                        {"journal", &options.journal},
                                                        {"names", &options.names}};
  std::pair<const char*, Fd*> const descriptors[] = {
      {"lock-fd", &options.lock},     {"report-fd", &options.report},
      {"client-fd", &options.client}, {"caller-fd", &options.caller},
      {"parked-fd", &options.parked}, {"told-fd", &options.told}};
  std::pair<const char*, bool*> const switches[] = {{"terminal", &options.terminal},
                                                    {"keep-stdin", &options.keep_stdin},
                                                    {"remove", &options.remove},
                                                    {"adopt", &options.adopt}};
  constexpr int kDescriptors = 100;
  constexpr int kSwitches = 200;
  constexpr int kOrphan = 300;
  constexpr int kLog = 301;
  std::vector<option> table;
  auto add = [&](const auto& list, int has_argument, int first) {
    for (const auto& entry : list) table.push_back({entry.first, has_argument, nullptr, first++});
  };
  add(texts, required_argument, 0);
  add(descriptors, required_argument, kDescriptors);
  add(switches, no_argument, kSwitches);
  table.push_back({"orphan", required_argument, nullptr, kOrphan});
  table.push_back({"log", required_argument, nullptr, kLog});
  table.push_back({nullptr, 0, nullptr, 0});
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, "", table.data(), nullptr)) != -1;) {
    if (found == '?') return false;
    if (found == kOrphan) {
      options.orphan = known_process(optarg);
      if (!options.orphan) return false;
    } else if (found == kLog) {
      options.log = log_settings(optarg);
      if (!options.log) return false;
    } else if (found >= kSwitches) {
      *switches[found - kSwitches].second = true;
    } else if (found >= kDescriptors) {
      *descriptors[found - kDescriptors].second = descriptor(optarg);
    } else {
      *texts[found].second = optarg;
    }
  }
  for (const auto& text : texts) {
    if (text.second->empty()) return false;
  }
  if (options.adopt) {
    // These descriptors were for the first monitor and are closed: the numbers may be other files
    // now.
    options.report.release();
    options.client.release();
    options.caller.release();
  }
  return optind == argc && options.lock && options.parked && options.told;
}

}  // namespace

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-monitor")) return 125;
  berth::monitor::Options options;
  if (!parse(argc, argv, options)) {
    std::fputs("berth-monitor: is started by berth\n", stderr);
    return 125;
  }
  return berth::monitor::watch(std::move(options)).ok() ? 0 : 1;
}
