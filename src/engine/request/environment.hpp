// SPDX-License-Identifier: Apache-2.0
// The environment variables of a container's process. If a name has several values, the last one in
// this order wins. A bare "NAME" takes the value from the caller's environment; if the caller has
// none, it removes the variable.
//
//   1. Defaults: PATH, HOSTNAME, and TERM if there is a terminal.
//   2. The image's config.
//   3. The site's rules (SiteShare::environment): env-unset, env-default, env. An env-default
//      counts only if neither 2 nor 4 names the variable.
//   4. The request (RunRequest::environment), assembled in this order:
//        an environment file, --environment: expand_variables() (engine/decide/resolve.cpp)
//        the launcher, with --mpi: join_launcher() (engine/decide/resolve.cpp)
//        --env-file, then --env: read_entries() (cli/berth/request_flags.cpp); in a Slurm step,
//        the variables that the plugin passes on
//        a task's own variables (Asked::fallback_environment), if neither 2 nor the rest of 4 names
//        them
//   5. The site's env-force (SiteShare::forced_environment).
//   6. HOME of the container's user, if nothing above sets HOME.
//   7. add_gpus(): removes a GPU selection of the job that does not apply here; sets the variables
//      of the granted GPUs, of CDI devices and of MPS.
//
// make_environment() does 1 to 6, with environment_of() for 3 to 5. request.json keeps 3 to 5 for
// the next start. `exec` (engine/run/exec.cpp) begins with the result of 7, and adds HOME with -u,
// TERM with -t, --env-file and --env in this order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// The "K" of "K=V" or of "K".
std::string_view variable_name(std::string_view entry);

/// Whether an entry "NAME=value" sets HOME.
bool names_home(const std::vector<std::string>& environment);

/// The caller's values, as "NAME=value", for the bare names in `environment`.
std::vector<std::string> inherited_variables(const std::vector<std::string>& environment,
                                             const Environment& caller);

/// The entries of the site, those of the request, and the forced ones of the site, in this order. A
/// bare name that was not inherited removes the variable.
std::vector<std::string> environment_of(const RunRequest& request);
/// The same without the NVIDIA_VISIBLE_DEVICES of the site.
std::vector<std::string> without_site_selection(const RunRequest& request);

struct EnvironmentInputs {
  const std::vector<std::string>& image;    ///< "K=V", from the image's config
  const std::vector<std::string>& request;  ///< "K=V", or "K" for an inherited value
  const Environment& inherited;             ///< the values of inherited names
  std::string_view hostname;
  std::string_view home;  ///< of the container's user
  bool terminal = false;
};

/// The variables of the process, in docker's order: defaults, those of the image, those of the
/// request, HOME.
/// Errors: usage (an entry of the request without a name).
Result<std::vector<std::string>> make_environment(const EnvironmentInputs& inputs);

/// The entries of the --env-file at `path`.
/// Errors: those of opening the file, and of parse_env_file().
Result<std::vector<std::string>> read_env_file(const std::string& path);

/// The entries of an --env-file: blank lines and those starting with '#' are dropped, "K" stays
/// "K".
/// `file`: the name of the file for errors.
/// Errors: usage (a line without a name, or with a blank in the name).
Result<std::vector<std::string>> parse_env_file(std::string_view contents, std::string_view file);

}  // namespace berth::engine
