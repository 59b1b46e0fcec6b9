// SPDX-License-Identifier: Apache-2.0
#include "runtime/state/resctrl.hpp"

#include <fcntl.h>

#include "base/rollback.hpp"
#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::runtime {
namespace {

constexpr const char* kMount = "/sys/fs/resctrl";

// Adds the kernel's reason for the failure of the last write.
Error explain(Error error) {
  auto status = sys::read_file(sys::cwd(), std::string(kMount) + "/info/last_cmd_status", 4096);
  if (status.ok() && !trim(*status).empty() && trim(*status) != "ok") {
    error.what += " (" + escape_controls(std::string(trim(*status))) + ")";
  }
  return error;
}

Result<void> write_line(const std::string& path, const std::string& line) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  auto written = sys::write_all(file, line, path);
  return written.ok() ? std::move(written) : Result<void>(explain(std::move(written).error()));
}

/// Makes the directory of a group; false when it existed before.
Result<bool> make_group(const std::string& directory) {
  auto made = sys::make_new_directory(sys::cwd(), directory, 0755);
  if (!made.ok() && made.error().kind == Kind::exists) return false;
  if (!made.ok()) return explain(std::move(made).error());
  return true;
}

std::string directory_of(const std::string& group) {
  return group.empty() ? kMount : std::string(kMount) + "/" + group;
}

/// Writes the schemata of an existing group. Errors: as join_resctrl().
Result<void> write_schemata(const std::string& group, const std::vector<std::string>& schemata) {
  for (const auto& line : schemata) {
    TRY(write_line(directory_of(group) + "/schemata", line + "\n"));
  }
  return {};
}

}  // namespace

Result<std::string> join_resctrl(const plan::JoinResctrl& step, const std::string& id, pid_t pid) {
  const char* context = "cannot apply linux.intelRdt";
  Rollback undo;
  std::string group = directory_of(step.group);
  std::string owned;
  if (!step.group.empty() && TRY_CTX(make_group(group), context)) {
    undo.add([group] { remove_resctrl(group); });
    owned = group;
  }
  TRY_CTX(write_schemata(step.group, step.schemata), context);
  TRY_CTX(write_line(group + "/tasks", std::to_string(pid)), context);
  if (step.monitoring) {
    std::string monitor = group + "/mon_groups/" + id;
    bool made = TRY_CTX(make_group(monitor), context);
    if (made) undo.add([monitor] { remove_resctrl(monitor); });
    TRY_CTX(write_line(monitor + "/tasks", std::to_string(pid)), context);
    if (owned.empty()) owned = monitor;
  }
  undo.commit();
  return owned;
}

void remove_resctrl(const std::string& directory) {
  if (!directory.empty()) ignore(sys::remove_entry(sys::cwd(), directory));
}

}  // namespace berth::runtime
