// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context.hpp"
#include "engine/transfer.hpp"
#include "engine/volume.hpp"
#include "gpu/grant/sources.hpp"

namespace berth::engine {

enum class Network { none, host };
enum class PullPolicy { missing, always, never };

/// `berth run` after its flags were read; the members are named as the flags.
struct RunRequest {
  std::string image;
  std::vector<std::string> command;  ///< empty: the image's

  bool remove = false;
  bool interactive = false;
  bool terminal = false;
  bool detach = false;
  bool read_only = false;

  std::optional<std::string> name;
  std::optional<std::string> hostname;
  std::optional<std::string> user;  ///< "uid", "name", "uid:gid", "name:group"
  std::optional<std::string> workdir;
  /// None: the image's. An empty string clears it.
  std::optional<std::string> entrypoint;
  /// "K=V", or "K" for the caller's value; later entries win. Env-file lines come first.
  std::vector<std::string> environment;
  std::vector<Volume> volumes;
  std::vector<Tmpfs> tmpfs;
  Network network = Network::none;
  PullPolicy pull = PullPolicy::missing;

  // As docker does, 0 means no limit.
  std::optional<uint64_t> memory_bytes;
  std::optional<uint64_t> cpu_quota_millis;      ///< thousandths of a CPU: 1500 for --cpus 1.5
  std::optional<int64_t> pids_limit;             ///< -1: no limit
  std::optional<uint64_t> shm_bytes;             ///< of /dev/shm; none or 0: 64 MiB
  std::optional<std::string> gpus;               ///< the text of --gpus
  std::optional<policy::DriverMode> gpu_driver;  ///< none: the policy's
  std::vector<std::string> devices;              ///< CDI names of --device
  gpu::Program program = gpu::Program::berth;    ///< what the user called

  std::optional<int> stop_signal;  ///< none: the image's, else TERM

  image::RegistryAccess registry;  ///< for a pull
  bool quiet = false;              ///< no layer events of a pull
};

/// How a run ended.
struct RunOutcome {
  std::string id;  ///< 64 hex digits
  /// Of a foreground container: its exit status, 128 + n for a signal. 0 when detached.
  int status = 0;
  /// Set when the command could not be started: `status` is then 126 or 127.
  std::optional<Error> command_error;
  /// Set when a standard stream could not be passed on to its end, as on a full disk.
  std::optional<Error> stream_error;
};

/// Pulls the image if it has to, makes the container and starts it. In the foreground it returns
/// when the container has ended; signals that other processes send to this one are passed on.
/// Detached it returns when the command runs.
/// On failure nothing of the container is left.
/// Errors: not_found (image, user, working directory), exists (the name), usage, denied,
/// unsupported, and those of pulling and of berth-runtime.
Result<RunOutcome> run(const Context& context, const RunRequest& request, const Progress& progress);

/// The lines of an --env-file: blank lines and those starting with '#' are dropped, "K" stays "K".
/// Errors: usage (a line that has no name, or a blank in its name).
Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file);

/// "1.5" → 1500, "0" → 0. Errors: usage (not a number with at most three decimals, or below 0.01).
Result<uint64_t> parse_cpus(std::string_view text);

/// "9", "KILL", "SIGKILL", "sigkill", "RTMIN+3".  Errors: usage.
Result<int> parse_signal(std::string_view text);

}  // namespace berth::engine
