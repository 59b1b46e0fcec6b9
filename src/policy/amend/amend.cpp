// SPDX-License-Identifier: Apache-2.0
#include "policy/amend/amend.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

#include "base/text.hpp"
#include "oci/edit.hpp"
#include "policy/policy.hpp"

namespace berth::policy {
namespace {

using Strings = std::vector<std::string>;

constexpr uint64_t kPeriod = 100'000;  // microseconds

std::string value_of(const Strings& entries, std::initializer_list<std::string_view> names) {
  for (std::string_view name : names) {
    std::string begin = std::string(name) + "=";
    for (const std::string& entry : entries) {
      if (entry.starts_with(begin) && entry.size() > begin.size())
        return entry.substr(begin.size());
    }
  }
  return {};
}

/// "docker.io/library/busybox:latest" and the same without tag and digest.
Strings spellings_of(const std::string& image) {
  std::string name = image.substr(0, image.find('@'));
  size_t colon = name.rfind(':');
  bool has_tag = colon != std::string::npos && name.find('/', colon) == std::string::npos;
  if (has_tag) name.erase(colon);
  return name == image ? Strings{image} : Strings{image, name};
}

Error wrong(const Given& given, const char* key, const std::string& what) {
  return make_error(Kind::usage, "rule " + quote(given.rule) + ": " + key + " " +
                                     quote(given.text) + ": " + what);
}

bool is_below(const std::string& path, const std::string& directory) {
  std::string begin = directory.ends_with('/') ? directory : directory + "/";
  return path.size() > begin.size() && path.starts_with(begin);
}

/// "/dev//shm/" → "dev", "shm"
Strings parts_of(std::string_view path) {
  Strings out;
  for (std::string_view part : split(path, '/')) {
    if (!part.empty() && part != ".") out.emplace_back(part);
  }
  return out;
}

/// Amends one configuration.
class Amender {
 public:
  Amender(const Effects& effects, const std::function<bool(const std::string&)>& is_there,
          oci::Spec& spec)
      : effects_(effects),
        is_there_(is_there),
        spec_(spec),
        asked_rlimits_(spec.process ? spec.process->rlimits : std::vector<oci::Rlimit>()) {}

  Result<Lookups> run();

 private:
  Result<void> add_mount(const Given& given);
  Result<void> add_tmpfs(const Given& given);
  void place(const Given& given, oci::Mount mount);
  void add_variables();
  Result<void> add_limits();
  std::optional<std::string> take_unified(const char* file);
  void limit_swap(int64_t memory_bytes);
  Result<void> limit_memory(const Given& given);
  Result<void> limit_cpus(const Given& given);
  void limit_pids(const Given& given);
  Result<void> add_ulimit(const Given& given);
  Result<void> set_shm_size(const Given& given);

  const Effects& effects_;
  const std::function<bool(const std::string&)>& is_there_;
  oci::Spec& spec_;
  const std::vector<oci::Rlimit> asked_rlimits_;
  std::map<std::string, bool> ours_;  ///< destinations that rules have mounted; true: by force
};

// Inserts a mount before the mounts below it, which it would hide otherwise.
void Amender::place(const Given& given, oci::Mount mount) {
  auto& mounts = spec_.mounts;
  auto same = [&](const oci::Mount& one) { return one.destination == mount.destination; };
  bool taken = std::ranges::any_of(mounts, same);
  auto earlier = ours_.find(mount.destination);
  bool stays = earlier == ours_.end() ? taken : earlier->second;
  if (stays && !given.forced) return;
  std::erase_if(mounts, same);
  ours_[mount.destination] = given.forced;
  auto first = std::ranges::find_if(
      mounts, [&](const oci::Mount& one) { return is_below(one.destination, mount.destination); });
  mounts.insert(first, std::move(mount));
}

Result<void> Amender::add_mount(const Given& given) {
  constexpr std::array<std::string_view, 6> kPropagation = {"rprivate", "private", "rshared",
                                                            "shared",   "rslave",  "slave"};
  auto parts = split(given.text, ':');
  bool good = (parts.size() == 2 || parts.size() == 3) && parts[0].starts_with('/') &&
              parts[1].starts_with('/') && parts[1] != "/";
  if (!good) return wrong(given, "mount", "expected SOURCE:TARGET[:OPTIONS], absolute paths");
  std::string propagation = "rprivate";
  bool read_only = false;
  for (std::string_view option : split(parts.size() == 3 ? parts[2] : "rw", ',')) {
    bool known = std::ranges::find(kPropagation, option) != kPropagation.end();
    if (option == "ro") {
      read_only = true;
    } else if (known) {
      propagation = option;
    } else if (option != "rw") {
      return wrong(given, "mount", "option " + quote(option) + " is only for berth run");
    }
  }
  std::string source(parts[0]);
  if (!is_there_(source)) {
    if (given.optional) return {};
    return make_error(Kind::not_found, "rule " + quote(given.rule) + ": mount " +
                                           quote(given.text) + ": there is no " + source);
  }
  oci::Mount mount;
  mount.destination = parts[1];
  mount.type = "bind";
  mount.source = std::move(source);
  mount.options = {"rbind", propagation};
  if (read_only) mount.options.emplace_back("ro");
  place(given, std::move(mount));
  return {};
}

Result<void> Amender::add_tmpfs(const Given& given) {
  size_t colon = given.text.find(':');
  oci::Mount mount;
  mount.destination = given.text.substr(0, colon);
  if (!mount.destination.starts_with('/') || mount.destination == "/") {
    return wrong(given, "tmpfs", "expected TARGET[:OPTIONS], an absolute path");
  }
  mount.type = mount.source = "tmpfs";
  mount.options = {"nosuid", "nodev", "noexec"};
  if (colon != std::string::npos) {
    for (std::string_view option : split(std::string_view(given.text).substr(colon + 1), ',')) {
      mount.options.emplace_back(option);
    }
  }
  place(given, std::move(mount));
  return {};
}

// Variables are inserted in front: programs that look for a variable appended by dockerd search at
// the end.
void Amender::add_variables() {
  Strings& env = spec_.process->env;
  Strings front;
  auto has = [&](const std::string& name) {
    return std::ranges::any_of(
        env, [&](const std::string& entry) { return entry.starts_with(name + "="); });
  };
  for (const auto& one : effects_.env_force) {
    const std::string begin = one.first + "=";
    std::erase_if(env, [&](const std::string& entry) { return entry.starts_with(begin); });
    front.push_back(begin + one.second.text);
  }
  for (const auto* values : {&effects_.env, &effects_.env_default}) {
    for (const auto& [name, given] : *values) {
      bool known = has(name) || effects_.env_force.contains(name) ||
                   (values == &effects_.env_default && effects_.env.contains(name));
      if (!known) front.push_back(name + "=" + given.text);
    }
  }
  env.insert(env.begin(), front.begin(), front.end());
}

/// An existing value is kept; if the rule is forced, the lower of both values counts.
template <class T>
void limit(T most, bool forced, std::optional<T>& out) {
  bool free = !out || *out <= 0;
  out = free ? most : forced ? lower_limit(*out, most) : *out;
}

Result<void> Amender::add_limits() {
  bool any = effects_.memory || effects_.cpus || effects_.pids_limit;
  if (any && !spec_.linux_.resources) spec_.linux_.resources.emplace();
  if (effects_.memory) TRY(limit_memory(*effects_.memory));
  if (effects_.cpus) TRY(limit_cpus(*effects_.cpus));
  if (effects_.pids_limit) limit_pids(*effects_.pids_limit);
  if (effects_.shm_size) TRY(set_shm_size(*effects_.shm_size));
  if (!spec_.process) return {};
  for (const Given& given : effects_.ulimits) TRY(add_ulimit(given));
  return {};
}

/// Removes a cgroup v2 file from `unified`, and returns its value: the runtime writes `unified`
/// last, so it would override the limits of the rules.
std::optional<std::string> Amender::take_unified(const char* file) {
  auto& unified = spec_.linux_.resources->unified;
  auto found = unified.find(file);
  if (found == unified.end()) return std::nullopt;
  std::string value = std::move(found->second);
  unified.erase(found);
  return value;
}

/// Allows at most as much swap as memory, as docker does by default: without a value swap is
/// unlimited.
void Amender::limit_swap(int64_t memory_bytes) {
  auto& memory = *spec_.linux_.resources->memory;
  auto alone = parse_bytes(take_unified("memory.swap.max").value_or(""));
  if (alone && *alone < static_cast<uint64_t>(memory_bytes)) {
    limit(memory.limit.value_or(memory_bytes) + static_cast<int64_t>(*alone), true, memory.swap);
  }
  limit(memory_bytes * 2, true, memory.swap);
}

Result<void> Amender::limit_memory(const Given& given) {
  auto most = parse_bytes(given.text);
  bool fits = most && *most <= static_cast<uint64_t>(INT64_MAX) / 2;
  if (!fits) return wrong(given, "memory", "expected a size such as 2g");
  const auto bytes = static_cast<int64_t>(*most);
  auto& memory = spec_.linux_.resources->memory;
  if (!memory) memory.emplace();
  if (given.forced) {
    auto asked = parse_bytes(take_unified("memory.max").value_or(""));
    if (asked && *asked < *most) limit(static_cast<int64_t>(*asked), true, memory->limit);
  }
  limit(bytes, given.forced, memory->limit);
  if (given.forced) limit_swap(bytes);
  return {};
}

Result<void> Amender::limit_cpus(const Given& given) {
  auto number = parse_decimal(given.text);
  bool good = number && *number >= 0.01 && *number <= 1e6;
  if (!good) return wrong(given, "cpus", "expected a number such as 1.5");
  auto& cpu = spec_.linux_.resources->cpu;
  if (!cpu) cpu.emplace();
  const uint64_t period = cpu->period.value_or(0) == 0 ? kPeriod : *cpu->period;
  auto per_period = [&](double cpus) {
    return static_cast<int64_t>(cpus * static_cast<double>(period));
  };
  const std::string asked = given.forced ? take_unified("cpu.max").value_or("") : "";
  const auto words = split_blank(asked);
  if (!words.empty()) {
    auto quota = parse_i64(words[0]);
    auto of = words.size() > 1 ? parse_i64(words[1]) : static_cast<int64_t>(kPeriod);
    bool any = quota && of && *quota > 0 && *of > 0;
    double part = any ? static_cast<double>(*quota) / static_cast<double>(*of) : 0;
    if (any && part < *number) limit(per_period(part), true, cpu->quota);
  }
  limit(per_period(*number), given.forced, cpu->quota);
  cpu->period = period;
  return {};
}

void Amender::limit_pids(const Given& given) {
  auto& pids = spec_.linux_.resources->pids;
  std::optional<int64_t> value;
  if (pids) value = pids->limit;
  if (given.forced) {
    auto asked = parse_i64(take_unified("pids.max").value_or(""));
    if (asked) limit(*asked, true, value);
  }
  limit(parse_i64(given.text).value_or(0), given.forced, value);
  pids = oci::Pids{*value};
}

// Every engine sets a size, so only a maximum of the site matters.
Result<void> Amender::set_shm_size(const Given& given) {
  auto most = parse_bytes(given.text);
  if (!most) return wrong(given, "shm-size", "expected a size such as 2g");
  if (!given.forced || *most == 0) return {};
  for (oci::Mount& mount : spec_.mounts) {
    bool shm = mount.type == "tmpfs" && parts_of(mount.destination) == Strings{"dev", "shm"};
    if (!shm) continue;
    // 0 means no limit. A percentage counts as no limit too, because the memory of the machine is
    // unknown here.
    uint64_t size = *most;
    for (const std::string& option : mount.options) {
      if (option.starts_with("size=")) {
        size = lower_limit(parse_bytes(option.substr(5)).value_or(0), *most);
      }
    }
    std::erase_if(mount.options, [](const std::string& one) {
      return one.starts_with("size=") || one.starts_with("nr_blocks=");
    });
    mount.options.push_back("size=" + std::to_string(size));
  }
  return {};
}

Result<void> Amender::add_ulimit(const Given& given) {
  size_t equals = given.text.find('=');
  std::string_view values =
      std::string_view(given.text)
          .substr(equals == std::string::npos ? given.text.size() : equals + 1);
  auto parts = split(values, ':');
  auto soft = parse_i64(parts.front());
  auto hard = parse_i64(parts.back());
  bool good = equals != std::string::npos && equals > 0 && soft && hard && parts.size() <= 2 &&
              *soft >= -1 && *hard >= -1;
  if (!good) return wrong(given, "ulimit", "expected TYPE=SOFT[:HARD]");
  oci::Rlimit rlimit;
  rlimit.type = "RLIMIT_";
  for (char c : given.text.substr(0, equals)) {
    rlimit.type += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  // -1 means no limit, which the kernel writes as the largest number.
  rlimit.soft = static_cast<uint64_t>(*soft);
  rlimit.hard = static_cast<uint64_t>(*hard);
  auto& rlimits = spec_.process->rlimits;
  auto same = [&](const oci::Rlimit& one) { return one.type == rlimit.type; };
  bool said = std::ranges::any_of(asked_rlimits_, same);
  if (said && !given.forced) return {};
  for (const oci::Rlimit& one : rlimits) {
    if (!given.forced || !same(one)) continue;
    rlimit.soft = std::min(rlimit.soft, one.soft);
    rlimit.hard = std::min(rlimit.hard, one.hard);
  }
  std::erase_if(rlimits, same);
  rlimits.push_back(std::move(rlimit));
  return {};
}

Result<Lookups> Amender::run() {
  if (auto refusal = refusal_of(effects_)) return std::move(*refusal);
  for (const Given& given : effects_.mounts) TRY(add_mount(given));
  for (const Given& given : effects_.tmpfs) TRY(add_tmpfs(given));
  if (spec_.process) add_variables();
  TRY(add_limits());
  for (const auto& [rule, hook] : effects_.hooks) {
    oci::append_hook(hook.stage, {hook.path, hook.args, hook.env, hook.timeout}, spec_.hooks);
  }
  Lookups out;
  for (const Given& given : effects_.devices) {
    (given.text.starts_with('/') ? out.nodes : out.cdi_names).push_back(given);
  }
  bool by_variable = effects_.gpus && effects_.gpus->text.starts_with("env:");
  // A request by a variable is not passed on: the origin of the variable is unknown.
  if (!by_variable) out.gpus = effects_.gpus;
  return out;
}

}  // namespace

Facts facts_of(const oci::Spec& spec, const std::vector<std::string>& caller) {
  Facts facts;
  facts.of_config = true;
  facts.labels = spec.annotations;
  // If there is a key that an image may have written, it may have written all of them:
  // docs/decisions/0083.
  bool told = !oci::may_be_images(spec.annotations);
  auto name = spec.annotations.find("io.kubernetes.cri.image-name");
  if (told && name != spec.annotations.end()) facts.image = spellings_of(name->second);
  facts.partition = value_of(caller, {"SLURM_JOB_PARTITION", "PBS_QUEUE", "LSB_QUEUE"});
  facts.account = value_of(caller, {"SLURM_JOB_ACCOUNT", "PBS_ACCOUNT"});
  if (!spec.process) return facts;
  facts.image_env = spec.process->env;
  if (!spec.process->args.empty()) facts.command = spec.process->args.front();
  return facts;
}

Result<Lookups> amend(const Effects& effects,
                      const std::function<bool(const std::string&)>& is_there, oci::Spec& spec) {
  return Amender(effects, is_there, spec).run();
}

}  // namespace berth::policy
