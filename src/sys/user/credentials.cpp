// SPDX-License-Identifier: Apache-2.0
#include "sys/user/credentials.hpp"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

constexpr int kCapabilities = 64;

Result<void> set_groups(const std::vector<uint32_t>& groups) {
  std::vector<gid_t> list(groups.begin(), groups.end());
  if (::setgroups(list.size(), list.data()) == 0) return {};
  int saved = errno;
  if (saved == EPERM && groups.empty()) {
    // In a user namespace with a single id setgroups is disabled for ever. That is fine if no
    // groups were requested.
    auto rule = read_file_if_exists(cwd(), "/proc/self/setgroups", 64);
    if (!rule.ok() || !*rule || trim(**rule) == "deny") return {};
  }
  if (saved == EINVAL) {
    return make_error(Kind::usage, "set supplementary groups: a group that is not mapped here");
  }
  return sys_error(saved, "set supplementary groups");
}

Result<void> compare_groups(std::vector<uint32_t> wanted) {
  std::array<gid_t, 65536> buffer;
  int count = ::getgroups(static_cast<int>(buffer.size()), buffer.data());
  if (count < 0) return errno_now().error("read supplementary groups");
  std::vector<uint32_t> got(buffer.begin(), buffer.begin() + count);
  std::ranges::sort(wanted);
  std::ranges::sort(got);
  if (!wanted.empty() && wanted != got) {
    return make_error(Kind::denied, "set supplementary groups: the kernel has others");
  }
  return {};
}

}  // namespace

Result<void> set_ids(uid_t uid, gid_t gid) {
  std::string group = "set group id " + std::to_string(gid);
  std::string user = "set user id " + std::to_string(uid);
  auto refused = [](int saved, const std::string& what) {
    if (saved == EINVAL)
      return make_error(Kind::usage, what + ": not mapped in this user namespace");
    return sys_error(saved, what);
  };
  // Raw system calls, because the wrappers of glibc would synchronise with threads that do not
  // exist.
  if (::syscall(SYS_setresgid, gid, gid, gid) != 0) return refused(errno, group);
  if (::syscall(SYS_setresuid, uid, uid, uid) != 0) return refused(errno, user);
  std::array<uid_t, 3> uids;
  std::array<gid_t, 3> gids;
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0 ||
      ::getresgid(&gids[0], &gids[1], &gids[2]) != 0) {
    return errno_now().error("read the identity back");
  }
  auto all_are = [](const auto& ids, auto wanted) {
    return std::ranges::all_of(ids, [&](auto id) { return id == wanted; });
  };
  if (!all_are(gids, gid)) return make_error(Kind::denied, group + ": the kernel has another");
  if (!all_are(uids, uid)) return make_error(Kind::denied, user + ": the kernel has another");
  return {};
}

Result<void> set_identity(uid_t uid, gid_t gid, const std::vector<uint32_t>& groups) {
  TRY(set_groups(groups));
  TRY(set_ids(uid, gid));
  return compare_groups(groups);
}

Result<void> keep_capabilities() {
  if (::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0) return errno_now().error("keep capabilities");
  return {};
}

Result<void> limit_bounding_set(uint64_t set) {
  for (int number = 0; number < kCapabilities; ++number) {
    if (set >> number & 1) continue;
    if (::prctl(PR_CAPBSET_DROP, number, 0, 0, 0) == 0) continue;
    int saved = errno;
    if (saved == EINVAL) return {};  // the first capability number that this kernel does not have
    return sys_error(saved, "drop capability " + std::to_string(number));
  }
  return {};
}

Result<CapabilitySets> capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0)
    return errno_now().error("read capabilities");
  auto join = [&](auto member) {
    return uint64_t{data[0].*member} | uint64_t{data[1].*member} << 32;
  };
  return CapabilitySets{join(&__user_cap_data_struct::effective),
                        join(&__user_cap_data_struct::permitted),
                        join(&__user_cap_data_struct::inheritable)};
}

Result<void> set_capabilities(const CapabilitySets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  for (size_t half = 0; half < 2; ++half) {
    auto part = [&](uint64_t set) { return static_cast<uint32_t>(set >> (32 * half)); };
    data[half] = {part(sets.effective), part(sets.permitted), part(sets.inheritable)};
  }
  if (::syscall(SYS_capset, &header, data.data()) != 0)
    return errno_now().error("set capabilities");
  return {};
}

Result<void> set_ambient(uint64_t set) {
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL) {
    return errno_now().error("clear ambient capabilities");
  }
  for (unsigned long number = 0; number < kCapabilities; ++number) {
    if (!(set >> number & 1)) continue;
    if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, number, 0, 0) != 0) {
      return errno_now().error("raise ambient capability " + std::to_string(number));
    }
  }
  return {};
}

Result<void> forbid_new_privileges() {
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_now().error("set no_new_privs");
  return {};
}

Result<void> die_with_parent(int signal) {
  if (::prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0) {
    return errno_now().error("tie this process to its parent");
  }
  return {};
}

Result<void> forbid_tracing() {
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return errno_now().error("forbid tracing");
  return {};
}

Result<uint64_t> hard_limit(int resource) {
  struct rlimit limit {};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) {
    return errno_now().error("read the limit " + std::to_string(resource));
  }
  return static_cast<uint64_t>(limit.rlim_max);
}

Result<void> set_rlimit(int resource, uint64_t soft, uint64_t hard, const std::string& name) {
  struct rlimit limit {
    soft, hard
  };
  if (::prlimit(0, static_cast<__rlimit_resource>(resource), &limit, nullptr) != 0) {
    auto text = [](uint64_t value) {
      return value == RLIM_INFINITY ? std::string("unlimited") : std::to_string(value);
    };
    return errno_now().error("set " + name + " to " + text(soft) + ":" + text(hard));
  }
  return {};
}

void allow_many_files() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);  // a failure becomes visible when a file is opened
}

Result<void> make_session_keyring() {
  constexpr int kJoinSessionKeyring = 1;  // linux/keyctl.h
  if (::syscall(SYS_keyctl, kJoinSessionKeyring, nullptr) >= 0) return {};
  return errno_now().error("make a session keyring");
}

}  // namespace berth::sys
