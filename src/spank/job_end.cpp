// SPDX-License-Identifier: Apache-2.0
#include "spank/job_end.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/text.hpp"
#include "spank/start.hpp"

namespace berth::spank {
namespace {

constexpr const char* kDirectory = "/run/berth-jobs";  // accessible only by root

/// The file name for a job: "12.n1", since several nodes may be on one machine.
std::string note_of(uint32_t job) {
  const char* node = std::getenv("SLURMD_NODENAME");  // slurmd sets it for slurmstepd
  return std::string(kDirectory) + "/" + std::to_string(job) + "." + (node == nullptr ? "" : node);
}

}  // namespace

Result<void> note_job(uint32_t job, const std::vector<std::string>& environment) {
  const std::string path = note_of(job);
  int file = -1;
  // Retry, since the end of another job may remove the directory meanwhile.
  for (int i = 0; i < 10 && file < 0; ++i) {
    if (::mkdir(kDirectory, 0700) != 0 && errno != EEXIST) {
      return errno_now().error(std::string("make directory ") + kDirectory);
    }
    file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0 && errno != ENOENT) break;
  }
  if (file < 0) return errno_now().error("create " + quote(path));
  std::string text;
  for (const std::string& entry : environment) text.append(entry).push_back('\0');
  bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  SavedErrno error = errno_now();
  ::close(file);
  if (!written) return error.error("write " + quote(path));
  return {};
}

Result<void> end_job(const JobEnd& end) {
  const std::string path = note_of(end.job);
  int environment = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (environment < 0 && errno == ENOENT) return {};
  if (environment < 0) return errno_now().error("open " + quote(path));
  Errand errand;
  errand.path = end.program;
  errand.words = {"slurm", "epilog", "--job=" + std::to_string(end.job), "--scope=" + end.scope};
  errand.environment = environment;
  errand.user = end.user;
  errand.group = end.group;
  errand.patience = end.patience;
  Result<void> done = run_errand(errand);
  ::close(environment);
  ::unlink(path.c_str());
  ::rmdir(kDirectory);  // fails if it has files of other jobs
  return done;
}

}  // namespace berth::spank
