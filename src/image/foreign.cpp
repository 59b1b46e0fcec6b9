// SPDX-License-Identifier: Apache-2.0
#include "image/foreign.hpp"

#include <algorithm>
#include <cctype>

#include "base/text.hpp"
#include "json/value.hpp"

namespace berth::image {
namespace {

constexpr size_t kMaxFile = size_t{1} << 20;

// Does what /.singularity.d/actions/exec in such images does. Newer images leave this to apptainer.
constexpr const char* kWithEnvironment =
    "for s in /.singularity.d/env/*.sh; do if [ -f \"$s\" ]; then . \"$s\"; fi; done; exec \"$@\"";

bool is_name(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
}

std::string_view unquoted(std::string_view value) {
  bool quotes = value.size() >= 2 && value.front() == value.back() &&
                (value.front() == '"' || value.front() == '\'');
  return quotes ? value.substr(1, value.size() - 2) : value;
}

// One "K=V" per line, as enroot writes and pam_env reads them. Other lines are ignored.
std::vector<std::string> read_environment(std::string_view text) {
  std::vector<std::string> out;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    if (line.starts_with("export ")) line = trim(line.substr(7));
    size_t equals = line.find('=');
    if (equals == std::string_view::npos || !is_name(line.substr(0, equals))) continue;
    if (line.find('\0') != std::string_view::npos) continue;
    out.push_back(std::string(line.substr(0, equals + 1)) +
                  std::string(unquoted(line.substr(equals + 1))));
  }
  return out;
}

void read_labels(std::string_view text, std::map<std::string, std::string>& labels) {
  auto parsed = json::parse(text, "labels.json");
  if (!parsed.ok() || parsed->object() == nullptr) return;  // labels are only comments
  for (const auto& [name, value] : *parsed->object()) {
    if (const std::string* label = value.string()) labels[name] = *label;
  }
}

Result<void> describe_singularity(const ForeignFiles& files, oci::ContainerDefaults& says) {
  if (TRY(files.exists("/.singularity.d/env"))) {
    says.entrypoint = {"/bin/sh", "-c", kWithEnvironment, "sh"};
  }
  if (TRY(files.exists("/.singularity.d/runscript"))) says.cmd = {"/.singularity.d/runscript"};
  auto labels = TRY(files.read("/.singularity.d/labels.json", kMaxFile));
  if (labels) read_labels(*labels, says.labels);
  return {};
}

Result<void> describe_enroot(const ForeignFiles& files, oci::ContainerDefaults& says) {
  auto text = TRY(files.read("/etc/environment", kMaxFile));
  if (text) says.env = read_environment(*text);
  // /etc/rc runs the image's entrypoint with its arguments, or with the image's command.
  if (!TRY(files.read("/etc/rc", kMaxFile))) return {};
  says.entrypoint = {"/bin/sh", "/etc/rc"};
  says.cmd.clear();
  return {};
}

std::string shell_word(std::string_view word) {
  std::string out = "'";
  for (char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += " " + shell_word(word);
  return out;
}

}  // namespace

Result<oci::ContainerDefaults> describe_foreign(const ForeignFiles& files) {
  oci::ContainerDefaults says;
  says.working_dir = "/";
  says.cmd = {"/bin/sh"};
  if (TRY(files.exists("/.singularity.d"))) {
    TRY(describe_singularity(files, says));
  } else {
    TRY(describe_enroot(files, says));
  }
  return says;
}

EnrootFiles make_enroot_files(const oci::ContainerDefaults& config) {
  EnrootFiles files;
  for (const std::string& variable : config.env) {
    if (variable.find('\n') == std::string::npos) {
      files.environment += variable + "\n";
    } else {
      files.left_out.push_back(variable.substr(0, variable.find('=')));
    }
  }
  std::string directory = shell_word(config.working_dir.empty() ? "/" : config.working_dir);
  std::vector<std::string> usual = config.cmd;
  if (usual.empty() && config.entrypoint.empty()) usual = {"/bin/sh"};
  std::string entrypoint = shell_words(config.entrypoint);
  files.rc = "mkdir -p " + directory + " 2> /dev/null\n" + "cd " + directory +
             " && unset OLDPWD || exit 1\n\n" +
             "if [ -s /etc/rc.local ]; then\n    . /etc/rc.local\nfi\n\n" +
             "if [ $# -gt 0 ]; then\n    exec" + entrypoint + " \"$@\"\nelse\n    exec" +
             entrypoint + shell_words(usual) + "\nfi\n";
  return files;
}

}  // namespace berth::image
