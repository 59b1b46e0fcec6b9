// SPDX-License-Identifier: Apache-2.0
// Programs of Debian's that read or write squashfs, as children without rights.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::transfer {

/// Who a tool is.
enum class ToolUser {
  /// The machine's root becomes nobody; others stay who they are. For what parses foreign bytes.
  nobody,
  caller,
};

struct ToolCall {
  std::string program;            ///< below /usr/bin
  std::vector<std::string> args;  ///< descriptors as tool_path()
  std::string package;            ///< what to install where it is missing
  ToolUser user = ToolUser::nobody;
  std::vector<std::string> env;
  std::vector<int> keep;  ///< descriptors that it opens by tool_path()
};

/// What a tool calls a descriptor of ours.
std::string tool_path(const sys::Fd& fd);

/// Whether a process of ToolUser::nobody is another user here.
bool tools_are_nobody();

/// A running tool: without capabilities, and with no way to new rights.
class Tool {
 public:
  /// `in`, `out`: its standard streams; none is /dev/null.
  /// Errors: not_found (with the package in the hint), io.
  static Result<Tool> start(const ToolCall& call, const sys::Fd* in, const sys::Fd* out);
  /// Waits for its end.  Errors: corrupt with its last words where it failed.
  Result<void> finish();

 private:
  std::string name_;
  sys::Process process_;
  sys::Fd words_;
};

}  // namespace berth::transfer
