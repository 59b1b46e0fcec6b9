// SPDX-License-Identifier: Apache-2.0
#include "runtime/program.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>

#include <cerrno>

#include "base/text.hpp"
#include "runtime/target.hpp"
#include "sys/credentials.hpp"
#include "sys/file.hpp"
#include "sys/mode.hpp"
#include "sys/namespace.hpp"
#include "sys/program.hpp"
#include "sys/pty.hpp"
#include "sys/socket.hpp"

namespace berth::runtime {
namespace {

// By handle from the root: a cwd of "/proc/self/fd/7" would otherwise be a way to a directory of
// the host that some descriptor still names (CVE-2024-21626).
Result<void> enter(const plan::EnterDirectory& step, MakeIn where) {
  sys::Fd root = TRY(sys::open_at(sys::cwd(), "/", O_PATH | O_DIRECTORY));
  bool makes = step.missing == plan::Missing::made;
  auto directory = makes ? open_target(root, step.path, TargetType::directory, where)
                         : sys::open_in_root(root, step.path, O_PATH | O_DIRECTORY);
  if (!makes && !directory.ok() && directory.error().kind == Kind::not_found) {
    // Kind::usage gives status 126, as docker; Kind::not_found would give 127.
    return make_error(Kind::usage, "it does not exist");
  }
  sys::Fd found = TRY(std::move(directory));
  return sys::change_directory(found, step.path);
}

// So that a program may open its own /dev/stdout. Only what is the container's alone: a file or a
// terminal of the host that somebody has redirected to keeps its owner.
void own_standard_streams(const Inside& inside, uid_t uid) {
  for (int number = 0; number <= 2; ++number) {
    sys::Fd stream(number);
    auto type = sys::file_system_type(stream, "standard stream");
    bool ours = inside.terminal || (type.ok() && *type == PIPEFS_MAGIC);
    // Where that is refused it stays as it was.
    if (ours) ignore(sys::change_owner(stream, uid, sys::kSameGroup, "standard stream"));
    stream.release();
  }
}

}  // namespace

Result<void> enter_directory(Inside& inside, const plan::EnterDirectory& step) {
  if (step.path == "/") return {};  // whoever enters the root is there
  // A volume is not ours to make anything in: the container's user does, or is refused.
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
  if (step.uid != 0) own_standard_streams(inside, step.uid);
  TRY(sys::keep_capabilities());
  TRY(step.keep_groups ? sys::set_ids(step.uid, step.gid)
                       : sys::set_identity(step.uid, step.gid, step.groups));
  // The change of identity took it back, and the parent may have died meanwhile: the channel tells.
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
  // Only what this process has can be given; runtime-spec config.md "process.capabilities": a
  // capability that cannot be granted should not be an error.
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

Result<void> await_start(Inside& inside) {
  TRY(sys::die_with_parent(0));
  TRY(inside.channel.send(Message::ready));
  inside.ready = true;
  inside.starter = Channel(TRY(sys::accept_connection(inside.prepared.start_socket)));
  return inside.starter.send(Message::ready);
}

Error execute(Inside& inside, const plan::Execute& step) {
  if (step.args.empty()) return make_error(Kind::usage, "config.json: process: missing");
  return sys::execute(inside.program, step.args, step.env);
}

}  // namespace berth::runtime
