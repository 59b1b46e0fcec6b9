// SPDX-License-Identifier: Apache-2.0
#include "sys/user/confine.hpp"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstddef>
#include <utility>

#include "sys/file/file.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/user/credentials.hpp"
#include "sys/user/identity.hpp"
#include "sys/user/namespace.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define BERTH_ADDRESS_SANITIZER
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BERTH_ADDRESS_SANITIZER
#endif
#endif

namespace berth::sys {
namespace {

constexpr uid_t kNobody = 65534;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// write(2) is harmless, because it can use only descriptors that are open already. The filter
// refuses mmap and mprotect that would make memory executable. sigaltstack is harmless, and
// sanitizers call it before they exit.
constexpr uint32_t kAllowed[] = {SYS_read,   SYS_write,        SYS_brk,        SYS_munmap,
                                 SYS_mremap, SYS_madvise,      SYS_exit_group, SYS_exit,
                                 SYS_futex,  SYS_rt_sigreturn, SYS_sigaltstack};
constexpr uint32_t kOfMemory[] = {SYS_mmap, SYS_mprotect};
constexpr uint32_t kExecutable = 4;  // PROT_EXEC

std::vector<sock_filter> make_filter() {
  constexpr auto kLoad = static_cast<uint16_t>(BPF_LD | BPF_W | BPF_ABS);
  constexpr auto kEqual = static_cast<uint16_t>(BPF_JMP | BPF_JEQ | BPF_K);
  constexpr auto kAnyBit = static_cast<uint16_t>(BPF_JMP | BPF_JSET | BPF_K);
  constexpr auto kReturn = static_cast<uint16_t>(BPF_RET | BPF_K);
  std::vector<sock_filter> code;
  auto kill = [&] { code.push_back({kReturn, 0, 0, SECCOMP_RET_KILL_PROCESS}); };
  auto allow = [&] { code.push_back({kReturn, 0, 0, SECCOMP_RET_ALLOW}); };
  code.push_back({kLoad, 0, 0, offsetof(seccomp_data, arch)});
  code.push_back({kEqual, 1, 0, kArchitecture});
  kill();
  code.push_back({kLoad, 0, 0, offsetof(seccomp_data, nr)});
  for (uint32_t number : kAllowed) {
    code.push_back({kEqual, 0, 1, number});
    allow();
  }
  for (uint32_t number : kOfMemory) {
    code.push_back({kEqual, 0, 4, number});  // else skips the next four
    // Loads the low half of the third argument, the protection.
    code.push_back({kLoad, 0, 0, offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)});
    code.push_back({kAnyBit, 0, 1, kExecutable});
    kill();
    allow();
  }
  kill();
  return code;
}

Result<void> load_filter() {
  std::vector<sock_filter> code = make_filter();
  sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0) return {};
  return errno_now().error("load a filter of system calls");
}

}  // namespace

Result<void> confine(const std::vector<int>& keep) {
  if (kArchitecture == 0) {
    return make_error(Kind::unsupported, "no filter of system calls for this machine");
  }
  std::vector<int> kept = keep;
  kept.push_back(2);
  TRY(close_all_from(0, std::move(kept)));
#ifndef BERTH_ADDRESS_SANITIZER  // the shadow memory of AddressSanitizer exceeds any limit
  TRY(set_rlimit(RLIMIT_AS, uint64_t{512} << 20, uint64_t{512} << 20, "memory"));
#endif
  TRY(set_rlimit(RLIMIT_CPU, 5, 5, "processor time"));
  TRY(forbid_new_privileges());
  if (in_initial_user_namespace() && effective_uid() == 0) {
    TRY(set_identity(kNobody, kNobody, {}));
  }
  TRY(set_capabilities({}));
  return load_filter();
}

Result<std::optional<std::string>> rewrite_confined(
    std::string_view bytes, size_t max_size,
    const std::function<std::optional<std::string>(std::string_view)>& rewrite) {
  constexpr std::chrono::seconds kPatience{10};
  Fd out = TRY(memory_file("rewritten", ""));
  Cloned child = TRY(clone3(0, -1));
  if (child.pid == 0) {
    if (!confine({out.get()}).ok()) ::_exit(1);
    std::optional<std::string> made = rewrite(bytes);
    ::_exit(made && write_all(out, *made, "").ok() ? 0 : 1);
  }
  Process process(child.pid, std::move(child.pidfd));
  auto status = TRY(process.wait_for(kPatience));  // ~Process() kills a late child
  if (!status || status->shell_code() != 0) return std::optional<std::string>();
  Fd file = TRY(open_at(cwd(), fd_path(out), O_RDONLY));
  return std::optional(TRY(read_all(file, "what was rewritten", max_size)));
}

}  // namespace berth::sys
