// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/mpi.hpp"

#include <sys/stat.h>

#include <optional>
#include <string>

#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

/// Pairs of variables: the PMIx of the node names its modules in the first, the PMIx of the image
/// reads the second.
constexpr struct {
  const char* said;
  const char* told;
} kModules[] = {{"PMIX_PTL_MODULE", "PMIX_MCA_ptl"},
                {"PMIX_SECURITY_MODE", "PMIX_MCA_psec"},
                {"PMIX_GDS_MODULE", "PMIX_MCA_gds"}};

/// The owner of a directory; nothing if it does not exist, or is a link.
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

/// Mounts the directory of step "12.0" in which Open MPI keeps its session: spmix_appdir_UID_12.0
/// in SLURM_PMIX_TMPDIR, if srun sets that, else in Slurm's TmpFS. TmpFS is /tmp unless slurm.conf
/// names another directory, which is not known here: then nothing is mounted, and Open MPI makes
/// its directory in the container.
void add_ranks_directory(const Environment& job, const std::string& step, RunRequest& request) {
  std::string base(job.get_filled("SLURM_PMIX_TMPDIR").value_or("/tmp"));
  if (!base.starts_with('/')) return;
  std::string user(job.get("SLURM_JOB_UID").value_or(""));
  for (const std::string& name : {user + "_" + step, step}) {  // older releases leave out the user
    std::string path = base + "/spmix_appdir_" + name;
    // In /tmp another user could have made the directory.
    if (owner_of(path) != sys::effective_uid()) continue;
    add_directory(path, request);
    return;
  }
}

}  // namespace

void add_pmix(const Environment& job, RunRequest& request) {
  std::string server(job.get_filled("PMIX_SERVER_TMPDIR").value_or(""));
  while (server.ends_with('/')) server.pop_back();
  // Slurm sets SPOOL/pmix.JOB.STEP; mpirun sets a different value for its ranks.
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
