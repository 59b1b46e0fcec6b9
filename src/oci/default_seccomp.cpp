// SPDX-License-Identifier: Apache-2.0
#include "oci/default_seccomp.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace berth::oci {
namespace {

// Calls that need no capability, sorted. The list is for all machines: names that a machine does
// not have are skipped when the profile is compiled.
// clang-format off
constexpr std::array<std::string_view, 363> kAlways{
    "_llseek", "_newselect", "accept", "accept4", "access", "adjtimex", "alarm", "bind", "brk",
    "cachestat", "capget", "capset", "chdir", "chmod", "chown", "chown32", "clock_adjtime",
    "clock_adjtime64", "clock_getres", "clock_getres_time64", "clock_gettime", "clock_gettime64",
    "clock_nanosleep", "clock_nanosleep_time64", "close", "close_range", "connect",
    "copy_file_range", "creat", "dup", "dup2", "dup3", "epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_ctl_old", "epoll_pwait", "epoll_pwait2", "epoll_wait", "epoll_wait_old",
    "eventfd", "eventfd2", "execve", "execveat", "exit", "exit_group", "faccessat", "faccessat2",
    "fadvise64", "fadvise64_64", "fallocate", "fanotify_mark", "fchdir", "fchmod", "fchmodat",
    "fchmodat2", "fchown", "fchown32", "fchownat", "fcntl", "fcntl64", "fdatasync", "fgetxattr",
    "flistxattr", "flock", "fork", "fremovexattr", "fsetxattr", "fstat", "fstat64", "fstatat64",
    "fstatfs", "fstatfs64", "fsync", "ftruncate", "ftruncate64", "futex", "futex_requeue",
    "futex_time64", "futex_wait", "futex_waitv", "futex_wake", "futimesat", "get_robust_list",
    "get_thread_area", "getcpu", "getcwd", "getdents", "getdents64", "getegid", "getegid32",
    "geteuid", "geteuid32", "getgid", "getgid32", "getgroups", "getgroups32", "getitimer",
    "getpeername", "getpgid", "getpgrp", "getpid", "getppid", "getpriority", "getrandom",
    "getresgid", "getresgid32", "getresuid", "getresuid32", "getrlimit", "getrusage", "getsid",
    "getsockname", "getsockopt", "gettid", "gettimeofday", "getuid", "getuid32", "getxattr",
    "getxattrat", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
    "io_cancel", "io_destroy", "io_getevents", "io_pgetevents", "io_pgetevents_time64", "io_setup",
    "io_submit", "ioctl", "ioprio_get", "ioprio_set", "ipc", "kill", "landlock_add_rule",
    "landlock_create_ruleset", "landlock_restrict_self", "lchown", "lchown32", "lgetxattr", "link",
    "linkat", "listen", "listmount", "listxattr", "listxattrat", "llistxattr", "lremovexattr",
    "lseek", "lsetxattr", "lstat", "lstat64", "madvise", "map_shadow_stack", "membarrier",
    "memfd_create", "memfd_secret", "mincore", "mkdir", "mkdirat", "mknod", "mknodat", "mlock",
    "mlock2", "mlockall", "mmap", "mmap2", "mprotect", "mq_getsetattr", "mq_notify", "mq_open",
    "mq_timedreceive", "mq_timedreceive_time64", "mq_timedsend", "mq_timedsend_time64",
    "mq_unlink", "mremap", "mseal", "msgctl", "msgget", "msgrcv", "msgsnd", "msync", "munlock",
    "munlockall", "munmap", "name_to_handle_at", "nanosleep", "newfstatat", "open", "openat",
    "openat2", "pause", "pidfd_open", "pidfd_send_signal", "pipe", "pipe2", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "poll", "ppoll", "ppoll_time64", "prctl", "pread64", "preadv",
    "preadv2", "prlimit64", "process_mrelease", "process_vm_readv", "process_vm_writev",
    "pselect6", "pselect6_time64", "ptrace", "pwrite64", "pwritev", "pwritev2", "read",
    "readahead", "readlink", "readlinkat", "readv", "recv", "recvfrom", "recvmmsg",
    "recvmmsg_time64", "recvmsg", "remap_file_pages", "removexattr", "removexattrat", "rename",
    "renameat", "renameat2", "restart_syscall", "riscv_hwprobe", "rmdir", "rseq", "rt_sigaction",
    "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo", "rt_sigreturn", "rt_sigsuspend",
    "rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_tgsigqueueinfo", "sched_get_priority_max",
    "sched_get_priority_min", "sched_getaffinity", "sched_getattr", "sched_getparam",
    "sched_getscheduler", "sched_rr_get_interval", "sched_rr_get_interval_time64",
    "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler", "sched_yield",
    "seccomp", "select", "semctl", "semget", "semop", "semtimedop", "semtimedop_time64", "send",
    "sendfile", "sendfile64", "sendmmsg", "sendmsg", "sendto", "set_robust_list",
    "set_thread_area", "set_tid_address", "setfsgid", "setfsgid32", "setfsuid", "setfsuid32",
    "setgid", "setgid32", "setgroups", "setgroups32", "setitimer", "setpgid", "setpriority",
    "setregid", "setregid32", "setresgid", "setresgid32", "setresuid", "setresuid32", "setreuid",
    "setreuid32", "setrlimit", "setsid", "setsockopt", "setuid", "setuid32", "setxattr",
    "setxattrat", "shmat", "shmctl", "shmdt", "shmget", "shutdown", "sigaltstack", "signalfd",
    "signalfd4", "sigprocmask", "sigreturn", "socketpair", "splice", "stat",
    "stat64", "statfs", "statfs64", "statmount", "statx", "symlink", "symlinkat", "sync",
    "sync_file_range", "syncfs", "sysinfo", "tee", "tgkill", "time", "timer_create",
    "timer_delete", "timer_getoverrun", "timer_gettime", "timer_gettime64", "timer_settime",
    "timer_settime64", "timerfd_create", "timerfd_gettime", "timerfd_gettime64", "timerfd_settime",
    "timerfd_settime64", "times", "tkill", "truncate", "truncate64", "ugetrlimit", "umask",
    "uname", "unlink", "unlinkat", "uretprobe", "utime", "utimensat", "utimensat_time64", "utimes",
    "vfork", "vmsplice", "wait4", "waitid", "waitpid", "write", "writev"};
// clang-format on

// The additional calls of each machine.
constexpr std::array<std::string_view, 2> kX86Only{"arch_prctl", "modify_ldt"};
constexpr std::array<std::string_view, 6> kArmOnly{"arm_fadvise64_64", "arm_sync_file_range",
                                                   "breakpoint",       "cacheflush",
                                                   "set_tls",          "sync_file_range2"};

// Calls that fail or do harm without a capability. A container that has the capability may use
// them.
struct Gated {
  std::string_view capability;
  std::string_view name;
};
constexpr Gated kGated[] = {
    {"CAP_BPF", "bpf"},
    {"CAP_DAC_READ_SEARCH", "open_by_handle_at"},
    {"CAP_PERFMON", "perf_event_open"},
    {"CAP_SYSLOG", "syslog"},
    {"CAP_SYS_ADMIN", "bpf"},
    {"CAP_SYS_ADMIN", "clone"},
    {"CAP_SYS_ADMIN", "clone3"},
    {"CAP_SYS_ADMIN", "fanotify_init"},
    {"CAP_SYS_ADMIN", "fsconfig"},
    {"CAP_SYS_ADMIN", "fsmount"},
    {"CAP_SYS_ADMIN", "fsopen"},
    {"CAP_SYS_ADMIN", "fspick"},
    {"CAP_SYS_ADMIN", "lookup_dcookie"},
    {"CAP_SYS_ADMIN", "lsm_get_self_attr"},
    {"CAP_SYS_ADMIN", "lsm_list_modules"},
    {"CAP_SYS_ADMIN", "lsm_set_self_attr"},
    {"CAP_SYS_ADMIN", "mount"},
    {"CAP_SYS_ADMIN", "mount_setattr"},
    {"CAP_SYS_ADMIN", "move_mount"},
    {"CAP_SYS_ADMIN", "open_tree"},
    {"CAP_SYS_ADMIN", "perf_event_open"},
    {"CAP_SYS_ADMIN", "quotactl"},
    {"CAP_SYS_ADMIN", "quotactl_fd"},
    {"CAP_SYS_ADMIN", "setdomainname"},
    {"CAP_SYS_ADMIN", "sethostname"},
    {"CAP_SYS_ADMIN", "setns"},
    {"CAP_SYS_ADMIN", "syslog"},
    {"CAP_SYS_ADMIN", "umount"},
    {"CAP_SYS_ADMIN", "umount2"},
    {"CAP_SYS_ADMIN", "unshare"},
    {"CAP_SYS_BOOT", "reboot"},
    {"CAP_SYS_CHROOT", "chroot"},
    {"CAP_SYS_MODULE", "delete_module"},
    {"CAP_SYS_MODULE", "finit_module"},
    {"CAP_SYS_MODULE", "init_module"},
    {"CAP_SYS_NICE", "get_mempolicy"},
    {"CAP_SYS_NICE", "mbind"},
    {"CAP_SYS_NICE", "set_mempolicy"},
    {"CAP_SYS_NICE", "set_mempolicy_home_node"},
    {"CAP_SYS_PACCT", "acct"},
    {"CAP_SYS_PTRACE", "kcmp"},
    {"CAP_SYS_PTRACE", "pidfd_getfd"},
    {"CAP_SYS_PTRACE", "process_madvise"},
    {"CAP_SYS_RAWIO", "ioperm"},
    {"CAP_SYS_RAWIO", "iopl"},
    {"CAP_SYS_TIME", "clock_settime"},
    {"CAP_SYS_TIME", "clock_settime64"},
    {"CAP_SYS_TIME", "settimeofday"},
    {"CAP_SYS_TIME", "stime"},
    {"CAP_SYS_TTY_CONFIG", "vhangup"},
};

// CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET.
constexpr uint64_t kCloneNamespaces = 0x7E020000;

// personality(2): the query, and PER_LINUX and PER_LINUX32 with and without UNAME26. Other values
// turn off address randomisation or execute protection.
constexpr uint64_t kPersonalities[] = {0x0, 0x8, 0x20000, 0x20008, 0xffffffff};

// Socket families except AF_ALG (38: the kernel's ciphers over user pages) and AF_VSOCK (40: the
// hypervisor), as blocks of values under a mask. The kernel reads the family from the lower half of
// the register, so comparing the whole register with "less than 38" and "more than 40" would let
// 2^32 + 38 through.
struct FamilyBlock {
  uint64_t mask;
  uint64_t families;
};
constexpr FamilyBlock kFamilies[] = {
    {0xffffffe0, 0},  {0xfffffffc, 32}, {0xfffffffe, 36}, {0xffffffff, 39},
    {0xffffffff, 41}, {0xfffffffe, 42}, {0xfffffffc, 44}, {0xfffffff0, 48},
};
static_assert(AF_ALG == 38 && AF_VSOCK == 40 && AF_MAX <= 64);

SeccompSyscall allow(std::string_view name, SeccompArg condition) {
  return {{std::string(name)}, "SCMP_ACT_ALLOW", std::nullopt, {std::move(condition)}};
}

std::vector<std::string> allowed_names(const std::vector<std::string>& capabilities,
                                       Machine machine) {
  std::vector<std::string_view> others;
  if (machine == Machine::x86_64) others.assign(kX86Only.begin(), kX86Only.end());
  if (machine == Machine::aarch64) others.assign(kArmOnly.begin(), kArmOnly.end());
  for (const auto& gated : kGated) {
    bool held = std::ranges::find(capabilities, gated.capability) != capabilities.end();
    if (held) others.push_back(gated.name);
  }
  std::ranges::sort(others);
  // Either of two capabilities allows some of the calls, so they may be in the list twice.
  others.erase(std::unique(others.begin(), others.end()), others.end());

  // Merges, because every start pays for this list and both parts are sorted already.
  std::vector<std::string_view> names(kAlways.size() + others.size());
  std::merge(kAlways.begin(), kAlways.end(), others.begin(), others.end(), names.begin());
  return {names.begin(), names.end()};
}

}  // namespace

Machine native_machine() {
#if defined(__x86_64__)
  return Machine::x86_64;
#elif defined(__aarch64__)
  return Machine::aarch64;
#else
#error "the default profile knows x86-64 and arm64"
#endif
}

Seccomp default_seccomp(const std::vector<std::string>& capabilities, Machine machine) {
  Seccomp profile;
  profile.default_action = "SCMP_ACT_ERRNO";
  profile.default_errno_ret = EPERM;
  profile.architectures =
      machine == Machine::x86_64
          ? std::vector<std::string>{"SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"}
          : std::vector<std::string>{"SCMP_ARCH_AARCH64", "SCMP_ARCH_ARM"};

  auto& rules = profile.syscalls;
  rules.push_back({allowed_names(capabilities, machine), "SCMP_ACT_ALLOW", std::nullopt, {}});
  for (uint64_t value : kPersonalities) {
    rules.push_back(allow("personality", {0, value, 0, "SCMP_CMP_EQ"}));
  }
  for (const auto& [mask, families] : kFamilies) {
    rules.push_back(allow("socket", {0, mask, families, "SCMP_CMP_MASKED_EQ"}));
  }

  bool may_unshare = std::ranges::find(capabilities, "CAP_SYS_ADMIN") != capabilities.end();
  if (!may_unshare) {
    rules.push_back(allow("clone", {0, kCloneNamespaces, 0, "SCMP_CMP_MASKED_EQ"}));
    rules.push_back({{"clone3"}, "SCMP_ACT_ERRNO", ENOSYS, {}});
  }
  return profile;
}

}  // namespace berth::oci
