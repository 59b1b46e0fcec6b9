// SPDX-License-Identifier: Apache-2.0
// The environment variables of a container's process. Of two values for a name, the later in this
// order wins; a bare "NAME" has the caller's value, and removes the variable without one.
//
//   1. Defaults: PATH, HOSTNAME, and TERM if there is a terminal.
//   2. The image's config.
//   3. The site's rules (SiteShare::environment): env-unset, env-default, env. An env-default
//      counts only if neither the image nor 4 names the variable.
//   4. The request (RunRequest::environment), which resolve() puts together from:
//        an environment file, --environment: expand_variables()
//        the launcher, with --mpi: join_launcher()
//        --env-file, then --env; in a Slurm step, what the plugin passes on
//        a task's own variables (Asked::fallback_environment), if neither 2 nor the rest of 4 names
//        them
//   5. The site's env-force (SiteShare::forced_environment).
//   6. HOME of the container's user, if nothing above sets HOME.
//   7. add_gpus(): removes the job's selection of GPUs that does not count here; sets the variables
//      of the granted GPUs, of CDI devices and of MPS.
//
// make_environment() does 1 to 6, with environment_of() for 3 to 5. request.json keeps 3 to 5 for
// the next start. `exec` (engine/run/exec.cpp) starts from the result of 7, then come HOME with -u,
// TERM with -t, --env-file and --env.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// K of "K=V" or "K".
std::string_view variable_name(std::string_view entry);

/// Whether one of the entries "NAME=value" sets HOME.
bool names_home(const std::vector<std::string>& environment);

/// The caller's values for the names in `environment` that have none: "NAME=value".
std::vector<std::string> inherited_variables(const std::vector<std::string>& environment,
                                             const Environment& caller);

/// The site's entries, the request's, and the site's forced entries, in this order. A name without
/// a value removes the variable if it was not inherited.
std::vector<std::string> environment_of(const RunRequest& request);
/// The same without the site's NVIDIA_VISIBLE_DEVICES.
std::vector<std::string> without_site_selection(const RunRequest& request);

struct EnvironmentInputs {
  const std::vector<std::string>& image;    ///< "K=V" from the image's config
  const std::vector<std::string>& request;  ///< "K=V", or "K" for an inherited value
  const Environment& inherited;             ///< the values for these names
  std::string_view hostname;
  std::string_view home;  ///< of the container's user
  bool terminal = false;
};

/// The variables of the process, as docker orders them: defaults, the image's, the request's, HOME.
/// Errors: usage (an entry of the request without a name).
Result<std::vector<std::string>> make_environment(const EnvironmentInputs& inputs);

/// The entries of the --env-file at `path`.
/// Errors: those of opening the file, and of parse_env_file().
Result<std::vector<std::string>> read_env_file(const std::string& path);

/// The entries of an --env-file: blank lines and those starting with '#' are dropped, "K" stays
/// "K".
/// `file`: its name in errors.
/// Errors: usage (a line that has no name, or a blank in its name).
Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file);

}  // namespace berth::engine
