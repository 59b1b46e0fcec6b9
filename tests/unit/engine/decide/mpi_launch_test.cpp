// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/mpi_launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::engine {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;
using ModeKind = NamespaceMode::Kind;

class Heard : public Log {
 public:
  void debug(const std::string&) override {}
  void warn(const std::string& text) override { warnings.emplace_back(text); }
  std::vector<std::string> warnings;
};

const std::vector<std::string> kMpirun = {
    "HOME=/home/me",
    "OMPI_COMM_WORLD_RANK=0",
    "OMPI_COMM_WORLD_SIZE=2",
    "OMPI_MCA_orte_top_session_dir=/tmp/ompi.node.1000",
    "OMPI_MCA_initial_wdir=/home/me",
    "PMIX_RANK=0",
    "PMIX_SERVER_TMPDIR=/tmp/ompi.node.1000/pid.7",
    "PMIX_SYSTEM_TMPDIR=/tmp",
    "PMIX_DSTORE_21_BASE_PATH=/tmp/ompi.node.1000/pid.7/store",
    "UCX_TLS=rc,sm",
    "UCX_MODULE_DIR=/opt/ucx/lib/ucx",
    "PMIX_MCA_mca_base_component_path=/opt/pmix/lib/pmix"};

struct Joined {
  RunRequest request;
  RunCall call;
  std::vector<std::string> warnings;
  Result<void> done;
};
Joined joined(std::vector<std::string> environment, const MpiFlags& flags,
              Identity identity = Identity::root, RunRequest request = {},
              const NetworkFlags& network = {}) {
  Heard heard;
  Context context{Paths{}, identity, Environment(std::move(environment)), heard};
  Joined out{std::move(request), {}, {}, {}};
  out.done = join_launcher(context, flags, network, out.request, out.call);
  out.warnings = heard.warnings;
  return out;
}

TEST(Launcher, is_known_by_the_variables_of_its_ranks) {
  auto launcher = [](std::vector<std::string> environment) {
    auto found = launcher_of(Environment(std::move(environment)));
    return found
               ? found->name + " " + std::to_string(found->rank) + "/" + std::to_string(found->size)
               : "none";
  };
  EXPECT_EQ(launcher(kMpirun), "Open MPI 0/2");
  EXPECT_EQ(launcher({"PMI_RANK=3", "PMI_SIZE=4"}), "PMI 3/4");
  EXPECT_EQ(launcher({"PMIX_RANK=1", "SLURM_STEP_NUM_TASKS=8"}), "PMIx 1/8");
  EXPECT_EQ(launcher({"PMI_RANK=zero"}), "none");
  EXPECT_EQ(launcher({}), "none");
}

/// "slurm 8 pmi pmix"; "none": this is not a launch of several.
std::string launch(const std::vector<std::string>& entries) {
  auto found = launch_of(Environment(entries));
  if (!found) return "none";
  return std::string(found->slurm ? "slurm " : "mpirun ") + std::to_string(found->ranks) +
         (found->offers.pmi ? " pmi" : "") + (found->offers.pmix ? " pmix" : "") +
         (found->unordered ? " unordered" : "");
}

TEST(LaunchOf, tells_steps_of_slurm_from_mpiruns_and_what_they_offer) {
  EXPECT_EQ(launch({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=8"}), "slurm 8");
  EXPECT_EQ(launch({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=8", "PMI_RANK=1", "PMI_SIZE=8"}),
            "slurm 8 pmi");
  EXPECT_EQ(launch({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=8", "PMIX_SERVER_TMPDIR=/x"}),
            "slurm 8 pmix");
  EXPECT_EQ(launch({"OMPI_COMM_WORLD_SIZE=4", "PMIX_NAMESPACE=1", "PMIX_RANK=0"}), "mpirun 4 pmix");
  EXPECT_EQ(launch({"PMI_FD=8", "PMI_SIZE=4"}), "mpirun 4 pmi");
  EXPECT_EQ(launch({"SLURM_STEP_ID=1", "SLURM_STEP_NUM_TASKS=2", "PMI_FD=8", "PMI_SIZE=4"}),
            "mpirun 4 pmi")
      << "started by an mpiexec whose proxies are a step";
}

TEST(LaunchOf, tells_where_the_ranks_of_a_node_are_not_in_order) {
  auto of = [](const std::string& rank, const std::string& on_node, const std::string& there) {
    return launch({"OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=" + rank,
                   "OMPI_COMM_WORLD_LOCAL_RANK=" + on_node, "OMPI_COMM_WORLD_LOCAL_SIZE=" + there});
  };
  EXPECT_EQ(of("1", "1", "4"), "mpirun 4");
  EXPECT_EQ(of("1", "2", "4"), "mpirun 4 unordered");
  EXPECT_EQ(of("2", "1", "4"), "mpirun 4 unordered");
  EXPECT_EQ(of("2", "1", "2"), "mpirun 4") << "of two nodes in turns";
  EXPECT_EQ(of("0", "1", "2"), "mpirun 4 unordered");
  EXPECT_EQ(of("1", "", "4"), "mpirun 4");
}

TEST(Mpi, tells_open_mpi_4_that_the_mpirun_of_5_has_launched_it) {
  auto daemon = Contains(StartsWith("OMPI_MCA_orte_local_daemon_uri="));
  std::vector<std::string> started = {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"};
  EXPECT_THAT(joined(started, {"image", ""}).request.environment, Not(daemon));
  started.emplace_back("PRTE_LAUNCHED=1");
  EXPECT_THAT(joined(started, {"image", ""}).request.environment, daemon);
}

TEST(LaunchOf, is_none_of_one_process_and_in_a_batch_script) {
  EXPECT_EQ(launch({}), "none");
  EXPECT_EQ(launch({"SLURM_STEP_ID=0", "SLURM_STEP_NUM_TASKS=1"}), "none");
  EXPECT_EQ(launch({"SLURM_STEP_ID=4294967291", "SLURM_STEP_NUM_TASKS=8"}), "none");
  EXPECT_EQ(launch({"SLURM_JOB_ID=7", "SLURM_NTASKS=8"}), "none");
  EXPECT_EQ(launch({"FLUX_JOB_ID=f1", "PMI_FD=8", "PMI_SIZE=4"}), "none")
      << "it has ways of its own";
}

TEST(Mpi, is_none_unless_a_flag_or_a_variable_says_so) {
  EXPECT_FALSE(joined({}, {}).request.mpi);
  EXPECT_FALSE(joined({}, {"none", ""}).request.mpi);
  EXPECT_EQ(joined({"BERTH_MPI=host"}, {}).request.mpi->mode, MpiMode::host);
  EXPECT_FALSE(joined({"BERTH_MPI=host"}, {"none", ""}).request.mpi);
  auto said = joined({"LD_LIBRARY_PATH=/opt/mpi/lib"}, {"auto", "full"}).request.mpi;
  EXPECT_EQ(said, (MpiRequest{MpiMode::automatic, mpi::Rule::full, "/opt/mpi/lib", ""}));
}

TEST(Mpi, refuses_words_that_it_does_not_know) {
  auto wrong = joined({"BERTH_MPI=yes"}, {});
  ASSERT_FALSE(wrong.done.ok());
  EXPECT_EQ(to_line(wrong.done.error()),
            "BERTH_MPI: expected 'auto', 'host', 'image' or 'none', got 'yes'");
  EXPECT_FALSE(joined({}, {"", "strict"}).done.ok());
  EXPECT_FALSE(joined({}, {"auto", "loose"}).done.ok());
}

TEST(Mpi, without_it_nothing_of_a_rank_reaches_the_container_and_rank_0_says_so) {
  Joined out = joined(kMpirun, {});
  EXPECT_EQ(out.request, RunRequest());
  EXPECT_THAT(out.warnings, ElementsAre("this is one of 2 ranks of Open MPI, which its container "
                                        "cannot know without --mpi, ignoring"));
  EXPECT_THAT(joined(kMpirun, {"none", ""}).warnings, IsEmpty());
  EXPECT_THAT(joined({"PMI_RANK=1", "PMI_SIZE=2"}, {}).warnings, IsEmpty());
  EXPECT_THAT(joined({"PMI_RANK=0", "PMI_SIZE=1"}, {}).warnings, IsEmpty());
}

TEST(Mpi, shares_the_nodes_namespaces_in_which_no_flag_says_anything_else) {
  RunRequest plain = joined({}, {"image", ""}).request;
  EXPECT_EQ(plain.network, Network::host);
  EXPECT_EQ(plain.pid.kind, ModeKind::host);
  EXPECT_EQ(plain.ipc.kind, ModeKind::host);
  EXPECT_EQ(plain.uts.kind, ModeKind::host);
  EXPECT_EQ(plain.userns.kind, ModeKind::usual);
  RunRequest own;
  own.pid.kind = own.ipc.kind = ModeKind::own;
  own.hostname = "box";
  own.network = Network::none;
  RunRequest kept = joined({}, {"image", ""}, Identity::root, own, {"none"}).request;
  EXPECT_EQ(kept.network, Network::none);
  EXPECT_EQ(kept.pid.kind, ModeKind::own);
  EXPECT_EQ(kept.ipc.kind, ModeKind::own);
  EXPECT_EQ(kept.uts.kind, ModeKind::usual);
}

TEST(Mpi, gives_an_ordinary_user_his_own_id_which_pmix_asks_for) {
  RunRequest request = joined({}, {"auto", ""}, Identity::mapped).request;
  EXPECT_EQ(request.userns.kind, ModeKind::keep_id);
  EXPECT_THAT(request.group_add, ElementsAre("keep-groups"));
  RunRequest named;
  named.user = "33";
  EXPECT_EQ(joined({}, {"auto", ""}, Identity::mapped, named).request.userns.kind, ModeKind::usual);
}

TEST(Mpi, passes_what_a_rank_needs_below_what_was_typed) {
  RunRequest typed;
  typed.environment = {"UCX_TLS=tcp"};
  auto variables = joined(kMpirun, {"image", ""}, Identity::root, typed).request.environment;
  EXPECT_EQ(variables.back(), "UCX_TLS=tcp");
  EXPECT_THAT(variables, Contains("OMPI_COMM_WORLD_RANK=0"));
  EXPECT_THAT(variables, Contains("UCX_TLS=rc,sm"));
  for (const std::string& entry : variables) {
    EXPECT_FALSE(entry.starts_with("HOME=") || entry.starts_with("UCX_MODULE_DIR=") ||
                 entry.starts_with("OMPI_MCA_initial_wdir=") ||
                 entry.starts_with("PMIX_MCA_mca_base_component_path="))
        << entry;
  }
}

TEST(Mpi, turns_off_what_ranks_in_user_namespaces_of_their_own_cannot_do) {
  const std::string off = "OMPI_MCA_btl_vader_single_copy_mechanism=none";
  EXPECT_THAT(joined(kMpirun, {"image", ""}, Identity::mapped).request.environment, Contains(off));
  EXPECT_THAT(joined(kMpirun, {"image", ""}, Identity::root).request.environment,
              Not(Contains(off)));
  EXPECT_THAT(joined({}, {"image", ""}, Identity::mapped).request.environment, IsEmpty());
}

TEST(Mpi, meets_where_the_launcher_says_but_never_in_everybodys_directory) {
  EXPECT_THAT(meeting_paths(Environment(kMpirun)), ElementsAre("/tmp/ompi.node.1000"));
  auto paths = [](const std::string& path) {
    return meeting_paths(Environment({"PMIX_SERVER_TMPDIR=" + path}));
  };
  EXPECT_THAT(paths("/var/spool/slurmd/pmix.1.0/"), ElementsAre("/var/spool/slurmd/pmix.1.0"));
  for (const char* path : {"", "/", "/tmp", "/tmp/", "/var/tmp", "relative/x", "/tmp/../etc",
                           "/tmp/x/..", "//etc/x", "/dev/shm"}) {
    EXPECT_THAT(paths(path), IsEmpty()) << path;
  }
}

TEST(Mpi, knows_where_slurms_pmix_has_ranks_meet) {
  EXPECT_THAT(meeting_paths(Environment({"SLURM_JOB_ID=12", "SLURM_STEP_ID=0", "SLURM_JOB_UID=1000",
                                         "TMPDIR=/scratch/me/"})),
              ElementsAre("/scratch/me/spmix_appdir_12.0", "/scratch/me/spmix_appdir_1000_12.0"));
  EXPECT_THAT(meeting_paths(Environment({"SLURM_JOB_ID=12"})), IsEmpty());
}

TEST(Mpi, passes_no_descriptor_but_a_launchers_socket) {
  // Descriptor 0 to 2 are the container's anyway, and nothing is open at the others.
  for (const char* text : {"0", "2", "-1", "999", "99999", "x"}) {
    Joined out = joined({"PMI_RANK=0", std::string("PMI_FD=") + text}, {"image", ""});
    EXPECT_FALSE(out.call.pmi_descriptor) << text;
    ASSERT_THAT(out.warnings, SizeIs(1));
    EXPECT_THAT(out.warnings[0], HasSubstr("is not a launcher's socket"));
    EXPECT_THAT(out.request.environment, ElementsAre("PMI_RANK=0"));
  }
}

}  // namespace
}  // namespace berth::engine
