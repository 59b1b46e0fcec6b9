// SPDX-License-Identifier: Apache-2.0
#include "sys/user/user_namespace.hpp"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/process.hpp"
#include "sys/user/namespace.hpp"

namespace berth::sys {
namespace {

constexpr size_t kMostRanges = 64;
constexpr uint64_t kEndOfIds = UINT32_MAX;  // 4294967295 is not an id: it means "no change"

bool overlap(const IdRange& a, const IdRange& b) {
  return uint64_t{a.outside} < uint64_t{b.outside} + b.count &&
         uint64_t{b.outside} < uint64_t{a.outside} + a.count;
}

/// Maps `own` to id 0 inside, and `ranges` to the ids from 1 on.
std::vector<IdRange> stack_ranges(uint32_t own, const std::vector<IdRange>& ranges) {
  std::vector<IdRange> stacked{{0, own, 1}};
  uint64_t inside = 1;
  for (IdRange range : ranges) {
    bool taken =
        std::ranges::any_of(stacked, [&](const IdRange& other) { return overlap(range, other); });
    if (taken || inside + range.count > kEndOfIds) continue;
    range.inside = static_cast<uint32_t>(inside);
    inside += range.count;
    stacked.push_back(range);
  }
  return stacked;
}

Result<std::vector<IdRange>> read_ranges(const std::string& file, const std::string& user,
                                         uint32_t id) {
  auto text = TRY(read_file_if_exists(cwd(), file));
  return parse_subordinate_ids(text.value_or(""), user, id);
}

// ---- entering -----------------------------------------------------------------------------------

// The child shares our memory and only waits. It keeps the namespace alive while the helpers, which
// need privileges outside of the namespace, write the maps.
int hold_namespace(void* parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // If the parent was killed before prctl(), no signal comes, so the loop checks the parent.
  while (::getppid() == *static_cast<pid_t*>(parent)) ::pause();
  ::_exit(0);
}

std::string sysctl(const std::string& path) {
  auto text = read_file_if_exists(cwd(), "/proc/sys/" + path, 64);
  return text.ok() && text->has_value() ? std::string(trim(**text)) : std::string();
}

/// The reason why the kernel refuses, as far as sysctls show it.
Error refused(int saved_errno) {
  auto error = sys_error(saved_errno, "make a user namespace");
  error.kind = Kind::unsupported;
  if (saved_errno == ENOSPC || saved_errno == EUSERS) {
    return std::move(error).with_hint("sysctl user.max_user_namespaces=65536 (it is " +
                                      sysctl("user/max_user_namespaces") + " now), as root");
  }
  if (sysctl("kernel/unprivileged_userns_clone") == "0") {
    return std::move(error).with_hint("sysctl kernel.unprivileged_userns_clone=1, as root");
  }
  if (sysctl("kernel/apparmor_restrict_unprivileged_userns") == "1") {
    return std::move(error).with_hint(
        "an AppArmor profile for berth, or sysctl "
        "kernel.apparmor_restrict_unprivileged_userns=0, as root");
  }
  if (saved_errno == EPERM || saved_errno == EACCES) {
    error.kind = Kind::denied;
    return std::move(error).with_hint("outside of a chroot and of other sandboxes");
  }
  return std::move(error).with_hint("a kernel with CONFIG_USER_NS");
}

Result<Process> make_namespace() {
  static std::array<char, 16384> stack;
  // A signal handler of ours must not run in the child, which shares our memory.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, &before);
  int pidfd = -1;
  static pid_t self;  // static, because the child may read it after this function has returned
  self = ::getpid();
  int pid = ::clone(hold_namespace, stack.data() + stack.size(),
                    CLONE_VM | CLONE_NEWUSER | CLONE_PIDFD | SIGCHLD, &self, &pidfd);
  int saved = errno;
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return refused(saved);
  return Process(pid, Fd(pidfd));
}

Result<std::vector<IdRange>> read_id_map(const std::string& path) {
  std::string text = TRY(read_file(cwd(), path, size_t{64} << 10));
  std::vector<IdRange> ranges;
  for (std::string_view line : split(text, '\n')) {
    auto words = split_blank(line);
    if (words.empty()) continue;
    auto number = [&](size_t i) {
      return i < words.size() ? parse_u64(words[i]) : std::optional<uint64_t>();
    };
    auto inside = number(0), outside = number(1), count = number(2);
    if (!inside || !outside || !count) return make_error(Kind::corrupt, "read " + quote(path));
    ranges.push_back({static_cast<uint32_t>(*inside), static_cast<uint32_t>(*outside),
                      static_cast<uint32_t>(*count)});
  }
  return ranges;
}

/// The parent of user namespace `space`, which is below our own. ioctl_ns(2)
Result<Fd> parent_namespace(const Fd& space) {
  int fd = ::ioctl(space.get(), NS_GET_PARENT);
  if (fd < 0) return errno_now().error("find out whose user namespace it is");
  return Fd(fd);
}

Result<void> write_proc(pid_t pid, const std::string& file, const std::string& text) {
  std::string path = "/proc/" + std::to_string(pid) + "/" + file;
  Fd fd = TRY(open_at(cwd(), path, O_WRONLY));
  return write_all(fd, text, path);
}

Result<void> map_single_id(pid_t pid, const IdMapping& mapping) {
  // With setgroups a process could drop a group to which the mode of a file denies access
  // (CVE-2014-8989).
  TRY(write_proc(pid, "setgroups", "deny"));
  TRY(write_proc(pid, "gid_map", "0 " + std::to_string(mapping.gid) + " 1"));
  return write_proc(pid, "uid_map", "0 " + std::to_string(mapping.uid) + " 1");
}

/// A running newuidmap or newgidmap.
struct Helper {
  std::string name;
  Process process;
  Fd said;  ///< receives its output
};

Result<Helper> start_helper(const std::string& name, pid_t pid,
                            const std::vector<IdRange>& ranges) {
  Pipe errors = TRY(make_pipe());
  SpawnOptions options;
  options.args = {name, std::to_string(pid)};
  for (const auto& range : ranges) {
    for (uint32_t number : {range.inside, range.outside, range.count}) {
      options.args.push_back(std::to_string(number));
    }
  }
  options.env = std::vector<std::string>{"PATH=/usr/bin:/bin", "LC_ALL=C"};
  options.out = &errors.write;
  options.err = &errors.write;
  // Never looked up in PATH, because this program decides our ids.
  options.program = "/usr/bin/" + name;
  auto started = spawn(options);
  if (!started.ok() && started.error().kind == Kind::not_found) {
    return make_error(Kind::not_found, "'/usr/bin/" + name + "' is not installed");
  }
  Process process = TRY(std::move(started));
  return Helper{name, std::move(process), std::move(errors.read)};
}

/// The first line that a failed helper has printed (newgidmap may add a paragraph); empty if the
/// helper has succeeded.
Result<std::string> refusal(Helper& helper) {
  auto status = TRY(helper.process.wait());
  if (status.shell_code() == 0) return std::string();
  auto said = read_all(helper.said, helper.name, 4096);
  std::string_view text = said.ok() ? trim(*said) : std::string_view();
  std::string line(trim(text.substr(0, text.find('\n'))));
  return line.empty() ? helper.name + " refuses" : line;
}

std::string advice(const Error& error, const IdMapping& mapping) {
  if (error.kind == Kind::not_found) return how_to_install("uidmap");
  return "check the lines of '" + mapping.user + "' in /etc/subuid and /etc/subgid";
}

/// Makes a namespace with all ids of `mapping`, and returns the child that holds it; nothing if the
/// helpers fail.
Result<std::optional<Process>> make_mapped(const IdMapping& mapping, Log& log) {
  if (!mapping.full()) return std::optional<Process>();
  Process holder = TRY(make_namespace());
  auto mapped = map_by_helpers(holder.pid(), mapping.uids, mapping.gids);
  if (mapped.ok()) return std::optional<Process>(std::move(holder));
  log.warn("cannot use the subordinate ids of '" + mapping.user + "': " + to_line(mapped.error()) +
           " (" + advice(mapped.error(), mapping) + "), using the single id " +
           std::to_string(mapping.uid) + " instead");
  return std::optional<Process>();
}

/// Joins the user namespace `where`, and makes a mount namespace. The maps are complete, so we
/// never lack an id.
Result<void> join(const Fd& where) {
  TRY(setns(where, CLONE_NEWUSER, "the user namespace"));
  // The kernel makes all mounts of the copy slaves, because the copy belongs to another user
  // namespace; unlike setns this keeps the working directory.
  auto unshared = unshare(CLONE_NEWNS, "the mounts");
  if (unshared.ok()) return unshared;
  return refused(unshared.error().sys_errno).with_context("cannot unshare the mounts");
}

}  // namespace

// Runs both at the same time, because each is a program start.
Result<void> map_by_helpers(pid_t pid, const std::vector<IdRange>& uids,
                            const std::vector<IdRange>& gids) {
  Helper for_uids = TRY(start_helper("newuidmap", pid, uids));
  Helper for_gids = TRY(start_helper("newgidmap", pid, gids));
  std::string refused_uids = TRY(refusal(for_uids));
  std::string refused_gids = TRY(refusal(for_gids));
  if (refused_uids.empty() && refused_gids.empty()) return {};
  bool both = !refused_uids.empty() && !refused_gids.empty();
  return make_error(Kind::denied, refused_uids + (both ? "; " : "") + refused_gids);
}

std::vector<IdRange> parse_subordinate_ids(std::string_view text, std::string_view user,
                                           uint32_t id) {
  std::vector<IdRange> ranges;
  std::string number = std::to_string(id);
  for (std::string_view line : split(text, '\n')) {
    auto parts = split(trim(line), ':');
    if (parts.size() != 3 || (parts[0] != user && parts[0] != number)) continue;
    auto first = parse_u64(parts[1]);
    auto count = parse_u64(parts[2]);
    if (!first || !count || *count == 0 || *first >= kEndOfIds || *count > kEndOfIds - *first) {
      continue;
    }
    ranges.push_back({0, static_cast<uint32_t>(*first), static_cast<uint32_t>(*count)});
    if (ranges.size() == kMostRanges) break;
  }
  return ranges;
}

Result<IdMapping> plan_mapping(uid_t uid, gid_t gid, const std::string& user) {
  IdMapping mapping;
  mapping.uid = uid;
  mapping.gid = gid;
  mapping.user = user.empty() ? std::to_string(uid) : user;
  auto uids = TRY(read_ranges("/etc/subuid", mapping.user, uid));
  auto gids = TRY(read_ranges("/etc/subgid", mapping.user, uid));
  mapping.uids = stack_ranges(uid, uids);
  mapping.gids = stack_ranges(gid, gids);
  return mapping;
}

Result<UserNamespaceKind> enter_user_namespace(const IdMapping& mapping, Log& log) {
  auto mapped = TRY(make_mapped(mapping, log));
  if (mapped) {
    TRY(join(mapped->pidfd()));
    return UserNamespaceKind::mapped;
  }
  Process holder = TRY(make_namespace());
  TRY_CTX(map_single_id(holder.pid(), mapping), "cannot map the user's own id");
  TRY(join(holder.pidfd()));
  return UserNamespaceKind::single;
}

Result<std::vector<IdRange>> mapped_uids() {
  return read_id_map("/proc/self/uid_map");
}

Result<std::vector<IdRange>> mapped_gids() {
  return read_id_map("/proc/self/gid_map");
}

Result<void> join_user_namespace(pid_t process, std::optional<uint64_t> start_time) {
  std::string path = "/proc/" + std::to_string(process) + "/ns/user";
  Fd space = TRY(open_at(cwd(), path, O_RDONLY));
  // Checked after we have the handle, because before that another process could get the pid.
  if (start_time && TRY(process_start_time(process)) != *start_time) {
    return make_error(Kind::not_found, "join the namespace of process " + std::to_string(process) +
                                           ": it has ended");
  }
  Fd own = TRY(open_at(cwd(), "/proc/self/ns/user", O_RDONLY));
  ino_t here = TRY(stat_fd(own, path)).st_ino;
  while (true) {
    Fd parent = TRY(parent_namespace(space));
    if (TRY(stat_fd(parent, path)).st_ino == here) return join(space);
    space = std::move(parent);
  }
}

}  // namespace berth::sys
