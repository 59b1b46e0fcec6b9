// SPDX-License-Identifier: Apache-2.0
// Where the filter is built: compile_seccomp(), which berth-runtime calls (write_filter() in
// runtime/child/child.cpp) while the container's first process mounts. Where it is loaded:
// load_seccomp(), in that process (plan::LoadSeccomp in runtime/child/apply.cpp).
//
// Runs as: berth-runtime, as root or as id 0 of a user namespace (the compiler), and the
// container's first process (load_seccomp). Capabilities held: all; at load those of the container.
// Hostile input: none that was not parsed before; the profile comes from the caller.
#include "runtime/seccomp/seccomp.hpp"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.hpp"
#include "runtime/seccomp/bpf_filter.hpp"
#include "runtime/seccomp/i386_calls.hpp"

namespace berth::runtime {
namespace {

constexpr uint32_t kX32Bit = 0x40000000;
// The calls that only ARM kernels have (__ARM_NR_*) begin here, far above all others.
constexpr uint32_t kArmPrivate = 0x0f0000;
constexpr uint32_t kArmPrivateEnd = 0x0f0800;

// The newest call in Debian 12's libseccomp (2.5.4): futex_requeue.
constexpr uint32_t kNewestOfLibseccomp = 456;

// Calls that libseccomp may not know yet; libseccomp is asked first. Numbers from 424 on are the
// same on all architectures.
struct NewCall {
  std::string_view name;
  uint32_t number;
};
constexpr NewCall kNewCalls[] = {
    {"cachestat", 451},         {"fchmodat2", 452},        {"map_shadow_stack", 453},
    {"futex_wake", 454},        {"futex_wait", 455},       {"futex_requeue", 456},
    {"statmount", 457},         {"listmount", 458},        {"lsm_get_self_attr", 459},
    {"lsm_set_self_attr", 460}, {"lsm_list_modules", 461}, {"mseal", 462},
    {"setxattrat", 463},        {"getxattrat", 464},       {"listxattrat", 465},
    {"removexattrat", 466},     {"open_tree_attr", 467},   {"file_getattr", 468},
    {"file_setattr", 469},
};

struct Architecture {
  std::string_view name;
  uint32_t token;  ///< SCMP_ARCH_* of libseccomp
  uint32_t audit;  ///< the value of seccomp_data.arch
};
constexpr Architecture kArchitectures[] = {
    {"SCMP_ARCH_X86_64", SCMP_ARCH_X86_64, AUDIT_ARCH_X86_64},
    {"SCMP_ARCH_X86", SCMP_ARCH_X86, AUDIT_ARCH_I386},
    {"SCMP_ARCH_X32", SCMP_ARCH_X32, AUDIT_ARCH_X86_64},
    {"SCMP_ARCH_AARCH64", SCMP_ARCH_AARCH64, AUDIT_ARCH_AARCH64},
    {"SCMP_ARCH_ARM", SCMP_ARCH_ARM, AUDIT_ARCH_ARM},
};

// Names in the runtime-spec for machines on which Berth does not run: no call can come from them,
// so they are skipped.
constexpr std::string_view kOtherArchitectures[] = {
    "SCMP_ARCH_LOONGARCH64", "SCMP_ARCH_M68K",     "SCMP_ARCH_MIPS",     "SCMP_ARCH_MIPS64",
    "SCMP_ARCH_MIPS64N32",   "SCMP_ARCH_MIPSEL",   "SCMP_ARCH_MIPSEL64", "SCMP_ARCH_MIPSEL64N32",
    "SCMP_ARCH_PARISC",      "SCMP_ARCH_PARISC64", "SCMP_ARCH_PPC",      "SCMP_ARCH_PPC64",
    "SCMP_ARCH_PPC64LE",     "SCMP_ARCH_RISCV64",  "SCMP_ARCH_S390",     "SCMP_ARCH_S390X",
    "SCMP_ARCH_SH",          "SCMP_ARCH_SHEB",
};

constexpr std::array<std::pair<std::string_view, uint32_t>, 9> kActions{{
    {"SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW},
    {"SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO},
    {"SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS},
    {"SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD},
    {"SCMP_ACT_LOG", SECCOMP_RET_LOG},
    {"SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF},
    {"SCMP_ACT_TRACE", SECCOMP_RET_TRACE},
    {"SCMP_ACT_TRAP", SECCOMP_RET_TRAP},
}};

constexpr std::array<std::pair<std::string_view, Comparison>, 7> kComparisons{{
    {"SCMP_CMP_NE", Comparison::not_equal},
    {"SCMP_CMP_LT", Comparison::less},
    {"SCMP_CMP_LE", Comparison::less_or_equal},
    {"SCMP_CMP_EQ", Comparison::equal},
    {"SCMP_CMP_GE", Comparison::greater_or_equal},
    {"SCMP_CMP_GT", Comparison::greater},
    {"SCMP_CMP_MASKED_EQ", Comparison::masked_equal},
}};

constexpr std::array<std::pair<std::string_view, unsigned>, 4> kFlags{{
    {"SECCOMP_FILTER_FLAG_TSYNC", SECCOMP_FILTER_FLAG_TSYNC},
    {"SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG},
    {"SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW},
    {"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 1U << 5},  // linux/seccomp.h, Linux 5.19
}};

template <class Table>
auto look_up(const Table& table, std::string_view name) {
  using Value = std::remove_cvref_t<decltype(table[0].second)>;
  for (const auto& [spelling, value] : table) {
    if (spelling == name) return std::optional<Value>(value);
  }
  return std::optional<Value>();
}

Error invalid_rule(const std::string& path, std::string text) {
  return make_error(Kind::corrupt, "linux.seccomp." + path + ": " + std::move(text));
}

Error unknown(const std::string& path, std::string_view kind, std::string_view text) {
  return invalid_rule(path, "unknown " + std::string(kind) + " " + quote(text));
}

std::string entry_path(size_t index) {
  return "syscalls[" + std::to_string(index) + "]";
}

/// SECCOMP_RET_* with its data. Nothing for an unknown name. `errno_ret` has 16 bits in the kernel.
std::optional<uint32_t> parse_action(const std::string& text, std::optional<uint32_t> errno_ret) {
  auto action = look_up(kActions, text);
  if (!action) return action;
  uint32_t known = *action;
  bool carries_data = known == SECCOMP_RET_ERRNO || known == SECCOMP_RET_TRACE;
  if (!carries_data) return known;
  return known | std::min<uint32_t>(errno_ret.value_or(EPERM), SECCOMP_RET_DATA);
}

/// One entry of `syscalls`, with parsed members.
struct SeccompRule {
  const std::vector<std::string>* names;
  std::vector<Condition> conditions;
  uint32_t action;
};

Result<std::vector<Condition>> parse_conditions(const oci::SeccompSyscall& entry, size_t index) {
  std::vector<Condition> conditions;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const auto& arg = entry.args[i];
    auto path = [&] { return entry_path(index) + ".args[" + std::to_string(i) + "]"; };
    auto comparison = look_up(kComparisons, arg.op);
    if (!comparison) return unknown(path() + ".op", "operator", arg.op);
    if (arg.index > 5) {
      return invalid_rule(path() + ".index", "expected 0 to 5, got " + std::to_string(arg.index));
    }
    conditions.push_back({arg.index, *comparison, arg.value, arg.value_two});
  }
  return conditions;
}

/// If an entry names one argument twice, each condition is a rule of its own, as under runc and
/// crun, because profiles list allowed or forbidden values that way. Otherwise all conditions have
/// to hold.
bool are_alternatives(const std::vector<Condition>& conditions) {
  std::array<bool, 6> seen{};
  return std::ranges::any_of(conditions, [&](const Condition& condition) {
    return std::exchange(seen[condition.index], true);
  });
}

Result<std::vector<SeccompRule>> parse_rules(const oci::Seccomp& profile) {
  std::vector<SeccompRule> rules;
  rules.reserve(profile.syscalls.size());
  for (size_t i = 0; i < profile.syscalls.size(); ++i) {
    const auto& entry = profile.syscalls[i];
    auto action = parse_action(entry.action, entry.errno_ret);
    if (!action) return unknown(entry_path(i) + ".action", "action", entry.action);
    // The runtime calls write(2) to pass the listener on when the filter is already active, so it
    // would wait for itself.
    bool has_write = std::ranges::find(entry.names, "write") != entry.names.end();
    if (*action == SECCOMP_RET_USER_NOTIF && has_write) {
      return make_error(Kind::unsupported, "linux.seccomp." + entry_path(i) +
                                               ".action: SCMP_ACT_NOTIFY cannot be used for write");
    }
    auto conditions = TRY(parse_conditions(entry, i));
    if (!are_alternatives(conditions)) {
      rules.push_back({&entry.names, std::move(conditions), *action});
      continue;
    }
    for (const Condition& condition : conditions) {
      rules.push_back({&entry.names, {condition}, *action});
    }
  }
  return rules;
}

/// The profile's architectures without duplicates; the native one if there are none.
Result<std::vector<Architecture>> parse_architectures(const std::vector<std::string>& names) {
  std::vector<Architecture> found;
  for (size_t i = 0; i < names.size(); ++i) {
    auto is_named = [&](const Architecture& known) { return known.name == names[i]; };
    auto known = std::ranges::find_if(kArchitectures, is_named);
    if (known == std::end(kArchitectures)) {
      bool other =
          std::ranges::find(kOtherArchitectures, names[i]) != std::end(kOtherArchitectures);
      if (other) continue;
      return unknown("architectures[" + std::to_string(i) + "]", "architecture", names[i]);
    }
    if (std::ranges::none_of(found, is_named)) found.push_back(*known);
  }
  uint32_t native = seccomp_arch_native();
  for (const auto& known : kArchitectures) {
    if (found.empty() && known.token == native) found.push_back(known);
  }
  return found;
}

/// Nothing for a name that the architecture does not have.
std::optional<uint32_t> find_call(const Architecture& arch, const std::string& name) {
  if (arch.token == SCMP_ARCH_X86) {
    if (auto number = find_i386_call(name)) return number;
  }
  int known = seccomp_syscall_resolve_name_arch(arch.token, name.c_str());
  if (known >= 0) return static_cast<uint32_t>(known);
  if (known != __NR_SCMP_ERROR) return std::nullopt;
  for (const auto& call : kNewCalls) {
    if (call.name == name) return call.number | (arch.token == SCMP_ARCH_X32 ? kX32Bit : 0);
  }
  return std::nullopt;
}

// i386 has a system call for all socket calls, socketcall, and one for System V ipc, ipc. They are
// older than the direct calls (linux/net.h SYS_SOCKET …, linux/ipc.h SEMOP …), and a rule must hold
// for both. For these calls libseccomp gives negative numbers of its own, from which the number of
// the direct call cannot be derived.
constexpr uint32_t kSocketcall = 102;
constexpr uint32_t kIpc = 117;
struct Multiplexed {
  std::string_view name;
  uint32_t direct;  ///< 0: none
  uint32_t entry;
  uint32_t selector;  ///< first argument of `entry`
};
constexpr Multiplexed kMultiplexed[] = {
    {"accept", 0, kSocketcall, 5},
    {"accept4", 364, kSocketcall, 18},
    {"bind", 361, kSocketcall, 2},
    {"connect", 362, kSocketcall, 3},
    {"getpeername", 368, kSocketcall, 7},
    {"getsockname", 367, kSocketcall, 6},
    {"getsockopt", 365, kSocketcall, 15},
    {"listen", 363, kSocketcall, 4},
    {"msgctl", 402, kIpc, 14},
    {"msgget", 399, kIpc, 13},
    {"msgrcv", 401, kIpc, 12},
    {"msgsnd", 400, kIpc, 11},
    {"recv", 0, kSocketcall, 10},
    {"recvfrom", 371, kSocketcall, 12},
    {"recvmmsg", 337, kSocketcall, 19},
    {"recvmsg", 372, kSocketcall, 17},
    {"semctl", 394, kIpc, 3},
    {"semget", 393, kIpc, 2},
    {"semop", 0, kIpc, 1},
    {"semtimedop", 0, kIpc, 4},
    {"send", 0, kSocketcall, 9},
    {"sendmmsg", 345, kSocketcall, 20},
    {"sendmsg", 370, kSocketcall, 16},
    {"sendto", 369, kSocketcall, 11},
    {"setsockopt", 366, kSocketcall, 14},
    {"shmat", 397, kIpc, 21},
    {"shmctl", 396, kIpc, 24},
    {"shmdt", 398, kIpc, 22},
    {"shmget", 395, kIpc, 23},
    {"shutdown", 373, kSocketcall, 13},
    {"socket", 359, kSocketcall, 1},
    {"socketpair", 360, kSocketcall, 8},
};

// The selector of ipc shares its word with a version number in the upper half.
Condition selects(const Multiplexed& call) {
  if (call.entry == kIpc) return {0, Comparison::masked_equal, 0xffff, call.selector};
  return {0, Comparison::equal, call.selector, 0};
}

/// What happens to a call: the action of the first rule that applies, else `action`.
struct Decision {
  uint32_t action = 0;
  size_t first = 0;  ///< the rules to try before `action`: a range of Compiler::uses_
  size_t count = 0;
  bool operator==(const Decision&) const = default;
};

/// The decision for call numbers from `start` on, up to the start of the next interval.
struct Interval {
  uint32_t start = 0;
  Decision decision;
};

/// A rule that applies to one call number.
struct Use {
  uint32_t number = 0;
  uint32_t order = 0;  ///< position of the rule in the profile
  const Multiplexed* through = nullptr;
};

/// Turns the rules of a profile into the program.
class Compiler {
 public:
  Compiler(std::vector<SeccompRule> rules, uint32_t default_action)
      : rules_(std::move(rules)), default_action_(default_action) {}

  Result<std::vector<sock_filter>> compile(const std::vector<Architecture>& architectures);

 private:
  void collect(const Architecture& arch);
  void collect_multiplexed(const Multiplexed& call, uint32_t order);
  std::vector<Interval> for_unnamed_calls(uint32_t audit, bool has_plain, bool has_x32) const;
  std::vector<Interval> intervals(std::vector<Interval> unnamed) const;
  Decision decide(size_t first, size_t end) const;
  FilterBuilder::Label write_decision(const Decision& decision);
  FilterBuilder::Label write_search(const Interval* begin, const Interval* end);

  std::vector<SeccompRule> rules_;
  uint32_t default_action_;
  std::vector<Use> uses_;  ///< those of the current section, sorted
  FilterBuilder builder_;
};

const Multiplexed* find_multiplexed(const std::string& name) {
  auto found = std::ranges::lower_bound(kMultiplexed, name, {}, &Multiplexed::name);
  return found != std::end(kMultiplexed) && found->name == name ? found : nullptr;
}

/// A rule with conditions on arguments cannot check them for a call through socketcall or ipc,
/// where they are in memory. There an allowing rule never applies, and a forbidding rule always
/// does.
void Compiler::collect_multiplexed(const Multiplexed& call, uint32_t order) {
  if (call.direct != 0) uses_.push_back({call.direct, order, nullptr});
  uint32_t action = rules_[order].action;
  bool permits = action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
  if (rules_[order].conditions.empty() || !permits) uses_.push_back({call.entry, order, &call});
}

void Compiler::collect(const Architecture& arch) {
  for (uint32_t order = 0; order < rules_.size(); ++order) {
    for (const auto& name : *rules_[order].names) {
      const Multiplexed* multiplexed =
          arch.token == SCMP_ARCH_X86 ? find_multiplexed(name) : nullptr;
      if (multiplexed != nullptr) {
        collect_multiplexed(*multiplexed, order);
      } else if (auto number = find_call(arch, name)) {
        uses_.push_back({*number, order, nullptr});
      }
    }
  }
}

/// What happens to numbers that no rule names.
std::vector<Interval> Compiler::for_unnamed_calls(uint32_t audit, bool has_plain,
                                                  bool has_x32) const {
  uint32_t newest = kNewestOfLibseccomp;
  uint32_t newest_x32 = kX32Bit | 547;  // pwritev2, the last of the calls that only x32 has
  for (const auto& use : uses_) {
    if (use.number < kArmPrivate) newest = std::max(newest, use.number);
    if (use.number >= kX32Bit) newest_x32 = std::max(newest_x32, use.number);
  }
  Decision usual{default_action_};
  bool errno_default = (default_action_ & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
  Decision too_new = errno_default ? Decision{SECCOMP_RET_ERRNO | ENOSYS} : usual;
  Decision foreign{SECCOMP_RET_KILL_PROCESS};

  std::vector<Interval> parts{{0, usual}, {newest + 1, too_new}};
  if (audit == AUDIT_ARCH_ARM) {
    parts.push_back({kArmPrivate, usual});
    parts.push_back({kArmPrivateEnd, too_new});
  }
  if (audit == AUDIT_ARCH_X86_64) {
    if (!has_plain) parts = {{0, foreign}};
    parts.push_back({kX32Bit, has_x32 ? usual : foreign});
    if (has_x32) parts.push_back({newest_x32 + 1, too_new});
  }
  // A tracer sets the number to -1 to skip a call.
  parts.push_back({UINT32_MAX, usual});
  return parts;
}

/// The decision by the rules uses_[first, end) of one number, up to the first rule without
/// conditions.
Decision Compiler::decide(size_t first, size_t end) const {
  Decision decision{default_action_, first, 0};
  for (size_t i = first; i < end; ++i) {
    const SeccompRule& rule = rules_[uses_[i].order];
    if (uses_[i].through == nullptr && rule.conditions.empty()) {
      decision.action = rule.action;
      break;
    }
    ++decision.count;
  }
  if (decision.count == 0) decision.first = 0;
  return decision;
}

/// Overlays `unnamed` with the calls that have rules, and joins neighbours with equal decisions.
std::vector<Interval> Compiler::intervals(std::vector<Interval> unnamed) const {
  std::vector<Interval> joined;
  auto add = [&](uint32_t start, const Decision& decision) {
    if (!joined.empty() && joined.back().start == start) joined.pop_back();
    if (joined.empty() || joined.back().decision != decision) joined.push_back({start, decision});
  };
  size_t part = 0;
  auto pass_parts_to = [&](uint64_t end) {
    for (; part < unnamed.size() && unnamed[part].start < end; ++part) {
      add(unnamed[part].start, unnamed[part].decision);
    }
  };
  for (size_t first = 0; first < uses_.size();) {
    uint32_t number = uses_[first].number;
    size_t end = first;
    while (end < uses_.size() && uses_[end].number == number) ++end;
    pass_parts_to(uint64_t{number} + 1);
    add(number, decide(first, end));
    add(number + 1, unnamed[part - 1].decision);
    first = end;
  }
  pass_parts_to(uint64_t{UINT32_MAX} + 1);
  return joined;
}

FilterBuilder::Label Compiler::write_decision(const Decision& decision) {
  auto next = builder_.give(decision.action);
  for (size_t i = decision.first + decision.count; i > decision.first; --i) {
    const Use& use = uses_[i - 1];
    const SeccompRule& rule = rules_[use.order];
    auto entry = builder_.give(rule.action);
    if (use.through != nullptr) {
      entry = builder_.test(selects(*use.through), entry, next);
    } else {
      for (auto condition = rule.conditions.rbegin(); condition != rule.conditions.rend();
           ++condition) {
        entry = builder_.test(*condition, entry, next);
      }
    }
    next = entry;
  }
  return next;
}

FilterBuilder::Label Compiler::write_search(const Interval* begin, const Interval* end) {
  if (end - begin == 1) return write_decision(begin->decision);
  const Interval* middle = begin + (end - begin) / 2;
  auto upper = write_search(middle, end);
  auto lower = write_search(begin, middle);
  return builder_.jump(BPF_JGE, middle->start, upper, lower);
}

Result<std::vector<sock_filter>> Compiler::compile(const std::vector<Architecture>& architectures) {
  // The native architecture is written last, so that it is checked first.
  constexpr uint32_t kSections[] = {AUDIT_ARCH_ARM, AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64,
                                    AUDIT_ARCH_X86_64};
  auto entry = builder_.give(SECCOMP_RET_KILL_PROCESS);
  for (uint32_t audit : kSections) {
    bool has_plain = false;
    bool has_x32 = false;
    uses_.clear();
    for (const auto& arch : architectures) {
      if (arch.audit != audit) continue;
      (arch.token == SCMP_ARCH_X32 ? has_x32 : has_plain) = true;
      collect(arch);
    }
    if (!has_plain && !has_x32) continue;

    std::ranges::sort(uses_, [](const Use& a, const Use& b) {
      return a.number != b.number ? a.number < b.number : a.order < b.order;
    });
    auto search = intervals(for_unnamed_calls(audit, has_plain, has_x32));
    auto section = builder_.load(offsetof(seccomp_data, nr),
                                 write_search(search.data(), search.data() + search.size()));
    entry = builder_.jump(BPF_JEQ, audit, section, entry);
  }
  entry = builder_.load(offsetof(seccomp_data, arch), entry);
  if (builder_.size() > BPF_MAXINSNS) {
    return make_error(Kind::unsupported, "linux.seccomp: the program has " +
                                             std::to_string(builder_.size()) +
                                             " instructions, the kernel takes 4096");
  }
  return std::move(builder_).finish(entry);
}

}  // namespace

Result<std::vector<sock_filter>> compile_seccomp(const oci::Seccomp& profile) {
  auto action = parse_action(profile.default_action, profile.default_errno_ret);
  if (!action) return unknown("defaultAction", "action", profile.default_action);
  if (*action == SECCOMP_RET_USER_NOTIF) {
    return make_error(Kind::unsupported,
                      "linux.seccomp.defaultAction: SCMP_ACT_NOTIFY cannot be the default");
  }
  auto architectures = TRY(parse_architectures(profile.architectures));
  auto rules = TRY(parse_rules(profile));
  return Compiler(std::move(rules), *action).compile(architectures);
}

Result<void> check_calls(const oci::Seccomp& profile) {
  for (size_t i = 0; i < profile.syscalls.size(); ++i) {
    for (const std::string& name : profile.syscalls[i].names) {
      bool is_known =
          seccomp_syscall_resolve_name(name.c_str()) != __NR_SCMP_ERROR ||
          std::ranges::any_of(kNewCalls, [&](const auto& call) { return call.name == name; });
      if (!is_known) return unknown(entry_path(i) + ".names", "system call", name);
    }
  }
  return {};
}

bool needs_listener(const oci::Seccomp& profile) {
  if (!profile.listener_path.empty()) return true;  // the agent waits for it
  return std::ranges::any_of(profile.syscalls,
                             [](const auto& entry) { return entry.action == "SCMP_ACT_NOTIFY"; });
}

Result<unsigned> seccomp_flags(const oci::Seccomp& profile) {
  unsigned flags = needs_listener(profile) ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
  for (size_t i = 0; i < profile.flags.size(); ++i) {
    auto flag = look_up(kFlags, profile.flags[i]);
    if (!flag) return unknown("flags[" + std::to_string(i) + "]", "flag", profile.flags[i]);
    flags |= *flag;
  }
  return flags;
}

Result<sys::Fd> load_seccomp(std::span<const sock_filter> program, unsigned flags) {
  sock_fprog described{static_cast<unsigned short>(program.size()),
                       const_cast<sock_filter*>(program.data())};  // the kernel only reads it
  long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &described);
  if (result < 0) {
    int saved = errno;
    auto error = sys_error(saved, "load the seccomp filter");
    if (saved == EINVAL || saved == ENOSYS) error.kind = Kind::unsupported;
    return error;
  }
  return (flags & SECCOMP_FILTER_FLAG_NEW_LISTENER) != 0 ? sys::Fd(static_cast<int>(result))
                                                         : sys::Fd();
}

std::string libseccomp_version() {
  const scmp_version* version = seccomp_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->micro);
}

SeccompWords seccomp_words() {
  SeccompWords words;
  for (const auto& [name, value] : kActions) words.actions.emplace_back(name);
  for (const auto& [name, value] : kComparisons) words.operators.emplace_back(name);
  for (const auto& known : kArchitectures) words.architectures.emplace_back(known.name);
  for (std::string_view name : kOtherArchitectures) words.architectures.emplace_back(name);
  for (const auto& [name, flag] : kFlags) {
    words.known_flags.emplace_back(name);
    // The kernel checks the flags first. If it knows the flag, it fails then because there is no
    // program.
    long answer = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flag, nullptr);
    if (answer != 0 && errno == EFAULT) words.supported_flags.emplace_back(name);
  }
  for (auto* list : {&words.actions, &words.operators, &words.architectures, &words.known_flags,
                     &words.supported_flags}) {
    std::ranges::sort(*list);
  }
  return words;
}

}  // namespace berth::runtime
