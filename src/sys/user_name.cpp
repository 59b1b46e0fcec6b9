// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/process.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMaxPasswd = size_t{4} << 20;  // and group
constexpr std::chrono::seconds kDeadline{10};

enum Column : size_t { kName = 0, kId = 2, kHome = 5 };

/// A word of the line of `id`: "name:password:id:…", which has at least `columns`.
std::string word_in(std::string_view text, uint32_t id, size_t columns, Column column) {
  std::string wanted = std::to_string(id);
  for (std::string_view line : split(text, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() >= columns && fields[kId] == wanted) return std::string(fields[column]);
  }
  return {};
}

/// What the whole name service (LDAP, SSSD) says. getent(1) belongs to the C library; a static
/// program cannot load the service's modules itself.
std::string ask_getent(const char* database, const std::vector<std::string>& ids) {
  SpawnOptions options;
  options.program = "/usr/bin/getent";
  options.args = {"getent", database};
  options.args.insert(options.args.end(), ids.begin(), ids.end());
  auto output = run_command(options, "", kDeadline);
  // It says what it has found, and that something was missing by its status.
  return output.ok() ? output->out : std::string();
}

constexpr size_t kPasswdColumns = 7, kGroupColumns = 3;

std::string of_user(uid_t uid, Column column) {
  auto passwd = read_file_if_exists(cwd(), "/etc/passwd", kMaxPasswd);
  if (passwd.ok() && *passwd) {
    std::string word = word_in(**passwd, uid, kPasswdColumns, column);
    if (!word.empty()) return word;
  }
  return word_in(ask_getent("passwd", {std::to_string(uid)}), uid, kPasswdColumns, column);
}

}  // namespace

std::string user_name(uid_t uid) {
  return of_user(uid, kName);
}

std::string home_directory(uid_t uid) {
  return of_user(uid, kHome);
}

std::vector<std::string> group_names(const std::vector<gid_t>& groups) {
  std::vector<std::string> names, unknown;
  auto text = read_file_if_exists(cwd(), "/etc/group", kMaxPasswd);
  for (gid_t group : groups) {
    std::string name =
        text.ok() && *text ? word_in(**text, group, kGroupColumns, kName) : std::string();
    if (name.empty()) {
      unknown.push_back(std::to_string(group));
    } else {
      names.push_back(std::move(name));
    }
  }
  if (unknown.empty()) return names;
  std::string told = ask_getent("group", unknown);
  for (const std::string& id : unknown) {
    auto group = static_cast<uint32_t>(parse_u64(id).value_or(0));
    std::string name = word_in(told, group, kGroupColumns, kName);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace berth::sys
