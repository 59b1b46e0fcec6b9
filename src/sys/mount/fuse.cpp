// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/fuse.hpp"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/mount/mount.hpp"
#include "sys/net/socket.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

Result<std::string> find_program(const FuseServer& server) {
  for (const std::string& path : server.programs) {
    if (check_executable(path).ok()) return path;
  }
  return make_error(Kind::not_found, "no program " + quote(server.programs.front()),
                    server.package.empty() ? "" : how_to_install(server.package));
}

Result<Fd> open_device() {
  auto device = open_at(cwd(), "/dev/fuse", O_RDWR);
  if (device.ok()) return device;
  Error error = std::move(device).error();
  // udev makes /dev/fuse accessible to all users.
  error.hint = error.kind == Kind::denied ? "as root: chmod 666 /dev/fuse" : "modprobe fuse";
  return error;
}

Result<Fd> mount_device(const Fd& device, bool writable) {
  Fd context = TRY(fsopen("fuse"));
  TRY(fsconfig_string(context, "source", "fuse"));
  TRY(fsconfig_string(context, "fd", std::to_string(device.get())));
  TRY(fsconfig_string(context, "rootmode", "40000"));
  TRY(fsconfig_string(context, "user_id", std::to_string(effective_uid())));
  TRY(fsconfig_string(context, "group_id", std::to_string(effective_gid())));
  // Lets all processes of this user namespace use the mount, like any other mount; the kernel
  // checks modes and owners.
  TRY(fsconfig_flag(context, "allow_other"));
  TRY(fsconfig_flag(context, "default_permissions"));
  if (!writable) TRY(fsconfig_flag(context, "ro"));
  TRY(fsconfig_create(context));
  return fsmount(context, writable ? 0 : MOUNT_ATTR_RDONLY);
}

Result<Fd> mount_in_own_namespace(const Fd& device, bool writable) {
  TRY(unshare(CLONE_NEWNS, "mounts"));
  return mount_device(device, writable);
}

// Making a mount, even a detached one, needs the right to mount in the present mount namespace. An
// ordinary user's process has that in a mount namespace of its own: a child enters one, passes the
// mount back, and the namespace ends with it.
Result<Fd> mount_through_child(const Fd& device, bool writable) {
  auto [ours, theirs] = TRY(socket_pair());
  Cloned child = TRY(clone3(0, -1));
  if (child.pid == 0) {
    auto mounted = mount_in_own_namespace(device, writable);
    int failed = mounted.ok() ? 0 : mounted.error().sys_errno;
    Fd found = mounted.ok() ? std::move(*mounted) : Fd();
    ignore(send_message(theirs, &failed, sizeof failed, found));
    ::_exit(0);
  }
  theirs.reset();
  Process process(child.pid, std::move(child.pidfd));
  int failed = EPIPE;
  Received received = TRY(receive_message(ours, &failed, sizeof failed));
  TRY(process.wait());
  if (received.passed) return std::move(received.passed);
  return sys_error(failed, "mount a FUSE file system");
}

Result<Fd> make_mount(const Fd& device, bool writable) {
  auto mounted = mount_device(device, writable);
  if (mounted.ok() || mounted.error().kind != Kind::denied) return mounted;
  return mount_through_child(device, writable);
}

// The input of the server is untrusted, so it keeps only the rights that it needs.
Result<void> drop_rights(uint64_t kept) {
  TRY(forbid_new_privileges());
  ignore(limit_bounding_set(kept));  // not permitted to ordinary users
  return set_capabilities({kept, kept, 0});
}

Result<void> start_orphan(const SpawnOptions& options, uint64_t kept) {
  // A mount namespace lives as long as a process in it. If the server stayed in the caller's mount
  // namespace, mounts of its file system there would keep the server alive, and the server would
  // keep the namespace alive. In a namespace of its own there are no such mounts.
  TRY(leave_mount_namespace());
  TRY(drop_rights(kept));
  Process started = TRY(spawn(options));
  started.release();
  return {};
}

// A child that ends at once starts the server, so that the server is not a child of a process that
// continues.
Result<void> start_server(const SpawnOptions& options, uint64_t kept, const Fd& words) {
  Cloned child = TRY(clone3(0, -1));
  if (child.pid == 0) {
    auto started = start_orphan(options, kept);
    if (!started.ok()) ignore(write_all(words, to_line(started.error()), "words"));
    ::_exit(started.ok() ? 0 : 1);
  }
  Process process(child.pid, std::move(child.pidfd));
  ExitStatus status = TRY(process.wait());
  if (status.shell_code() == 0) return {};
  return make_error(Kind::io, TRY(read_words(words)));
}

// Makes the first request, which waits for the server's initial message, or fails when the server
// has ended.
Result<void> await_server(const Fd& mount, const std::string& program, const Fd& words) {
  auto answer = stat_fd(mount, "its root");
  if (answer.ok()) return {};
  std::string said = TRY(read_words(words));
  std::string why = said.empty() ? "it ended" : escape_controls(said);
  return make_error(Kind::corrupt, program + ": " + why);
}

/// `image`: -1 if there is none.
Result<Fd> mount_served(const FuseServer& server, int image) {
  std::string program = TRY(find_program(server));
  Fd device = TRY(open_device());
  Fd mount = TRY(make_mount(device, server.writable));
  // A file and not a pipe, which would have to be read as long as the server lives.
  Fd words = TRY(words_file("words of " + program.substr(program.rfind('/') + 1)));
  Fd null = TRY(open_at(cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  SpawnOptions options;
  options.program = program;
  options.args = {program, "-f"};
  options.args.insert(options.args.end(), server.options.begin(), server.options.end());
  options.keep = server.keep;
  if (image >= 0) {
    options.args.push_back("/proc/self/fd/" + std::to_string(image));
    options.keep.push_back(image);
  }
  options.args.push_back("/dev/fd/" + std::to_string(device.get()));
  options.keep.push_back(device.get());
  options.env = std::vector<std::string>{"PATH=/usr/bin:/bin"};
  options.in = options.out = &null;
  options.err = &words;
  options.working_directory = "/";  // so that the server keeps no mount busy
  options.die_with_parent = false;
  options.new_session = true;
  TRY(start_server(options, server.capabilities, words));
  // With our handle of the device open, the connection would outlive the server.
  device.reset();
  TRY(await_server(mount, program, words));
  return mount;
}

}  // namespace

Result<Fd> mount_fuse(const FuseServer& server, const Fd& image) {
  return mount_served(server, image.get());
}

Result<Fd> mount_fuse(const FuseServer& server) {
  return mount_served(server, -1);
}

Result<void> check_fuse(const FuseServer& server) {
  TRY(find_program(server));
  TRY(open_device());
  return {};
}

}  // namespace berth::sys
