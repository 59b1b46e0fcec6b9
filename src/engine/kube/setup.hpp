// SPDX-License-Identifier: Apache-2.0
// `berth node setup`: the configuration of containerd or CRI-O for the runtime 'berth', in files of
// our own. docs/decisions/0193
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"

namespace berth::engine {

enum class NodeRuntime { containerd, crio };

struct SetupRequest {
  NodeRuntime runtime = NodeRuntime::containerd;
  std::string root = "/";               ///< of the node whose files are written
  std::optional<std::string> program;   ///< berth-runtime; nothing: next to `berth`
  std::optional<std::string> hub;       ///< "http://hub.example.org:5050"
  std::optional<std::string> registry;  ///< that the hub stands for; nothing: every one
  bool dry_run = false;
  bool remove = false;
};

/// A file of ours, whole. Paths are those on the node.
struct SetupFile {
  std::string path;
  std::string text;
  bool restart = true;  ///< the runtime reads it only at its start

  bool operator==(const SetupFile&) const = default;
};

/// What is to be written, or was.
struct SetupPlan {
  std::vector<SetupFile> files;
  /// Lines that an administrator has to add to `main_file`: the runtime would misread a file of
  /// ours.
  std::string lines;
  std::string main_file;
  std::string why;  ///< `lines` are needed
};

/// What decides about containerd's files.
struct ContainerdFacts {
  std::optional<std::string> config;   ///< /etc/containerd/config.toml
  std::optional<std::string> version;  ///< "1.6.20"; nothing: containerd cannot be asked
};

/// Pure. Errors: corrupt (config.toml), unsupported (its version 1), usage (`hub`).
Result<SetupPlan> plan_containerd(const ContainerdFacts& facts, const SetupRequest& request,
                                  const std::string& program);
Result<SetupPlan> plan_crio(const SetupRequest& request, const std::string& program);

struct SetupDone {
  SetupPlan plan;
  std::vector<std::string> changed;  ///< the paths of files that were written or removed
  bool restart = false;              ///< one of them is read at the runtime's start only
};

/// Writes the files of the plan, or with `remove` removes ours. Writes nothing if `plan.lines` are
/// needed. Errors: those of the plan, exists (a file of that name is not ours), denied.
Result<SetupDone> set_up_node(const Context& context, const SetupRequest& request);

}  // namespace berth::engine
