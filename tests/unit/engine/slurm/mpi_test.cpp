// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/mpi.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// What Slurm has made for step 12.0 of user 1000.
class SlurmMpi : public testing::Test {
 protected:
  SlurmMpi() {
    fs::create_directories(spool_ / "pmix.12.0");
    fs::create_directories(own_);
  }
  ~SlurmMpi() override { fs::remove_all(root_); }

  RunRequest added(std::vector<std::string> more = {}) {
    std::vector<std::string> job = {"PMIX_SERVER_TMPDIR=" + (spool_ / "pmix.12.0/").string(),
                                    "PMIX_SYSTEM_TMPDIR=/tmp", "SLURM_JOB_UID=1000",
                                    "SLURM_PMIX_TMPDIR=" + own_.string()};
    for (std::string& entry : more) job.insert(job.begin(), std::move(entry));
    RunRequest request;
    add_pmix(Environment(job), request);
    return request;
  }

  static std::vector<std::string> mounts(const RunRequest& request) {
    std::vector<std::string> out;
    for (const Volume& volume : request.volumes) {
      EXPECT_EQ(volume.source, volume.destination);
      EXPECT_FALSE(volume.read_only || volume.must_exist);
      out.push_back(fs::path(volume.source).filename());
    }
    return out;
  }

  fs::path root_ = fs::path(testing::TempDir()) / ("pmix-" + std::to_string(::getpid()));
  fs::path spool_ = root_ / "spool", own_ = root_ / "own";
};

TEST_F(SlurmMpi, the_directories_of_a_pmix_step_are_in_its_container) {
  EXPECT_THAT(mounts(added()), ElementsAre("pmix.12.0"));
  fs::create_directory(own_ / "spmix_appdir_1000_12.0");
  EXPECT_THAT(mounts(added()), ElementsAre("pmix.12.0", "spmix_appdir_1000_12.0"));
}

TEST_F(SlurmMpi, earlier_releases_name_no_user) {
  fs::create_directory(own_ / "spmix_appdir_12.0");
  EXPECT_THAT(mounts(added()), ElementsAre("pmix.12.0", "spmix_appdir_12.0"));
}

TEST_F(SlurmMpi, what_is_missing_is_left_out) {
  fs::remove(spool_ / "pmix.12.0");
  EXPECT_THAT(mounts(added()), IsEmpty());
}

TEST_F(SlurmMpi, a_link_is_not_followed) {
  fs::create_directory_symlink("/", own_ / "spmix_appdir_1000_12.0");
  EXPECT_THAT(mounts(added()), ElementsAre("pmix.12.0"));
}

TEST_F(SlurmMpi, another_users_directory_is_not_taken) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a directory away";
  fs::create_directory(own_ / "spmix_appdir_1000_12.0");
  ASSERT_EQ(::chown((own_ / "spmix_appdir_1000_12.0").c_str(), 4711, 4711), 0);
  EXPECT_THAT(mounts(added()), ElementsAre("pmix.12.0"));
}

TEST_F(SlurmMpi, other_steps_have_nothing_of_it) {
  for (const char* place : {"", "/tmp", "/", "pmix.12.0", "/tmp/ompi.n1.0/pid.7"}) {
    RunRequest request =
        added({std::string("PMIX_SERVER_TMPDIR=") + place, "PMIX_SECURITY_MODE=native"});
    EXPECT_THAT(mounts(request), IsEmpty()) << place;
    EXPECT_THAT(request.environment, IsEmpty()) << place;
  }
}

TEST_F(SlurmMpi, the_image_is_told_how_the_nodes_pmix_speaks) {
  EXPECT_THAT(added({"PMIX_SECURITY_MODE=native", "PMIX_GDS_MODULE=ds21,hash"}).environment,
              ElementsAre("PMIX_MCA_psec=native", "PMIX_MCA_gds=ds21,hash"));
  EXPECT_THAT(
      added({"PMIX_PTL_MODULE=tcp", "PMIX_GDS_MODULE=ds21", "PMIX_MCA_gds=hash"}).environment,
      ElementsAre("PMIX_MCA_ptl=tcp"));
}

}  // namespace
}  // namespace berth::engine
