// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/user/identity.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMaxPasswd = size_t{4} << 20;  // also for /etc/group
constexpr std::chrono::seconds kDeadline{10};

enum Column : size_t { kName = 0, kId = 2, kHome = 5 };
constexpr size_t kPasswdColumns = 7, kGroupColumns = 3;

/// The name in the line of `group`: "name:password:id:…".
std::string group_name_in(std::string_view text, const std::string& group) {
  for (std::string_view line : split(text, '\n')) {
    auto words = split(line, ':');
    if (words.size() >= kGroupColumns && words[kId] == group) return std::string(words[kName]);
  }
  return {};
}

/// Asks the whole name service (LDAP, SSSD). getent(1) is part of the C library. A static program
/// cannot load the modules of the name service itself.
Result<std::string> ask_getent(const char* database, const std::vector<std::string>& ids) {
  constexpr int kSomethingMissing = 2;
  SpawnOptions options;
  options.program = "/usr/bin/getent";
  options.args = {"getent", database};
  options.args.insert(options.args.end(), ids.begin(), ids.end());
  auto output = run_command(options, "", kDeadline);
  if (!output.ok() && output.error().kind == Kind::not_found) return std::string();
  const std::string asking = "ask the name service: " + join(options.args, " ");
  if (!output.ok()) return std::move(output).error().with_context(asking);
  int code = output->status.shell_code();
  if (code == 0 || code == kSomethingMissing) return std::move(output->out);
  return make_error(Kind::io, asking + ": status " + std::to_string(code));
}

}  // namespace

Result<std::optional<Account>> find_account(const std::string& name_or_uid) {
  auto account_in = [&](std::string_view text) -> std::optional<Account> {
    for (std::string_view line : split(text, '\n')) {
      auto words = split(line, ':');
      if (words.size() < kPasswdColumns) continue;
      if (words[kName] != name_or_uid && words[kId] != name_or_uid) continue;
      return Account{std::string(words[kName]), std::string(words[kId]), std::string(words[kHome])};
    }
    return std::nullopt;
  };
  auto passwd = read_file_if_exists(cwd(), "/etc/passwd", kMaxPasswd);
  if (passwd.ok() && *passwd) {
    if (auto account = account_in(**passwd)) return account;
  }
  return account_in(TRY(ask_getent("passwd", {name_or_uid})));
}

std::string user_name(uid_t uid) {
  auto account = find_account(std::to_string(uid));
  return account.ok() && *account ? std::move((*account)->name) : std::string();
}

Result<std::vector<std::string>> group_names(const std::vector<gid_t>& groups) {
  std::vector<std::string> names, unknown;
  auto text = read_file_if_exists(cwd(), "/etc/group", kMaxPasswd);
  for (gid_t group : groups) {
    std::string id = std::to_string(group);
    std::string name = text.ok() && *text ? group_name_in(**text, id) : std::string();
    if (name.empty()) {
      unknown.push_back(std::move(id));
    } else {
      names.push_back(std::move(name));
    }
  }
  if (unknown.empty()) return names;
  std::string told = TRY(ask_getent("group", unknown));
  for (const std::string& id : unknown) {
    std::string name = group_name_in(told, id);
    if (!name.empty()) names.push_back(std::move(name));
  }
  return names;
}

}  // namespace berth::sys
