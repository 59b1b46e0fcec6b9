// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/berth/verb.hpp"
#include "engine/request.hpp"

/// The flags that describe a container: those of `run` and `create`.
namespace berth::cli {

/// What the flags fill: members of the request where text is enough, the rest as it was typed.
struct RequestOptions {
  engine::RunRequest request;
  engine::RunCall call;
  std::vector<std::string> environment;
  std::vector<std::string> env_files;
  std::vector<std::string> volumes;
  std::vector<std::string> tmpfs;
  std::string network = "none";
  std::string pull = "missing";
  std::optional<std::string> cpus;
  std::string gpu_driver;
  bool immutable = false;
};

/// The flags, in the order of the help.
void add_request_flags(FlagTable& table, RequestOptions& options);

/// Completes `options.request` and `options.call` by the flags that are more than text;
/// `arguments`: the image and the command. Nothing of the machine is looked at but the files that
/// flags name. Errors: usage, and those of opening such a file.
Result<void> read_request(const Session& session, std::vector<std::string> arguments,
                          RequestOptions& options);

}  // namespace berth::cli
