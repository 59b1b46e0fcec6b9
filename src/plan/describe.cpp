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

// The limits with the names of the spec; empty if there are none.
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
  for (const auto& space : step.joined) words.push_back(space.type + " of " + quote(space.path));
  return join(words, ", ");
}

std::string with_map(std::string words, const std::optional<IdMap>& map) {
  if (!map) return words;
  return words + (words.empty() ? "" : ",") + (map->recursive ? "ridmap" : "idmap");
}

Description describe_step(const MountFilesystem& s) {
  std::string words = with_map(options(s.attributes, s.data), s.id_map);
  if (s.copy_up) words += words.empty() ? "tmpcopyup" : ",tmpcopyup";
  return {"mount_filesystem",
          "mount " + s.type + " at " + quote(s.target) + in_parentheses(words),
          {{"type", s.type}, {"source", s.source}, {"target", s.target}, {"options", words}}};
}

Description describe_step(const MountOverlayRoot& s) {
  std::string words = options(s.attributes, s.options);
  return {"mount_overlay_root",
          "mount an overlay of " + std::to_string(s.lower.size()) + " layers as the root" +
              (s.served ? ", by fuse-overlayfs" : "") + in_parentheses(words),
          {{"target", s.target},
           {"lower", join(s.lower, ":")},
           {"upper", s.upper},
           {"work", s.work},
           {"options", words}}};
}

Description describe_step(const MountLayers& s) {
  std::string words = options(s.attributes, s.options);
  return {"mount_layers",
          "mount an image of " + std::to_string(s.lower.size()) + " layers at " + s.target +
              in_parentheses(words),
          {{"target", s.target}, {"lower", join(s.lower, ":")}, {"options", words}}};
}

Description describe_step(const ChangeMount& s) {
  std::string words = options(s.attributes, s.data);
  return {
      "change_mount",
      "change the mount at " + quote(s.target) + in_parentheses(words),
      {{"target", s.target}, {"super_block", s.super_block ? "yes" : "no"}, {"options", words}}};
}

Description describe_step(const MountBind& s) {
  std::string words = with_map(options(s.attributes), s.id_map);
  for (auto [said, word] :
       {std::pair(s.links.source, "src-nofollow"), std::pair(s.links.target, "dest-nofollow"),
        std::pair(s.links.copy, "copy-symlink")}) {
    if (said) words += (words.empty() ? "" : ",") + std::string(word);
  }
  return {"mount_bind",
          "bind " + quote(s.source) + " at " + quote(s.target) + in_parentheses(words),
          {{"source", s.source},
           {"target", s.target},
           {"recursive", s.recursive ? "yes" : "no"},
           {"options", words}}};
}

Description describe_step(const MakeNode& s) {
  std::string number = device(s.type, s.major, s.minor);
  return {"make_node",
          "make device " + quote(s.path) + " (" + number + ", mode " + octal(s.mode) + ")",
          {{"path", s.path},
           {"device", number},
           {"mode", octal(s.mode)},
           {"owner", std::to_string(s.uid) + ":" + std::to_string(s.gid)}}};
}

Description describe_step(const SetIdentity& s) {
  std::string who = std::to_string(s.uid) + ":" + std::to_string(s.gid);
  std::string groups = s.keep_groups ? "of the caller" : list(s.groups);
  return {"set_identity",
          "become user " + who + (groups.empty() ? "" : " with groups " + groups),
          {{"user", who}, {"groups", groups}}};
}

Description describe_step(const SetCapabilities& s) {
  return {"set_capabilities",
          "keep capabilities: " + capabilities(s.effective),
          {{"effective", capabilities(s.effective)},
           {"permitted", capabilities(s.permitted)},
           {"inheritable", capabilities(s.inheritable)},
           {"ambient", capabilities(s.ambient)}}};
}

Description describe_step(const RunHooks& s) {
  std::vector<std::string> paths;
  for (const auto& hook : s.hooks) paths.push_back(hook.path);
  return {"run_hooks",
          "run the " + s.stage + " hooks " + list(paths),
          {{"stage", s.stage}, {"hooks", list(paths)}}};
}

Description describe_step(const MakeCgroup& s) {
  std::string words = limits(s.resources);
  if (s.scope) {
    return {"make_cgroup",
            "let systemd make " + quote(s.scope->unit) + " in " + quote(s.scope->slice) +
                in_parentheses(words),
            {{"unit", s.scope->unit}, {"slice", s.scope->slice}, {"limits", words}}};
  }
  std::string owner = s.owner ? ", owned by user " + std::to_string(*s.owner) : "";
  return {"make_cgroup",
          "make cgroup " + quote(s.path) + (s.below_caller ? " below the caller's" : "") +
              in_parentheses(words) + owner,
          {{"path", s.path}, {"limits", words}}};
}

Description describe_step(const Spawn& s) {
  return {"spawn",
          "start a process in new namespaces: " + namespaces(s),
          {{"namespaces", namespaces(s)}}};
}

Description describe_step(const MakeKeyring&) {
  return {"make_keyring", "make a session keyring", {}};
}

Description describe_step(const IsolateMounts&) {
  return {"isolate_mounts", "keep mounts from spreading to the host", {}};
}

Description describe_step(const EnterCgroupNamespace&) {
  return {"enter_cgroup_namespace", "make a new cgroup namespace", {}};
}

Description describe_step(const BindRoot& s) {
  return {"bind_root", "use " + quote(s.path) + " as the root", {{"path", s.path}}};
}

Description describe_step(const MountCgroups& s) {
  std::string words = options(s.attributes);
  return {"mount_cgroups",
          "show the container's cgroup at " + quote(s.target) + in_parentheses(words),
          {{"target", s.target}, {"options", words}}};
}

Description describe_step(const BindNode& s) {
  std::string number = device(s.type, s.major, s.minor);
  return {"bind_node",
          "bind device " + quote(s.source) + " at " + quote(s.path) + " (" + number + ")",
          {{"source", s.source}, {"path", s.path}, {"device", number}}};
}

Description describe_step(const MakeLink& s) {
  return {"make_link",
          "link " + quote(s.path) + " to " + quote(s.text),
          {{"path", s.path}, {"text", s.text}}};
}

Description describe_step(const ReplaceLink& s) {
  return {"replace_link",
          "link " + quote(s.path) + " to " + quote(s.text) + ", whatever is there",
          {{"path", s.path}, {"text", s.text}}};
}

Description describe_step(const PlaceLoaderFiles& s) {
  std::string verb = s.in_root ? "put" : "bind";
  return {"place_loader_files",
          verb + " a loader cache of its own at '/etc/ld.so.cache'",
          {{"in_root", s.in_root ? "yes" : "no"}}};
}

Description describe_step(const FillLoaderFiles& s) {
  std::vector<std::string> paths;
  for (const auto& entry : s.entries) paths.push_back(entry.path);
  std::string compat = s.compat ? s.compat->container_root : "";
  return {"fill_loader_files",
          "add " + std::to_string(s.entries.size()) + " libraries to the loader cache" +
              (s.compat ? ", and those of " + quote(compat) + " if they fit" : ""),
          {{"libraries", list(paths)}, {"compat", compat}}};
}

Description describe_step(const MakeConsole& s) {
  return {"make_console", s.named ? "make the terminal '/dev/console'" : "make a terminal", {}};
}

Description describe_step(const JoinContainer&) {
  return {"join_container", "join the namespaces of the container", {}};
}

Description describe_step(const EnterTimeNamespace& s) {
  std::string offsets;
  for (const auto& [clock, offset] : s.offsets) {
    offsets += (offsets.empty() ? "" : ", ") + clock + " by " + std::to_string(offset.secs) +
               " s " + std::to_string(offset.nanosecs) + " ns";
  }
  return {"enter_time_namespace",
          "make a new time namespace" + in_parentheses(offsets),
          {{"offsets", offsets}}};
}

Description describe_step(const JoinResctrl& s) {
  std::string group = s.group.empty() ? "/" : s.group;
  return {"join_resctrl",
          "join resource control group " + quote(group),
          {{"group", group}, {"schemata", join(s.schemata, " ")}}};
}

Description describe_step(const SetLabels& s) {
  std::string labels = s.apparmor;
  if (!s.selinux.empty()) labels += (labels.empty() ? "" : ", ") + s.selinux;
  return {"set_labels",
          "run the program as " + labels,
          {{"apparmor", s.apparmor}, {"selinux", s.selinux}}};
}

Description describe_step(const SetScheduler& s) {
  return {"set_scheduler",
          "schedule by " + s.name,
          {{"policy", s.name},
           {"nice", std::to_string(s.nice)},
           {"priority", std::to_string(s.priority)}}};
}

Description describe_step(const SetIoPriority& s) {
  std::string level = std::to_string(s.level);
  return {"set_io_priority",
          "set the I/O priority to " + s.name + " " + level,
          {{"class", s.name}, {"level", level}}};
}

Description describe_step(const SetMemoryPolicy& s) {
  std::string nodes = list(s.nodes);
  return {"set_memory_policy",
          "take memory by " + s.name + (nodes.empty() ? "" : " of nodes " + nodes),
          {{"mode", s.name}, {"nodes", nodes}}};
}

Description describe_step(const SetPersonality& s) {
  return {"set_personality", "set the personality " + s.name, {{"domain", s.name}}};
}

Description describe_step(const SetAffinity& s) {
  std::string processors = list(s.processors);
  return {"set_affinity", "run on processors " + processors, {{"processors", processors}}};
}

Description describe_step(const ResetAffinity&) {
  return {"reset_affinity", "run on all processors that the cgroup allows", {}};
}

Description describe_step(const PreferPlace& s) {
  std::string processors = list(s.processors), nodes = list(s.memory_nodes);
  std::vector<std::string> words;
  if (!processors.empty()) words.push_back("to run on processors " + processors);
  if (!nodes.empty()) words.push_back("to take memory of nodes " + nodes);
  return {"prefer_place",
          "prefer " + join(words, " and "),
          {{"processors", processors}, {"memory_nodes", nodes}}};
}

Description describe_step(const MaskPaths& s) {
  return {"mask_paths", "hide " + list(s.paths), {{"paths", list(s.paths)}}};
}

Description describe_step(const MakeReadonly& s) {
  return {"make_readonly", "make read-only " + list(s.paths), {{"paths", list(s.paths)}}};
}

Description describe_step(const MoveInterfaces& s) {
  std::vector<std::string> words;
  for (const auto& one : s.interfaces) {
    words.push_back(quote(one.from) + (one.to == one.from ? "" : " as " + quote(one.to)));
  }
  return {"move_interfaces",
          "move network interfaces into the container: " + join(words, ", "),
          {{"interfaces", join(words, ", ")}}};
}

Description describe_step(const RaiseLoopback&) {
  return {"raise_loopback", "bring up the loopback interface", {}};
}

Description describe_step(const SetSysctl& s) {
  return {
      "set_sysctl", "set " + s.key + " to " + quote(s.value), {{"key", s.key}, {"value", s.value}}};
}

Description describe_step(const SetHostname& s) {
  return {"set_hostname", "set host name " + quote(s.name), {{"name", s.name}}};
}

Description describe_step(const SetDomainname& s) {
  return {"set_domainname", "set domain name " + quote(s.name), {{"name", s.name}}};
}

Description describe_step(const SetOomScore& s) {
  std::string score = std::to_string(s.score);
  return {"set_oom_score", "set the out-of-memory score to " + score, {{"score", score}}};
}

Description describe_step(const EnterRoot& s) {
  return {"enter_root",
          std::string("enter the root") + (s.readonly ? ", read-only" : ""),
          {{"readonly", s.readonly ? "yes" : "no"}, {"directory", s.directory}}};
}

Description describe_step(const EnterSharedRoot& s) {
  return {"enter_shared_root",
          "enter directory " + quote(s.path) + " as the root",
          {{"path", s.path}, {"mount_namespace", s.mount_namespace}}};
}

Description describe_step(const SetRlimit& s) {
  std::string value = limit(s.soft) + ":" + limit(s.hard);
  return {"set_rlimit", "set " + s.type + " to " + value, {{"type", s.type}, {"value", value}}};
}

Description describe_step(const LimitCapabilities& s) {
  return {"limit_capabilities",
          "limit capabilities to " + capabilities(s.bounding),
          {{"bounding", capabilities(s.bounding)}}};
}

Description describe_step(const EnterDirectory& s) {
  return {"enter_directory", "enter directory " + quote(s.path), {{"path", s.path}}};
}

Description describe_step(const SetUmask& s) {
  return {"set_umask", "set umask " + octal(s.mask), {{"mask", octal(s.mask)}}};
}

Description describe_step(const ForbidNewPrivileges&) {
  return {"forbid_new_privileges", "forbid new privileges", {}};
}

Description describe_step(const LoadSeccomp& s) {
  std::string size = std::to_string(s.profile.syscalls.size());
  return {"load_seccomp",
          "filter system calls by " + size + " rules, otherwise " + s.profile.default_action,
          {{"default_action", s.profile.default_action}, {"rules", size}}};
}

Description describe_step(const FindProgram& s) {
  return {"find_program", "find program " + quote(s.name), {{"name", s.name}, {"path", s.path}}};
}

Description describe_step(const FindHome& s) {
  std::string uid = std::to_string(s.uid);
  return {"find_home", "set HOME to that of user " + uid, {{"uid", uid}}};
}

Description describe_step(const AwaitStart&) {
  return {"await_start", "wait for start", {}};
}

Description describe_step(const AwaitCgroup&) {
  return {"await_cgroup", "wait to be in the cgroup", {}};
}

Description describe_step(const AwaitConfinement&) {
  return {"await_confinement", "wait for limits, device rules and the seccomp filter", {}};
}

Description describe_step(const Execute& s) {
  return {
      "execute", "execute " + list(s.args), {{"args", list(s.args)}, {"environment", list(s.env)}}};
}

}  // namespace

Description describe(const Step& step) {
  return std::visit([](const auto& s) { return describe_step(s); }, step);
}

}  // namespace berth::plan
