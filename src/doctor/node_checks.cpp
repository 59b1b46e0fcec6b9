// SPDX-License-Identifier: Apache-2.0
// Checks that device nodes are present, correct and accessible to this user.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "doctor/checks.hpp"

namespace berth::doctor {
namespace {

bool is_capability(const NodeFacts& node) {
  return node.expected.path.starts_with("/dev/nvidia-caps/");
}

bool is_right(const NodeFacts& node) {
  return node.found && node.character && node.major == node.expected.major &&
         node.minor == node.expected.minor;
}

using NodeList = std::vector<const NodeFacts*>;

template <class Predicate>
NodeList select(const Facts& facts, Predicate wanted) {
  NodeList out;
  for (const NodeFacts& node : facts.gpu.nodes) {
    if (wanted(node)) out.push_back(&node);
  }
  return out;
}

std::vector<std::string> paths(const NodeList& nodes) {
  std::vector<std::string> out;
  for (const NodeFacts* node : nodes) out.push_back(node->expected.path);
  return out;
}

/// "'/dev/nvidia0'", "'/dev/nvidia0' and 7 more".
std::string first_of(const NodeList& nodes) {
  std::string text = quote(nodes.front()->expected.path);
  if (nodes.size() > 1) text += fmt::format(" and {} more", nodes.size() - 1);
  return text;
}

Finding none_here() {
  return not_applicable("the driver has no node here");
}

/// The command that makes a node of the driver.
std::string maker_of(const NodeFacts& node) {
  const gpu::Node& n = node.expected;
  if (n.path.starts_with("/dev/nvidia-uvm")) return "nvidia-modprobe -u -c 0, as root";
  if (n.path == "/dev/nvidia-modeset") return "nvidia-modprobe -m, as root";
  if (n.path == "/dev/nvidiactl") return "nvidia-modprobe -c 0, as root";
  if (n.path == fmt::format("/dev/nvidia{}", n.minor)) {
    return fmt::format("nvidia-modprobe -c {}, as root", n.minor);
  }
  return fmt::format("mknod -m {:o} {} c {} {}, as root", n.mode, n.path, n.major, n.minor);
}

Finding uvm(const Facts& facts) {
  if (facts.gpu.inventory.driver.module_version.empty()) {
    return not_applicable("no NVIDIA module is loaded");
  }
  if (!facts.gpu.majors.contains("nvidia-uvm")) {
    return problem("the module nvidia-uvm is not loaded: CUDA does not start",
                   "modprobe nvidia-uvm, or nvidia-modprobe -u -c 0; to keep it: "
                   "echo nvidia-uvm >/etc/modules-load.d/nvidia-uvm.conf");
  }
  return ok("the module nvidia-uvm is loaded");
}

Finding missing_nodes(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  NodeList missing = select(facts, [](const NodeFacts& node) {
    return !node.found && !node.optional && !is_capability(node);
  });
  if (missing.empty()) return ok("every node of the driver exists");
  std::string cause = first_of(missing) + (missing.size() == 1 ? " is" : " are") + " missing";
  if (!facts.host.job.empty()) {
    return with(ok(cause + ": not given to " + facts.host.job), paths(missing));
  }
  if (facts.host.user.machine_root && !facts.gpu.synthetic) {
    return with(warning(cause + ": root's containers get their own, those of others do not",
                        maker_of(*missing.front())),
                paths(missing));
  }
  return with(problem(std::move(cause), maker_of(*missing.front())), paths(missing));
}

Finding stale_nodes(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  NodeList stale =
      select(facts, [](const NodeFacts& node) { return node.found && !is_right(node); });
  if (stale.empty()) return ok("every node has the driver's numbers");
  std::vector<std::string> details;
  for (const NodeFacts* node : stale) {
    const gpu::Node& wanted = node->expected;
    details.push_back(node->character
                          ? fmt::format("{} is {}:{}, the driver's is {}:{}", quote(wanted.path),
                                        node->major, node->minor, wanted.major, wanted.minor)
                          : fmt::format("{} is not a character device", quote(wanted.path)));
  }
  std::string cause = details.front();
  if (details.size() > 1) cause += fmt::format(", and {} more", details.size() - 1);
  return with(problem(std::move(cause),
                      "rm " + stale.front()->expected.path + "; " + maker_of(*stale.front())),
              std::move(details));
}

Finding node_access(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  NodeList closed = select(facts, [](const NodeFacts& node) {
    return is_right(node) && node.access_errno != 0 && node.access_errno != EPERM &&
           !is_capability(node) && !node.optional;
  });
  if (closed.empty()) return ok("this user may open every node");
  const NodeFacts& first = *closed.front();
  std::string cause = fmt::format("this user may not open {} (mode {}, group {})", first_of(closed),
                                  octal(first.mode), first.group);
  bool by_group = (first.mode & 0060) == 0060 && first.gid != 0;
  std::string name =
      facts.host.user.name.empty() ? std::to_string(facts.host.user.uid) : facts.host.user.name;
  return with(
      problem(std::move(cause),
              by_group ? "usermod -aG " + first.group + " " + name + ", as root; then log in again"
                       : "options nvidia NVreg_DeviceFileMode=0666 in /etc/modprobe.d"),
      paths(closed));
}

// A container in a user namespace with subordinate ids sets its own groups and loses those of the
// caller.
Finding keep_groups(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  if (facts.host.user.machine_root) return not_applicable("root needs no group");
  NodeList by_group = select(facts, [&](const NodeFacts& node) {
    return is_right(node) && node.access_errno == 0 && (node.mode & 0006) != 0006 &&
           !is_capability(node) && node.gid != facts.host.user.gid && !node.optional;
  });
  if (by_group.empty()) return ok("no node depends on a group of this user");
  const NodeFacts& first = *by_group.front();
  std::string cause = first_of(by_group) + (by_group.size() == 1 ? " is" : " are") +
                      " open to this user by the group " + first.group;
  if (!facts.host.all_ids) return ok(cause + ", which containers with a single id keep");
  return with(warning(cause + ", which containers with subordinate ids give up",
                      "--group-add keep-groups, or options nvidia NVreg_DeviceFileMode=0666 in "
                      "/etc/modprobe.d"),
              paths(by_group));
}

Finding device_cgroup(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  NodeList denied = select(facts, [](const NodeFacts& node) { return node.access_errno == EPERM; });
  if (denied.empty()) return ok("no control group denies a GPU");
  std::string cause =
      first_of(denied) + (denied.size() == 1 ? " is" : " are") + " denied by a control group";
  if (!facts.host.job.empty()) {
    return with(warning(cause + ": " + facts.host.job + " does not own it",
                        "ask the scheduler for GPUs (--gres=gpu:N, --gpus=N)"),
                paths(denied));
  }
  return with(problem(cause + ", in which this shell runs",
                      "systemctl show -p DeviceAllow -p DevicePolicy $(systemctl status $$ | head "
                      "-1), or leave the container"),
              paths(denied));
}

Finding nodev(const Facts& facts) {
  if (facts.gpu.nodes.empty() || !facts.gpu.dev) return none_here();
  if (!facts.gpu.dev->no_dev) return ok("devices can be opened below /dev");
  return problem("the nodes are on a file system that is mounted nodev: they cannot be opened",
                 "mount -o remount,dev /dev, as root");
}

// systemd needs the links in /dev/char to resolve DeviceAllow=/dev/nvidia0 when it reloads a unit.
Finding char_links(const Facts& facts) {
  if (facts.gpu.nodes.empty()) return none_here();
  if (!facts.host.systemd) return not_applicable("systemd is not the init of this machine");
  NodeList without = select(facts, [](const NodeFacts& node) {
    return is_right(node) && !node.char_link && !is_capability(node);
  });
  if (without.empty()) return ok("every node has its link in /dev/char");
  const gpu::Node& first = without.front()->expected;
  return with(warning(first_of(without) + (without.size() == 1 ? " has" : " have") +
                          " no link in /dev/char: other engines' containers lose the GPUs at a "
                          "daemon-reload (\"Failed to initialize NVML: Unknown Error\")",
                      fmt::format("ln -s {} /dev/char/{}:{}, by a udev rule", first.path,
                                  first.major, first.minor)),
              paths(without));
}

Finding mig_nodes(const Facts& facts) {
  NodeList caps = select(facts, is_capability);
  if (caps.empty()) return not_applicable("no GPU has a slice");
  NodeList missing = select(facts, [](const NodeFacts& node) {
    return is_capability(node) && !node.found && !node.optional;
  });
  if (!missing.empty()) {
    return with(problem(first_of(missing) + (missing.size() == 1 ? " is" : " are") + " missing (" +
                            missing.front()->owner + ")",
                        maker_of(*missing.front())),
                paths(missing));
  }
  NodeList closed = select(facts, [](const NodeFacts& node) {
    return is_capability(node) && node.found && node.access_errno == EACCES && !node.optional;
  });
  if (!closed.empty()) {
    return with(
        problem("this user may not read " + first_of(closed) + " (" + closed.front()->owner + ")",
                "chmod 444 " + closed.front()->expected.path + ", as root"),
        paths(closed));
  }
  return ok("every slice has its capability nodes");
}

constexpr std::array kNodeChecks = {
    Check{"gpu.uvm", uvm},
    Check{"gpu.nodes-missing", missing_nodes},
    Check{"gpu.nodes-stale", stale_nodes},
    Check{"gpu.node-access", node_access},
    Check{"gpu.keep-groups", keep_groups},
    Check{"gpu.device-cgroup", device_cgroup},
    Check{"gpu.nodev", nodev},
    Check{"gpu.char-links", char_links},
    Check{"gpu.mig-nodes", mig_nodes},
};

}  // namespace

std::span<const Check> node_checks() {
  return kNodeChecks;
}

}  // namespace berth::doctor
