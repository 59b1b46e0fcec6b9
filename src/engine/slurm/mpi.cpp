// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/mpi.hpp"

#include <sys/stat.h>

#include <optional>
#include <string>

#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

/// What the node's PMIx says of itself, and what the image's is told by.
constexpr struct {
  const char* said;
  const char* told;
} kModules[] = {{"PMIX_PTL_MODULE", "PMIX_MCA_ptl"},
                {"PMIX_SECURITY_MODE", "PMIX_MCA_psec"},
                {"PMIX_GDS_MODULE", "PMIX_MCA_gds"}};

/// Whose directory it is; nothing where there is none, or a link to one.
std::optional<uid_t> owner_of(const std::string& directory) {
  auto found = sys::stat_entry(sys::cwd(), directory);
  if (!found.ok() || !*found || !S_ISDIR((*found)->st_mode)) return std::nullopt;
  return (*found)->st_uid;
}

void add_directory(const std::string& path, RunRequest& request) {
  Volume volume;
  volume.source = path;
  volume.destination = path;
  request.volumes.push_back(std::move(volume));
}

/// The ranks' own: Open MPI keeps its session there. `step` is "12.0". The variable is srun's;
/// without it Slurm takes its TmpFS, which is /tmp unless slurm.conf has another, and that one
/// nobody tells us: Open MPI then makes the directory itself, in the container.
void add_ranks_directory(const Environment& job, const std::string& step, RunRequest& request) {
  std::string base(job.get_filled("SLURM_PMIX_TMPDIR").value_or("/tmp"));
  if (!base.starts_with('/')) return;
  std::string user(job.get("SLURM_JOB_UID").value_or(""));
  for (const std::string& name : {user + "_" + step, step}) {  // older releases leave the user out
    std::string path = base + "/spmix_appdir_" + name;
    // In /tmp anybody could have put it there.
    if (owner_of(path) != sys::effective_uid()) continue;
    add_directory(path, request);
    return;
  }
}

}  // namespace

void add_pmix(const Environment& job, RunRequest& request) {
  std::string server(job.get_filled("PMIX_SERVER_TMPDIR").value_or(""));
  while (server.ends_with('/')) server.pop_back();
  // SPOOL/pmix.JOB.STEP; what mpirun says to its ranks looks otherwise.
  std::string name = server.substr(server.rfind('/') + 1);
  if (!server.starts_with('/') || !name.starts_with("pmix.")) return;
  if (owner_of(server)) add_directory(server, request);
  add_ranks_directory(job, name.substr(name.find('.') + 1), request);
  for (const auto& [said, told] : kModules) {
    auto modules = job.get_filled(said);
    if (!modules || job.get_filled(told)) continue;
    request.environment.push_back(std::string(told) + "=" + std::string(*modules));
  }
}

}  // namespace berth::engine
