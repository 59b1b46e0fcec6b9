// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "oci/capabilities.hpp"
#include "plan/plan.hpp"

namespace berth::plan {
namespace {

using Members = std::vector<std::pair<std::string, std::string>>;

std::string list(const std::vector<std::string>& words) {
  return join(words, " ");
}

std::string list(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (uint32_t number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::string options(const MountAttributes& attributes, const std::vector<std::string>& data = {}) {
  std::string names = attribute_names(attributes);
  std::string rest = join(data, ",");
  if (names.empty() || rest.empty()) return names + rest;
  return names + "," + rest;
}

std::string in_parentheses(const std::string& text) {
  return text.empty() ? "" : " (" + text + ")";
}

std::string octal(uint32_t mode) {
  std::string text;
  for (int shift = 9; shift >= 0; shift -= 3) text += static_cast<char>('0' + (mode >> shift & 7));
  return text;
}

std::string capabilities(uint64_t set) {
  std::string text;
  for (unsigned number = 0; number < 64; ++number) {
    if (!(set >> number & 1)) continue;
    auto name = oci::capability_name(number);
    text += (text.empty() ? "" : " ") + (name ? std::string(*name) : std::to_string(number));
  }
  return text.empty() ? "none" : text;
}

std::string device(const std::string& type, uint32_t major, uint32_t minor) {
  return type + " " + std::to_string(major) + ":" + std::to_string(minor);
}

std::string limit(uint64_t value) {
  return value == UINT64_MAX ? "unlimited" : std::to_string(value);
}

// Limits in the words of the spec; the empty string when there are none.
std::string limits(const oci::Resources& resources) {
  std::vector<std::string> words;
  auto add = [&](const char* name, const auto& value) {
    if (value) words.push_back(std::string(name) + "=" + std::to_string(*value));
  };
  if (resources.memory) {
    add("memory.limit", resources.memory->limit);
    add("memory.reservation", resources.memory->reservation);
    add("memory.swap", resources.memory->swap);
  }
  if (resources.cpu) {
    add("cpu.shares", resources.cpu->shares);
    add("cpu.quota", resources.cpu->quota);
    add("cpu.period", resources.cpu->period);
    if (!resources.cpu->cpus.empty()) words.push_back("cpu.cpus=" + resources.cpu->cpus);
    if (!resources.cpu->mems.empty()) words.push_back("cpu.mems=" + resources.cpu->mems);
  }
  if (resources.pids) words.push_back("pids.limit=" + std::to_string(resources.pids->limit));
  if (!resources.devices.empty()) {
    words.push_back("devices=" + std::to_string(resources.devices.size()) + " rules");
  }
  for (const auto& [file, value] : resources.unified) words.push_back(file + "=" + value);
  return join(words, ",");
}

std::string namespaces(const Spawn& step) {
  std::vector<std::string> words = step.created;
  for (const auto& space : step.joined) words.push_back(space.type + " of " + quoted(space.path));
  return join(words, ", ");
}

template <class... Functions>
struct Overload : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overload(Functions...) -> Overload<Functions...>;

Description describe_mount(const MountFilesystem& s) {
  std::string words = options(s.attributes, s.data);
  return {"mount_filesystem",
          "mount " + s.type + " at " + quoted(s.target) + in_parentheses(words),
          {{"type", s.type}, {"source", s.source}, {"target", s.target}, {"options", words}}};
}

Description describe_root(const MountOverlayRoot& s) {
  std::string words = options(s.attributes, s.options);
  return {"mount_overlay_root",
          "mount an overlay of " + std::to_string(s.lower.size()) + " layers as the root" +
              in_parentheses(words),
          {{"target", s.target},
           {"lower", join(s.lower, ":")},
           {"upper", s.upper},
           {"work", s.work},
           {"options", words}}};
}

Description describe_bind(const MountBind& s) {
  std::string words = options(s.attributes);
  return {"mount_bind",
          "bind " + quoted(s.source) + " at " + quoted(s.target) + in_parentheses(words),
          {{"source", s.source},
           {"target", s.target},
           {"recursive", s.recursive ? "yes" : "no"},
           {"options", words}}};
}

Description describe_node(const MakeNode& s) {
  std::string number = device(s.type, s.major, s.minor);
  return {"make_node",
          "make device " + quoted(s.path) + " (" + number + ", mode " + octal(s.mode) + ")",
          {{"path", s.path},
           {"device", number},
           {"mode", octal(s.mode)},
           {"owner", std::to_string(s.uid) + ":" + std::to_string(s.gid)}}};
}

Description describe_identity(const SetIdentity& s) {
  std::string who = std::to_string(s.uid) + ":" + std::to_string(s.gid);
  std::string groups = list(s.groups);
  return {"set_identity",
          "become user " + who + (groups.empty() ? "" : " with groups " + groups),
          {{"user", who}, {"groups", groups}}};
}

Description describe_capabilities(const SetCapabilities& s) {
  return {"set_capabilities",
          "keep capabilities: " + capabilities(s.effective),
          {{"effective", capabilities(s.effective)},
           {"permitted", capabilities(s.permitted)},
           {"inheritable", capabilities(s.inheritable)},
           {"ambient", capabilities(s.ambient)}}};
}

Description describe_hooks(const RunHooks& s) {
  std::vector<std::string> paths;
  for (const auto& hook : s.hooks) paths.push_back(hook.path);
  return {"run_hooks",
          "run the " + s.stage + " hooks " + list(paths),
          {{"stage", s.stage}, {"hooks", list(paths)}}};
}

}  // namespace

Description describe(const Step& step) {
  return std::visit(
      Overload{
          [](const MakeCgroup& s) -> Description {
            std::string words = limits(s.resources);
            return {"make_cgroup",
                    "make cgroup " + quoted(s.path) + in_parentheses(words),
                    {{"path", s.path}, {"limits", words}}};
          },
          [](const Spawn& s) -> Description {
            return {"spawn",
                    "start a process in new namespaces: " + namespaces(s),
                    {{"namespaces", namespaces(s)}}};
          },
          [](const IsolateMounts&) -> Description {
            return {"isolate_mounts", "keep mounts from spreading to the host", {}};
          },
          [](const EnterCgroupNamespace&) -> Description {
            return {"enter_cgroup_namespace", "make a new cgroup namespace", {}};
          },
          [](const MountOverlayRoot& s) { return describe_root(s); },
          [](const BindRoot& s) -> Description {
            return {"bind_root", "use " + quoted(s.path) + " as the root", {{"path", s.path}}};
          },
          [](const MountFilesystem& s) { return describe_mount(s); },
          [](const MountBind& s) { return describe_bind(s); },
          [](const MountCgroups& s) -> Description {
            std::string words = options(s.attributes);
            return {"mount_cgroups",
                    "show the container's cgroup at " + quoted(s.target) + in_parentheses(words),
                    {{"target", s.target}, {"options", words}}};
          },
          [](const MakeNode& s) { return describe_node(s); },
          [](const BindNode& s) -> Description {
            std::string number = device(s.type, s.major, s.minor);
            return {
                "bind_node",
                "bind device " + quoted(s.source) + " at " + quoted(s.path) + " (" + number + ")",
                {{"source", s.source}, {"path", s.path}, {"device", number}}};
          },
          [](const MakeLink& s) -> Description {
            return {"make_link",
                    "link " + quoted(s.path) + " to " + quoted(s.text),
                    {{"path", s.path}, {"text", s.text}}};
          },
          [](const MakeConsole&) -> Description {
            return {"make_console", "make the terminal '/dev/console'", {}};
          },
          [](const MaskPaths& s) -> Description {
            return {"mask_paths", "hide " + list(s.paths), {{"paths", list(s.paths)}}};
          },
          [](const MakeReadonly& s) -> Description {
            return {"make_readonly", "make read-only " + list(s.paths), {{"paths", list(s.paths)}}};
          },
          [](const RaiseLoopback&) -> Description {
            return {"raise_loopback", "bring up the loopback interface", {}};
          },
          [](const SetSysctl& s) -> Description {
            return {"set_sysctl",
                    "set " + s.key + " to " + quoted(s.value),
                    {{"key", s.key}, {"value", s.value}}};
          },
          [](const SetHostname& s) -> Description {
            return {"set_hostname", "set host name " + quoted(s.name), {{"name", s.name}}};
          },
          [](const SetDomainname& s) -> Description {
            return {"set_domainname", "set domain name " + quoted(s.name), {{"name", s.name}}};
          },
          [](const SetOomScore& s) -> Description {
            std::string score = std::to_string(s.score);
            return {"set_oom_score", "set the out-of-memory score to " + score, {{"score", score}}};
          },
          [](const RunHooks& s) { return describe_hooks(s); },
          [](const EnterRoot& s) -> Description {
            return {"enter_root",
                    std::string("enter the root") + (s.readonly ? ", read-only" : ""),
                    {{"readonly", s.readonly ? "yes" : "no"}}};
          },
          [](const SetRlimit& s) -> Description {
            std::string value = limit(s.soft) + ":" + limit(s.hard);
            return {"set_rlimit",
                    "set " + s.type + " to " + value,
                    {{"type", s.type}, {"value", value}}};
          },
          [](const LimitCapabilities& s) -> Description {
            return {"limit_capabilities",
                    "limit capabilities to " + capabilities(s.bounding),
                    {{"bounding", capabilities(s.bounding)}}};
          },
          [](const SetCapabilities& s) { return describe_capabilities(s); },
          [](const SetIdentity& s) { return describe_identity(s); },
          [](const EnterDirectory& s) -> Description {
            return {"enter_directory", "enter directory " + quoted(s.path), {{"path", s.path}}};
          },
          [](const SetUmask& s) -> Description {
            return {"set_umask", "set umask " + octal(s.mask), {{"mask", octal(s.mask)}}};
          },
          [](const ForbidNewPrivileges&) -> Description {
            return {"forbid_new_privileges", "forbid new privileges", {}};
          },
          [](const LoadSeccomp& s) -> Description {
            std::string size = std::to_string(s.profile.syscalls.size());
            return {
                "load_seccomp",
                "filter system calls by " + size + " rules, otherwise " + s.profile.default_action,
                {{"default_action", s.profile.default_action}, {"rules", size}}};
          },
          [](const FindProgram& s) -> Description {
            return {"find_program",
                    "find program " + quoted(s.name),
                    {{"name", s.name}, {"path", s.path}}};
          },
          [](const AwaitStart&) -> Description {
            return {"await_start", "wait for start", {}};
          },
          [](const Execute& s) -> Description {
            return {"execute",
                    "execute " + list(s.args),
                    {{"args", list(s.args)}, {"environment", list(s.env)}}};
          },
      },
      step);
}

}  // namespace berth::plan
