// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime, as root or as id 0 of a user namespace. Capabilities held: all; BPF needs
// CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN, in the initial user namespace. Hostile input: none;
// the rules come from the caller.
#include "runtime/cgroup/device_filter.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace berth::runtime {
namespace {

constexpr int kAnyAccess = BPF_DEVCG_ACC_MKNOD | BPF_DEVCG_ACC_READ | BPF_DEVCG_ACC_WRITE;

/// A rule with parsed type and access.
struct Rule {
  bool allow = false;
  int type = 0;  ///< BPF_DEVCG_DEV_*, 0 for both
  std::optional<int> major;
  std::optional<int> minor;
  int access = kAnyAccess;

  bool is_everything() const { return type == 0 && !major && !minor && access == kAnyAccess; }
};

Error invalid(size_t index, std::string_view member, const std::string& text) {
  return make_error(Kind::corrupt, "linux.resources.devices[" + std::to_string(index) + "]." +
                                       std::string(member) + ": " + text);
}

/// Absent and -1 are "any".
Result<std::optional<int>> parse_number(std::optional<int64_t> number, size_t index,
                                        std::string_view member) {
  if (!number || *number == -1) return std::optional<int>();
  if (*number < 0 || *number > INT32_MAX) {
    return invalid(index, member, "expected a device number, got " + std::to_string(*number));
  }
  return std::optional<int>(static_cast<int>(*number));
}

Result<Rule> parse_rule(const oci::DeviceRule& written, size_t index) {
  Rule rule;
  rule.allow = written.allow;
  if (written.type == "b") {
    rule.type = BPF_DEVCG_DEV_BLOCK;
  } else if (written.type == "c" || written.type == "u") {
    rule.type = BPF_DEVCG_DEV_CHAR;
  } else if (!written.type.empty() && written.type != "a") {
    return invalid(index, "type", "expected a, b or c, got " + quote(written.type));
  }
  rule.major = TRY(parse_number(written.major, index, "major"));
  rule.minor = TRY(parse_number(written.minor, index, "minor"));
  if (!written.access.empty()) rule.access = 0;
  for (char letter : written.access) {
    if (letter == 'r') {
      rule.access |= BPF_DEVCG_ACC_READ;
    } else if (letter == 'w') {
      rule.access |= BPF_DEVCG_ACC_WRITE;
    } else if (letter == 'm') {
      rule.access |= BPF_DEVCG_ACC_MKNOD;
    } else {
      return invalid(index, "access", "expected letters of rwm, got " + quote(written.access));
    }
  }
  return rule;
}

Result<std::vector<Rule>> parse_rules(std::span<const oci::DeviceRule> written) {
  std::vector<Rule> rules;
  for (size_t i = 0; i < written.size(); ++i) rules.push_back(TRY(parse_rule(written[i], i)));
  return rules;
}

// ---- the program --------------------------------------------------------------------------------

enum Register : uint8_t {
  kAnswer = 0,
  kContext = 1,
  kType = 2,
  kWanted = 3,
  kMajor = 4,
  kMinor = 5
};

using Program = std::vector<bpf_insn>;

bpf_insn load(Register to, size_t offset) {
  return {BPF_LDX | BPF_MEM | BPF_W, to, kContext, static_cast<int16_t>(offset), 0};
}
bpf_insn arithmetic(uint8_t operation, Register on, int value) {
  return {static_cast<uint8_t>(BPF_ALU | BPF_K | operation), on, 0, 0, value};
}
bpf_insn copy(Register to, Register from) {
  return {BPF_ALU | BPF_X | BPF_MOV, to, from, 0, 0};
}
/// skip_to_end() sets the target of the branch.
bpf_insn branch(uint8_t comparison, Register on, int value) {
  return {static_cast<uint8_t>(BPF_JMP32 | BPF_K | comparison), on, 0, 0, value};
}

void answer(Program& program, bool allowed) {
  program.push_back(arithmetic(BPF_MOV, kAnswer, allowed ? 1 : 0));
  program.push_back({BPF_JMP | BPF_EXIT, 0, 0, 0, 0});
}

/// Makes the branches of the rule that starts at `first` jump behind that rule.
void skip_to_end(Program& program, size_t first) {
  for (size_t at = first; at < program.size(); ++at) {
    if (BPF_CLASS(program[at].code) != BPF_JMP32) continue;
    program[at].off = static_cast<int16_t>(program.size() - at - 1);
  }
}

/// `kWanted` holds the accesses that no later rule of the list has decided. An allowing rule
/// removes the accesses that it names from `kWanted` and answers yes when none is left. A denying
/// rule answers no when `kWanted` has an access that it names.
void append_rule(Program& program, const Rule& rule) {
  size_t first = program.size();
  if (rule.type != 0) program.push_back(branch(BPF_JNE, kType, rule.type));
  if (rule.major) program.push_back(branch(BPF_JNE, kMajor, *rule.major));
  if (rule.minor) program.push_back(branch(BPF_JNE, kMinor, *rule.minor));
  if (rule.access != kAnyAccess && rule.allow) {
    program.push_back(arithmetic(BPF_AND, kWanted, ~rule.access & kAnyAccess));
    program.push_back(branch(BPF_JNE, kWanted, 0));
  } else if (rule.access != kAnyAccess) {
    program.push_back(copy(kAnswer, kWanted));
    program.push_back(arithmetic(BPF_AND, kAnswer, rule.access));
    program.push_back(branch(BPF_JEQ, kAnswer, 0));
  }
  answer(program, rule.allow);
  skip_to_end(program, first);
}

// ---- lists that only allow ----------------------------------------------------------------------

// Nearly every list is an allow list: nothing is allowed, then some devices are. The order of such
// rules does not matter, so they are sorted, and the program compares nothing twice. The kernel's
// verifier walks this program once, but the program of append_rule() many times (1 ms for 11
// rules).

/// The allowed devices of one type, character or block.
struct AllowedDevices {
  int access = 0;  ///< the accesses that are allowed with any device of this type
  /// By major, absent meaning any minor: the devices that are allowed with every access.
  std::map<int, std::set<std::optional<int>>> minors;
};

/// Keys are BPF_DEVCG_DEV_*. Absent if the rules have another form.
using AllowList = std::map<int, AllowedDevices>;

std::optional<AllowList> as_allow_list(std::span<const Rule> rules) {
  AllowList list;
  for (const Rule& rule : rules) {
    if (!rule.allow || (!rule.major && rule.minor)) return std::nullopt;
    for (int type : {BPF_DEVCG_DEV_CHAR, BPF_DEVCG_DEV_BLOCK}) {
      if (rule.type == 0 || rule.type == type) {
        list[type].access |= rule.major ? 0 : rule.access;
      }
    }
  }
  for (const Rule& rule : rules) {
    if (!rule.major) continue;
    for (auto& [type, devices] : list) {
      if (rule.type != 0 && rule.type != type) continue;
      if ((rule.access | devices.access) != kAnyAccess) return std::nullopt;
      devices.minors[*rule.major].insert(rule.minor);
    }
  }
  return list;
}

/// Writes a program that ends in one of two answers.
class AllowListWriter {
 public:
  explicit AllowListWriter(Program& program) : program_(program) {}

  void write(const AllowList& list) {
    for (const auto& [type, devices] : list) {
      size_t other_type = jump(BPF_JNE, kType, type);
      program_.push_back(arithmetic(BPF_AND, kWanted, ~devices.access & kAnyAccess));
      allowed_.push_back(jump(BPF_JEQ, kWanted, 0));
      for (const auto& [major, minors] : devices.minors) write_major(major, minors);
      denied_.push_back(jump_always());
      land({other_type});
    }
    land(denied_);
    answer(program_, false);
    if (allowed_.empty()) return;  // the kernel refuses unreachable code
    land(allowed_);
    answer(program_, true);
  }

 private:
  void write_major(int major, const std::set<std::optional<int>>& minors) {
    size_t other_major = jump(BPF_JNE, kMajor, major);
    if (minors.contains(std::nullopt)) {
      allowed_.push_back(jump_always());
    } else {
      for (auto minor : minors) allowed_.push_back(jump(BPF_JEQ, kMinor, *minor));
      denied_.push_back(jump_always());
    }
    land({other_major});
  }
  size_t jump(uint8_t comparison, Register on, int value) {
    program_.push_back(branch(comparison, on, value));
    return program_.size() - 1;
  }
  size_t jump_always() {
    program_.push_back({BPF_JMP | BPF_JA, 0, 0, 0, 0});
    return program_.size() - 1;
  }
  /// Makes these jumps lead to the next instruction.
  void land(const std::vector<size_t>& jumps) {
    for (size_t at : jumps) program_[at].off = static_cast<int16_t>(program_.size() - at - 1);
  }

  Program& program_;
  std::vector<size_t> allowed_;
  std::vector<size_t> denied_;
};

// ---- bpf(2) -------------------------------------------------------------------------------------

/// Since 6.17 kernels write members that our headers lack, whatever size we pass.
struct Attributes {
  bpf_attr known;
  std::array<char, 256> room;
};

long bpf(int command, Attributes& attributes) {
  return syscall(SYS_bpf, command, &attributes, sizeof attributes.known);
}

Attributes zeroed() {
  Attributes attributes;
  std::memset(&attributes, 0, sizeof attributes);
  return attributes;
}

Error refused(int saved_errno, const std::string& what) {
  auto error = sys_error(saved_errno, what);
  if (saved_errno == EINVAL || saved_errno == ENOSYS) error.kind = Kind::unsupported;
  return error;
}

Result<sys::Fd> load_program(std::span<const bpf_insn> program) {
  auto attributes = zeroed();
  static constexpr char kLicence[] = "Apache-2.0";
  attributes.known.prog_type = BPF_PROG_TYPE_CGROUP_DEVICE;
  attributes.known.insns = reinterpret_cast<uint64_t>(program.data());
  attributes.known.insn_cnt = static_cast<uint32_t>(program.size());
  attributes.known.license = reinterpret_cast<uint64_t>(kLicence);
  long fd = -1;
  // EAGAIN: a signal arrived while the verifier ran.
  for (int attempt = 0; attempt < 30; ++attempt) {
    fd = bpf(BPF_PROG_LOAD, attributes);
    if (fd >= 0 || errno != EAGAIN) break;
  }
  if (fd < 0) return refused(errno, "load the device filter");
  return sys::Fd(static_cast<int>(fd));
}

Result<std::vector<sys::Fd>> attached_programs(const sys::Fd& cgroup) {
  std::array<uint32_t, 64> ids{};
  auto attributes = zeroed();
  attributes.known.query.target_fd = static_cast<uint32_t>(cgroup.get());
  attributes.known.query.attach_type = BPF_CGROUP_DEVICE;
  attributes.known.query.prog_ids = reinterpret_cast<uint64_t>(ids.data());
  attributes.known.query.prog_cnt = ids.size();
  if (bpf(BPF_PROG_QUERY, attributes) != 0) return refused(errno, "list the device filters");

  std::vector<sys::Fd> programs;
  for (uint32_t i = 0; i < attributes.known.query.prog_cnt; ++i) {
    auto by_id = zeroed();
    by_id.known.prog_id = ids[i];
    long fd = bpf(BPF_PROG_GET_FD_BY_ID, by_id);
    if (fd >= 0) {
      programs.emplace_back(static_cast<int>(fd));
    } else if (errno != ENOENT) {  // ENOENT: it was detached meanwhile
      return refused(errno, "open a device filter");
    }
  }
  return programs;
}

/// Attaches `program`, in place of `replaced` if that is not null; false when `replaced` is no
/// longer attached.
Result<bool> attach(const sys::Fd& cgroup, const sys::Fd& program, const sys::Fd* replaced) {
  auto attributes = zeroed();
  attributes.known.target_fd = static_cast<uint32_t>(cgroup.get());
  attributes.known.attach_bpf_fd = static_cast<uint32_t>(program.get());
  attributes.known.attach_type = BPF_CGROUP_DEVICE;
  attributes.known.attach_flags = BPF_F_ALLOW_MULTI;
  if (replaced != nullptr) {
    attributes.known.attach_flags |= BPF_F_REPLACE;
    attributes.known.replace_bpf_fd = static_cast<uint32_t>(replaced->get());
  }
  if (bpf(BPF_PROG_ATTACH, attributes) == 0) return true;
  int saved = errno;
  if (replaced != nullptr && saved == ENOENT) return false;
  return refused(saved, "attach the device filter");
}

Result<void> detach(const sys::Fd& cgroup, const sys::Fd& program) {
  auto attributes = zeroed();
  attributes.known.target_fd = static_cast<uint32_t>(cgroup.get());
  attributes.known.attach_bpf_fd = static_cast<uint32_t>(program.get());
  attributes.known.attach_type = BPF_CGROUP_DEVICE;
  if (bpf(BPF_PROG_DETACH, attributes) == 0 || errno == ENOENT) return {};
  return refused(errno, "detach the old device filter");
}

}  // namespace

std::vector<oci::DeviceRule> with_default_devices(const std::vector<oci::DeviceRule>& rules) {
  auto all = rules;
  all.push_back({true, "c", {}, {}, "m"});
  all.push_back({true, "b", {}, {}, "m"});
  constexpr std::pair<int, int> kNumbers[] = {{1, 3}, {1, 5}, {1, 7}, {1, 8},
                                              {1, 9}, {5, 0}, {5, 1}, {5, 2}};
  for (auto [major, minor] : kNumbers) all.push_back({true, "c", major, minor, "rwm"});
  all.push_back({true, "c", 136, {}, "rwm"});
  return all;
}

Result<std::vector<bpf_insn>> compile_device_filter(std::span<const oci::DeviceRule> written) {
  auto all = TRY(parse_rules(written));
  // Rules before the last rule for all devices have no effect.
  auto last =
      std::find_if(all.rbegin(), all.rend(), [](const Rule& r) { return r.is_everything(); });
  bool denies = last == all.rend() || !last->allow;
  Program program{
      load(kType, offsetof(bpf_cgroup_dev_ctx, access_type)),
      copy(kWanted, kType),
      arithmetic(BPF_AND, kType, 0xffff),
      arithmetic(BPF_RSH, kWanted, 16),
      load(kMajor, offsetof(bpf_cgroup_dev_ctx, major)),
      load(kMinor, offsetof(bpf_cgroup_dev_ctx, minor)),
  };
  auto list = denies ? as_allow_list({last.base(), all.end()}) : std::nullopt;
  if (list) {
    AllowListWriter(program).write(*list);
    return program;
  }
  // Backwards, because the last rule that matches decides. The kernel refuses unreachable code, so
  // nothing may follow a rule that always answers.
  for (auto rule = all.rbegin(); rule != last; ++rule) append_rule(program, *rule);
  answer(program, !denies);
  return program;
}

Result<std::vector<std::pair<std::string, std::string>>> device_lines(
    std::span<const oci::DeviceRule> written) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const auto& rule : TRY(parse_rules(written))) {
    std::string file = rule.allow ? "devices.allow" : "devices.deny";
    if (rule.is_everything()) {
      lines.emplace_back(file, "a");
      continue;
    }
    auto number = [](std::optional<int> value) { return value ? std::to_string(*value) : "*"; };
    std::string rest = " ";
    rest += number(rule.major) + ":" + number(rule.minor) + " ";
    if ((rule.access & BPF_DEVCG_ACC_READ) != 0) rest += "r";
    if ((rule.access & BPF_DEVCG_ACC_WRITE) != 0) rest += "w";
    if ((rule.access & BPF_DEVCG_ACC_MKNOD) != 0) rest += "m";
    // In these files "a" means all devices, and the kernel ignores the rest of the line.
    if (rule.type != BPF_DEVCG_DEV_BLOCK) lines.emplace_back(file, "c" + rest);
    if (rule.type != BPF_DEVCG_DEV_CHAR) lines.emplace_back(file, "b" + rest);
  }
  return lines;
}

Result<void> attach_device_filter(const sys::Fd& cgroup, std::span<const bpf_insn> program) {
  auto loaded = TRY(load_program(program));
  // Another process may change the list between our two calls; if that happens twenty times, it
  // will not stop.
  for (int attempt = 0; attempt < 20; ++attempt) {
    auto old = TRY(attached_programs(cgroup));
    bool done = TRY(attach(cgroup, loaded, old.size() == 1 ? old.data() : nullptr));
    if (!done) continue;
    if (old.size() == 1) return {};
    // All attached programs must allow an access, so ours is in force before the old ones are
    // detached.
    for (const auto& program_fd : old) TRY(detach(cgroup, program_fd));
    return {};
  }
  return make_error(Kind::busy, "attach the device filter: others keep changing it");
}

}  // namespace berth::runtime
