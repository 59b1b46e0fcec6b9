// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/program.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>

#include <cerrno>

#include "base/text.hpp"
#include "oci/user.hpp"
#include "runtime/mount/target.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/file/regular.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/program.hpp"
#include "sys/process/pty.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/namespace.hpp"

namespace berth::runtime {
namespace {

// Opens the directory from the handle of the root: otherwise a cwd of "/proc/self/fd/7" could lead
// to a directory of the host to which a descriptor still refers (CVE-2024-21626).
Result<void> enter(const plan::EnterDirectory& step, MakeIn where) {
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  bool makes = step.missing == plan::Missing::made;
  auto directory = makes ? open_target(root, step.path, TargetType::directory, where)
                         : sys::open_in_root(root, step.path, O_PATH | O_DIRECTORY);
  if (!makes && !directory.ok() && directory.error().kind == Kind::not_found) {
    // Kind::usage gives status 126, as docker; Kind::not_found would give 127: command_status().
    return make_error(Kind::usage, "No such file or directory");
  }
  sys::Fd found = TRY(std::move(directory));
  return sys::change_directory(found, step.path);
}

// Whether `stream` is for the container alone: its terminal, a pipe, or a regular file open for
// writing.
bool is_for_container(const Inside& inside, const sys::Fd& stream) {
  constexpr const char* kName = "standard stream";
  if (inside.terminal) return true;
  auto type = sys::file_system_type(stream, kName);
  if (type.ok() && *type == PIPEFS_MAGIC) return true;
  auto info = sys::stat_fd(stream, kName);
  auto mode = sys::access_mode(stream, kName);
  return info.ok() && S_ISREG(info->st_mode) && mode.ok() && *mode != O_RDONLY;
}

// Gives the standard streams to the user, so that a program may open its own /dev/stdout, as under
// runc and crun. Files that the program reads, terminals and other devices of the host keep their
// owner.
void own_standard_streams(const Inside& inside, uid_t uid, gid_t gid) {
  for (int number = 0; number <= 2; ++number) {
    sys::Fd stream(number);
    // If chown is refused, the owner stays.
    if (is_for_container(inside, stream)) {
      // A terminal keeps its group (tty).
      gid_t group = inside.terminal ? sys::kSameGroup : gid;
      ignore(sys::change_owner(stream, uid, group, "standard stream"));
    }
    stream.release();
  }
}

}  // namespace

Result<void> enter_directory(Inside& inside, const plan::EnterDirectory& step) {
  if (step.path == "/") return {};  // already there, since entering the root
  // We must not make directories in a volume: set_identity() tries that later as the container's
  // user.
  auto entered = enter(step, MakeIn::mount_of_root);
  if (!entered.ok() && entered.error().kind == Kind::denied) {
    inside.directory_denied = true;
    return {};
  }
  TRY_CTX(std::move(entered), "cannot enter working directory " + quote(step.path));
  return {};
}

Result<void> set_identity(Inside& inside, const plan::SetIdentity& step,
                          const plan::EnterDirectory& directory) {
  if (step.uid != 0) own_standard_streams(inside, step.uid, step.gid);
  TRY(sys::keep_capabilities());
  TRY(step.keep_groups ? sys::set_ids(step.uid, step.gid)
                       : sys::set_identity(step.uid, step.gid, step.groups));
  // The change of identity cleared the setting, and the parent may have died meanwhile, which the
  // channel shows.
  bool tied = inside.prepared.die_with_parent || inside.prepared.start_socket;
  TRY(sys::die_with_parent(tied ? SIGKILL : 0));
  if (sys::peer_is_gone(inside.channel.fd())) {
    return make_error(Kind::interrupted, "set user id: berth-runtime has ended");
  }
  if (!inside.directory_denied) return {};
  TRY_CTX(enter(directory, MakeIn::any_mount),
          "cannot enter working directory " + quote(directory.path));
  return {};
}

Result<void> set_capabilities(const plan::SetCapabilities& step) {
  // Only capabilities that this process has can be passed on; runtime-spec config.md
  // "process.capabilities": a capability that cannot be granted should not be an error.
  sys::CapabilitySets own = TRY(sys::capabilities());
  sys::CapabilitySets sets;
  sets.permitted = step.permitted & own.permitted;
  sets.effective = step.effective & sets.permitted;
  sets.inheritable = step.inheritable & (own.permitted | own.inheritable);
  TRY(sys::set_capabilities(sets));
  return sys::set_ambient(step.ambient & sets.permitted & sets.inheritable);
}

Result<void> find_program(Inside& inside, const plan::FindProgram& step) {
  const std::string& name = step.name;
  if (name.find('/') != std::string::npos) {
    TRY(sys::check_executable(name));
    inside.program = name;
    return {};
  }
  for (std::string_view directory : split(step.path, ':')) {
    std::string candidate = (directory.empty() ? "." : std::string(directory)) + "/" + name;
    if (!sys::check_executable(candidate).ok()) continue;
    inside.program = std::move(candidate);
    return {};
  }
  return make_error(Kind::not_found,
                    "execute " + quote(name) + ": executable file not found in $PATH");
}

Result<void> find_home(Inside& inside, const plan::FindHome& step) {
  constexpr size_t kMaxAccounts = size_t{1} << 20;
  constexpr const char* kPasswd = "/etc/passwd";
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  auto text = sys::read_regular_in_root(root, kPasswd, kMaxAccounts);
  bool is_there = text.ok() && text->has_value();
  auto user = oci::resolve_user(std::to_string(step.uid), is_there ? **text : std::string(), "");
  inside.home = user.ok() ? user->home : "/";
  return {};
}

Result<void> await_start(Inside& inside) {
  TRY(sys::die_with_parent(0));
  // A signal from `kill` ends a container that is not started, as under runc.
  sys::end_on_signals();
  TRY(inside.channel.send(Message::ready));
  inside.ready = true;
  inside.starter = Channel(TRY(sys::accept_connection(inside.prepared.start_socket)));
  return inside.starter.send(Message::ready);
}

Error execute(Inside& inside, const plan::Execute& step) {
  if (step.args.empty()) return make_error(Kind::usage, "config.json: process: missing");
  std::vector<std::string> env = step.env;
  if (inside.home) {
    std::erase(env, "HOME=");
    env.push_back("HOME=" + *inside.home);
  }
  add_activation(inside.prepared.activation, env);
  return sys::execute(inside.program, step.args, env);
}

}  // namespace berth::runtime
