// SPDX-License-Identifier: Apache-2.0
// Runs Debian's programs for squashfs as children without privileges.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::transfer {

/// The user as which a tool runs.
enum class ToolUser {
  /// Nobody, if the caller is root of the machine; else the caller. For tools that parse foreign
  /// bytes.
  nobody,
  caller,
};

struct ToolCall {
  std::string program;            ///< below /usr/bin
  std::vector<std::string> args;  ///< for descriptors: tool_path()
  std::string package;            ///< the package to install if it is missing
  ToolUser user = ToolUser::nobody;
  std::vector<std::string> env;
  std::vector<int> keep;  ///< descriptors that the tool opens through tool_path()
};

/// The path of one of our descriptors, for a tool.
std::string tool_path(const sys::Fd& fd);

/// Whether a tool with ToolUser::nobody runs as another user than the caller.
bool tools_are_nobody();

/// A running tool: without capabilities, and unable to gain privileges.
class Tool {
 public:
  /// `in`, `out`: the tool's standard input and output; null means /dev/null.
  /// Errors: not_found (the hint names the package), io.
  static Result<Tool> start(const ToolCall& call, const sys::Fd* in, const sys::Fd* out);
  /// Waits for the end of the tool.  Errors: corrupt (the tool failed; the error has its last
  /// output).
  Result<void> finish();

 private:
  std::string name_;
  sys::Process process_;
  sys::Fd words_;
};

}  // namespace berth::transfer
