// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/text.hpp"
#include "sys/file.hpp"
#include "sys/identity.hpp"
#include "sys/process.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMaxPasswd = size_t{4} << 20;
constexpr std::chrono::seconds kDeadline{10};

/// The name in the line of `uid`: "name:password:uid:gid:…".
std::string name_in(std::string_view passwd, uid_t uid) {
  std::string wanted = std::to_string(uid);
  for (std::string_view line : split(passwd, '\n')) {
    auto fields = split(line, ':');
    if (fields.size() >= 7 && fields[2] == wanted) return std::string(fields[0]);
  }
  return {};
}

/// What the whole name service (LDAP, SSSD) says. getent(1) belongs to the C library; a static
/// program cannot load the service's modules itself.
std::string name_by_getent(uid_t uid) {
  SpawnOptions options;
  options.program = "/usr/bin/getent";
  options.args = {"getent", "passwd", std::to_string(uid)};
  auto output = run_command(options, "", kDeadline);
  return output.ok() && output->status.shell_code() == 0 ? name_in(output->out, uid)
                                                         : std::string();
}

}  // namespace

std::string user_name(uid_t uid) {
  auto passwd = read_file_if_exists(cwd(), "/etc/passwd", kMaxPasswd);
  if (passwd.ok() && *passwd) {
    std::string name = name_in(**passwd, uid);
    if (!name.empty()) return name;
  }
  return name_by_getent(uid);
}

}  // namespace berth::sys
