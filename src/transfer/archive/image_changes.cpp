// SPDX-License-Identifier: Apache-2.0
#include "transfer/archive/image_changes.hpp"

#include "base/text.hpp"
#include "json/fields.hpp"

namespace berth::transfer {
namespace {

using Words = std::vector<std::string>;

Error refuse(const std::string& instruction, const std::string& reason) {
  return make_error(Kind::usage, "read change " + quote(instruction) + ": " + reason);
}

/// Splits at blanks; single and double quotes keep words together, a backslash escapes the next
/// character.
Result<Words> split_words(const std::string& instruction, std::string_view text) {
  Words words;
  std::string word;
  bool inside = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      inside = true;
    } else if (quote != 0 && c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
      inside = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c;
      inside = true;
    }
  }
  if (quote != 0) return refuse(instruction, "a quote is not closed");
  if (inside) words.push_back(std::move(word));
  return words;
}

Result<Words> exec_or_shell(const std::string& instruction, std::string_view text) {
  if (!text.starts_with('[')) return Words{"/bin/sh", "-c", std::string(text)};
  auto words = json::read<Words>(text, "change");
  if (!words.ok()) return refuse(instruction, "expected a JSON array of strings");
  return words;
}

/// "K=V K2=V2", or the old "K V".
Result<std::vector<std::pair<std::string, std::string>>> pairs(const std::string& instruction,
                                                               std::string_view text) {
  Words words = TRY(split_words(instruction, text));
  std::vector<std::pair<std::string, std::string>> result;
  if (!words.empty() && words[0].find('=') == std::string::npos && words.size() > 1) {
    std::string_view rest = trim(text.substr(words[0].size()));
    result.emplace_back(words[0], std::string(rest));
    return result;
  }
  for (const auto& word : words) {
    size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return refuse(instruction, "expected KEY=VALUE, got " + quote(word));
    }
    result.emplace_back(word.substr(0, equals), word.substr(equals + 1));
  }
  return result;
}

void set_env(std::vector<std::string>& env, const std::string& key, const std::string& value) {
  for (auto& entry : env) {
    if (entry.starts_with(key + "=")) {
      entry = key + "=" + value;
      return;
    }
  }
  env.push_back(key + "=" + value);
}

}  // namespace

Result<void> apply_change(const std::string& instruction, oci::ContainerDefaults& config) {
  std::string_view text = trim(instruction);
  size_t blank = text.find_first_of(" \t");
  std::string verb = to_lower(text.substr(0, blank));
  std::string_view rest = blank == text.npos ? std::string_view() : trim(text.substr(blank));
  if (rest.empty()) return refuse(instruction, "expected INSTRUCTION and its arguments");

  if (verb == "cmd") {
    config.cmd = TRY(exec_or_shell(instruction, rest));
  } else if (verb == "entrypoint") {
    config.entrypoint = TRY(exec_or_shell(instruction, rest));
  } else if (verb == "env") {
    for (const auto& [key, value] : TRY(pairs(instruction, rest))) set_env(config.env, key, value);
  } else if (verb == "label") {
    for (const auto& [key, value] : TRY(pairs(instruction, rest))) config.labels[key] = value;
  } else if (verb == "expose") {
    for (const auto& port : TRY(split_words(instruction, rest))) {
      config.exposed_ports[port.find('/') == port.npos ? port + "/tcp" : port] = {};
    }
  } else if (verb == "volume") {
    bool array = rest.starts_with('[');
    Words paths = TRY(array ? exec_or_shell(instruction, rest) : split_words(instruction, rest));
    for (const auto& path : paths) config.volumes[path] = {};
  } else if (verb == "user") {
    config.user = rest;
  } else if (verb == "workdir") {
    config.working_dir = rest;
  } else if (verb == "stopsignal") {
    config.stop_signal = rest;
  } else if (verb == "onbuild") {
    config.on_build.emplace_back(rest);
  } else {
    return refuse(instruction,
                  "expected CMD, ENTRYPOINT, ENV, EXPOSE, LABEL, ONBUILD, STOPSIGNAL, USER, VOLUME "
                  "or WORKDIR");
  }
  return {};
}

}  // namespace berth::transfer
