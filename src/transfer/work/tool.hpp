// SPDX-License-Identifier: Apache-2.0
// Debian's programs that read or write squashfs, as children without privileges.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::transfer {

/// The user of a tool.
enum class ToolUser {
  /// The machine's root becomes nobody; other users stay. For tools that parse foreign bytes.
  nobody,
  caller,
};

struct ToolCall {
  std::string program;            ///< below /usr/bin
  std::vector<std::string> args;  ///< for descriptors: tool_path()
  std::string package;            ///< the package to install if it is missing
  ToolUser user = ToolUser::nobody;
  std::vector<std::string> env;
  std::vector<int> keep;  ///< descriptors that it opens through tool_path()
};

/// The path of one of our descriptors, for a tool.
std::string tool_path(const sys::Fd& fd);

/// Whether a process of ToolUser::nobody is another user here.
bool tools_are_nobody();

/// A running tool: without capabilities, and unable to gain privileges.
class Tool {
 public:
  /// `in`, `out`: its standard streams; null means /dev/null.
  /// Errors: not_found (with the package in the hint), io.
  static Result<Tool> start(const ToolCall& call, const sys::Fd* in, const sys::Fd* out);
  /// Waits for its end.  Errors: corrupt with its last output if it failed.
  Result<void> finish();

 private:
  std::string name_;
  sys::Process process_;
  sys::Fd words_;
};

}  // namespace berth::transfer
