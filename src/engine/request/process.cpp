// SPDX-License-Identifier: Apache-2.0
#include "engine/request/process.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace berth::engine {
namespace {

void unset(std::vector<std::string>& entries, std::string_view name) {
  std::erase_if(entries, [&](const std::string& entry) { return variable_name(entry) == name; });
}

void set(std::vector<std::string>& entries, std::string entry) {
  for (std::string& existing : entries) {
    if (variable_name(existing) != variable_name(entry)) continue;
    existing = std::move(entry);
    return;
  }
  entries.push_back(std::move(entry));
}

}  // namespace

std::string_view variable_name(std::string_view entry) {
  return entry.substr(0, entry.find('='));
}

Result<std::vector<std::string>> make_environment(const EnvironmentInputs& inputs) {
  std::vector<std::string> entries = {
      "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
      "HOSTNAME=" + std::string(inputs.hostname)};
  if (inputs.terminal) entries.emplace_back("TERM=xterm");
  for (const std::string& entry : inputs.image) {
    // The image's config is untrusted: entries without '=' are dropped.
    if (entry.find('=') != std::string::npos && !entry.starts_with('=')) set(entries, entry);
  }
  for (const std::string& entry : inputs.request) {
    std::string_view name = variable_name(entry);
    if (name.empty() || entry.find('\0') != std::string::npos) {
      return make_error(Kind::usage,
                        "environment variable " + quote(entry) + ": expected NAME=value");
    }
    if (name.size() < entry.size()) {
      set(entries, entry);
    } else if (auto value = inputs.inherited.get(name)) {
      set(entries, entry + "=" + std::string(*value));
    } else {
      unset(entries, name);
    }
  }
  bool has_home = std::any_of(entries.begin(), entries.end(),
                              [](const std::string& entry) { return entry.starts_with("HOME="); });
  if (!has_home) entries.push_back("HOME=" + std::string(inputs.home));
  return entries;
}

Result<std::vector<std::string>> make_command(const std::vector<std::string>& image_entrypoint,
                                              const std::vector<std::string>& image_command,
                                              const std::optional<std::string>& entrypoint,
                                              const std::vector<std::string>& command) {
  std::vector<std::string> args;
  if (!entrypoint) {
    args = image_entrypoint;
  } else if (!entrypoint->empty()) {
    args.push_back(*entrypoint);
  }
  // The image's arguments belong to the image's entrypoint.
  const auto& tail = command.empty() && !entrypoint ? image_command : command;
  // `ch-run IMAGE -- COMMAND`: drops the "--" if there is no entrypoint. An entrypoint may expect
  // it.
  bool marked = args.empty() && tail.size() > 1 && tail.front() == "--";
  args.insert(args.end(), tail.begin() + (marked ? 1 : 0), tail.end());
  if (args.empty()) {
    return make_error(Kind::usage, "the image has no command and none was given",
                      "a command after the image, e.g. /bin/sh");
  }
  if (args[0].empty()) return make_error(Kind::usage, "the command is an empty string");
  return args;
}

}  // namespace berth::engine
