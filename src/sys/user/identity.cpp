// SPDX-License-Identifier: Apache-2.0
#include "sys/user/identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

// PROC_USER_INIT_INO: the inode of the first user namespace in every kernel.
constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;

/// "0 0 4294967295": every id maps to itself.
bool maps_all_ids() {
  auto text = read_file(cwd(), "/proc/self/uid_map", 4096);
  if (!text.ok()) return true;  // the kernel has no user namespaces
  auto words = split_blank(*text);
  return words.size() == 3 && words[0] == "0" && words[1] == "0" && words[2] == "4294967295";
}

}  // namespace

uid_t real_uid() {
  return ::getuid();
}

uid_t effective_uid() {
  return ::geteuid();
}

gid_t effective_gid() {
  return ::getegid();
}

bool in_initial_user_namespace() {
  struct stat status {};
  if (stat("/proc/self/ns/user", &status) == 0) return status.st_ino == kInitialUserNamespace;
  return maps_all_ids();
}

Result<Identity> identity() {
  Identity self;
  self.uid = getuid();
  self.gid = getgid();
  self.effective_uid = geteuid();
  self.effective_gid = getegid();
  int count = getgroups(0, nullptr);
  if (count < 0) return errno_now().error("read the supplementary groups");
  self.groups.resize(static_cast<size_t>(count));
  count = getgroups(count, self.groups.data());
  if (count < 0) return errno_now().error("read the supplementary groups");
  self.groups.resize(static_cast<size_t>(count));
  self.initial_user_namespace = in_initial_user_namespace();
  return self;
}

}  // namespace berth::sys
