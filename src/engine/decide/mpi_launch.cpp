// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/mpi_launch.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "sys/fd/fd.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::engine {
namespace {

using ModeKind = NamespaceMode::Kind;

constexpr const char* kDescriptor = "PMI_FD";

std::optional<uint64_t> number_of(const Environment& environment, const char* name) {
  auto text = environment.get_filled(name);
  return text ? parse_u64(*text) : std::nullopt;
}

/// How the variables begin that a rank gets from the caller: those of launchers, and settings of
/// MPIs and fabrics.
constexpr std::array<std::string_view, 18> kPassed = {
    "PMI_", "PMIX_",  "OMPI_", "PRTE_",  "ORTE_", "MPI_LOCAL", "MPIR_CVAR_", "MPICH_", "MPIEXEC_",
    "MV2_", "I_MPI_", "PALS_", "SLURM_", "FLUX_", "UCX_",      "FI_",        "PSM2_",  "HFI_"};
/// Variables that are not passed on: paths in the host's installations, and a descriptor.
constexpr std::array<std::string_view, 8> kKeptBack = {"I_MPI_ROOT",
                                                       "FI_PROVIDER_PATH",
                                                       "UCX_MODULE_DIR",
                                                       "PMIX_INSTALL_PREFIX",
                                                       "OMPI_MCA_mca_base_component_path",
                                                       "PMIX_MCA_mca_base_component_path",
                                                       "OMPI_MCA_initial_wdir",
                                                       "PMI_FD"};

bool is_passed(std::string_view name) {
  bool named = std::ranges::any_of(
      kPassed, [&](std::string_view prefix) { return name.starts_with(prefix); });
  return named && std::ranges::find(kKeptBack, name) == kKeptBack.end();
}

/// Variables with the paths of Open MPI's session, of PMIx's rendezvous and shared-file stores, and
/// of Slurm's plugin. Outer directories come first: a path below one of them needs no volume.
constexpr std::array kMeetingPlaces = {"OMPI_MCA_orte_top_session_dir",
                                       "OMPI_MCA_orte_jobfam_session_dir",
                                       "OMPI_FILE_LOCATION",
                                       "PMIX_SERVER_TMPDIR",
                                       "PMIX_SYSTEM_TMPDIR",
                                       "PMIX_DSTORE_21_BASE_PATH",
                                       "PMIX_DSTORE_ESH_BASE_PATH"};

/// "/", "/tmp", "/var/tmp": shared by all users, so not a directory of one job.
bool is_everybodys(std::string_view path) {
  auto slashes = std::ranges::count(path, '/');
  return slashes < 2 || path == "/var/tmp" || path == "/dev/shm" || path == "/run/user";
}

/// The session directory of Slurm's PMIx plugin. The plugin reports it to the ranks, but in no
/// variable. Source: Slurm, src/plugins/mpi/pmix/pmixp_info.c; in older versions the path does not
/// contain the user.
std::vector<std::string> places_of_slurm(const Environment& environment) {
  auto job = environment.get_filled("SLURM_JOB_ID"), step = environment.get_filled("SLURM_STEP_ID");
  if (!job || !step) return {};
  std::string parent(environment.get_filled("SLURM_PMIX_TMPDIR")
                         .value_or(environment.get_filled("TMPDIR").value_or("/tmp")));
  while (parent.size() > 1 && parent.ends_with('/')) parent.pop_back();
  std::string name = std::string(*job) + "." + std::string(*step);
  std::vector<std::string> out = {parent + "/spmix_appdir_" + name};
  if (auto user = environment.get_filled("SLURM_JOB_UID")) {
    out.push_back(parent + "/spmix_appdir_" + std::string(*user) + "_" + name);
  }
  return out;
}

bool is_plain_path(std::string_view path) {
  if (!path.starts_with('/') || path.ends_with("/..") || path.ends_with("/.")) return false;
  return path.find("/../") == path.npos && path.find("/./") == path.npos &&
         path.find("//") == path.npos;
}

bool is_socket(int number) {
  sys::Fd borrowed(number);
  auto info = sys::stat_fd(borrowed, kDescriptor);
  borrowed.release();
  return info.ok() && S_ISSOCK(info->st_mode);
}

/// MPICH's ranks find each other through sockets that the launcher makes, one for each rank. Passes
/// no other open file of this process into a container: all of ours close on exec, and a descriptor
/// that is not a socket is not the launcher's.
void pass_descriptor(const Context& context, std::vector<std::string>& variables, RunCall& call) {
  auto text = context.environment.get_filled(kDescriptor);
  if (!text) return;
  auto number = parse_u64(*text);
  bool usable = number && *number > 2 && *number < 65536 &&
                sys::is_inherited(static_cast<int>(*number)) &&
                is_socket(static_cast<int>(*number));
  if (!usable) {
    context.log.warn("PMI_FD=" + escape_controls(*text) + " is not a launcher's socket, ignoring");
    return;
  }
  call.pmi_descriptor = static_cast<int>(*number);
  variables.push_back(std::string(kDescriptor) + "=" + std::to_string(kPmiDescriptor));
}

/// Ranks in separate user namespaces cannot read each other's memory (cross-memory attach, CMA),
/// nor open each other's descriptors through /proc (docs/mpi.md): Open MPI would try, and report a
/// failure for each pair; UCX would abort. With CMA off, UCX uses TCP for large messages. Its put
/// operation is turned off too, because MPICH 4.0 with UCX 1.13 sometimes hangs with it, even
/// outside containers.
void turn_off_cma(const Environment& environment, std::vector<std::string>& variables) {
  constexpr std::array<std::pair<const char*, const char*>, 5> kOff = {
      {{"OMPI_MCA_btl_vader_single_copy_mechanism", "none"},
       {"OMPI_MCA_smsc", "^cma"},
       {"UCX_TLS", "^cma"},
       {"UCX_POSIX_USE_PROC_LINK", "n"},
       {"UCX_TCP_PUT_ENABLE", "n"}}};
  for (const auto& [name, value] : kOff) {
    if (!environment.get(name)) variables.push_back(std::string(name) + "=" + value);
  }
}

/// Open MPI 4 treats a rank without a daemon's address as not launched, although it never contacts
/// the daemon: all communication uses PMIx. The mpirun of Open MPI 5 has no such daemon and does
/// not set the variable. Source: Open MPI 4.1, orte/mca/schizo/orte, check_launch_environment().
void name_a_daemon(const Environment& environment, std::vector<std::string>& variables) {
  const std::string name = "OMPI_MCA_orte_local_daemon_uri";
  if (!environment.get("PRTE_LAUNCHED") || environment.get(name)) return;
  variables.push_back(name + "=0.0;tcp://127.0.0.1:9");
}

/// The caller's variables that a rank needs, "NAME=value": the launcher's, and settings of MPIs and
/// fabrics except paths of an installation.
std::vector<std::string> rank_variables(const Environment& environment) {
  std::vector<std::string> out;
  for (const std::string& entry : environment.entries()) {
    size_t end = entry.find('=');
    if (end != entry.npos && is_passed(std::string_view(entry).substr(0, end)))
      out.push_back(entry);
  }
  return out;
}

}  // namespace

std::optional<Launcher> launcher_of(const Environment& environment) {
  constexpr struct {
    const char* name;
    const char* rank;
    const char* size;
  } kLaunchers[] = {{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMI", "PMI_RANK", "PMI_SIZE"},
                    {"PMIx", "PMIX_RANK", "SLURM_STEP_NUM_TASKS"}};
  for (const auto& one : kLaunchers) {
    auto rank = number_of(environment, one.rank);
    if (rank) return Launcher{one.name, *rank, number_of(environment, one.size).value_or(0)};
  }
  return std::nullopt;
}

std::optional<mpi::Launch> launch_of(const Environment& environment) {
  mpi::Launch launch;
  auto says_one_of = [&](const auto& names) {
    return std::ranges::any_of(
        names, [&](const char* name) { return environment.get_filled(name).has_value(); });
  };
  constexpr std::array kOfPmi = {kDescriptor, "PMI_PORT", "PMI_RANK", "PALS_RANKID"};
  constexpr std::array kOfPmix = {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"};
  launch.offers.pmi = says_one_of(kOfPmi);
  launch.offers.pmix = says_one_of(kOfPmix);
  // Flux's PMI also serves Open MPI, through a plugin.
  if (environment.get_filled("FLUX_JOB_ID")) return std::nullopt;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    launch.ranks = std::max(launch.ranks, number_of(environment, name).value_or(0));
  }
  // In a batch script SLURM_STEP_ID is not the number of a step, and the script runs as one
  // process.
  constexpr uint64_t kLastStep = 0xfffffff0;
  auto step = number_of(environment, "SLURM_STEP_ID");
  auto tasks = number_of(environment, "SLURM_STEP_NUM_TASKS").value_or(0);
  launch.slurm = step && *step < kLastStep && (launch.ranks == 0 || launch.ranks == tasks);
  if (launch.slurm) launch.ranks = tasks;
  if (launch.ranks < 2) return std::nullopt;
  // A rank's number on its node is at most its rank; they are equal if all ranks are on this node.
  auto rank = number_of(environment, "OMPI_COMM_WORLD_RANK");
  auto on_node = number_of(environment, "OMPI_COMM_WORLD_LOCAL_RANK");
  bool one_node = number_of(environment, "OMPI_COMM_WORLD_LOCAL_SIZE") == launch.ranks;
  launch.unordered = rank && on_node && (*on_node > *rank || (one_node && *on_node != *rank));
  return launch;
}

bool speaks_for_ranks(const Environment& environment) {
  auto launcher = launcher_of(environment);
  return !launcher || launcher->rank == 0;
}

Result<std::optional<MpiRequest>> read_mpi(const MpiFlags& flags, const Environment& environment) {
  std::string mode = flags.mode, source = "--mpi";
  if (mode.empty()) {
    mode = environment.get_filled("BERTH_MPI").value_or("");
    source = "BERTH_MPI";
  }
  bool none = mode.empty() || mode == "none";
  if (none && !flags.compatibility.empty()) {
    return make_error(Kind::usage, "'--mpi-compatibility' needs '--mpi'",
                      "--mpi auto or --mpi host with it");
  }
  if (none) return std::optional<MpiRequest>();
  MpiRequest request;
  request.mode = TRY_CTX(from_json_text(mode, std::type_identity<MpiMode>()), source);
  if (!flags.compatibility.empty()) {
    request.rule =
        TRY_CTX(parse_enum<mpi::Rule>(flags.compatibility, Kind::usage), "--mpi-compatibility");
  }
  request.library_path = environment.get("LD_LIBRARY_PATH").value_or("");
  return std::optional<MpiRequest>(std::move(request));
}

std::vector<std::string> meeting_paths(const Environment& environment) {
  std::vector<std::string> named;
  for (const char* name : kMeetingPlaces) {
    if (auto path = environment.get_filled(name)) named.emplace_back(*path);
  }
  for (std::string& path : places_of_slurm(environment)) named.push_back(std::move(path));
  std::vector<std::string> out;
  for (std::string& path : named) {
    while (path.size() > 1 && path.ends_with('/')) path.pop_back();
    if (!is_plain_path(path) || is_everybodys(path)) continue;
    bool known = std::ranges::any_of(
        out, [&](const std::string& other) { return is_at_or_below(path, other); });
    if (!known) out.push_back(std::move(path));
  }
  return out;
}

void add_meeting_places(const Environment& environment, RunRequest& request) {
  for (std::string& path : meeting_paths(environment)) {
    // A missing path is created later by the launcher, or belongs to another node.
    auto there = sys::stat_entry(sys::cwd(), path);
    if (!there.ok() || !*there || !S_ISDIR((*there)->st_mode)) continue;
    // In /tmp another user could have made the directory.
    bool guessed = path.find("/spmix_appdir_") != path.npos;
    if (guessed && (*there)->st_uid != sys::effective_uid()) continue;
    bool known = std::ranges::any_of(
        request.volumes, [&](const Volume& one) { return is_at_or_below(path, one.destination); });
    if (known) continue;
    Volume volume;
    volume.source = volume.destination = std::move(path);
    volume.must_exist = true;
    request.volumes.push_back(std::move(volume));
  }
}

void share_with_node(const Context& context, const NetworkFlags& network, RunRequest& request) {
  bool said = !network.mode.empty() || !network.publish.empty() || network.publish_all;
  if (!said) request.network = Network::host;
  bool named = request.hostname || request.domainname;
  for (NamespaceMode* mode : {&request.pid, &request.ipc}) {
    if (mode->kind == ModeKind::usual) mode->kind = ModeKind::host;
  }
  if (request.uts.kind == ModeKind::usual && !named) request.uts.kind = ModeKind::host;
  // A launcher's PMIx compares the rank's user with its own.
  bool own_id =
      context.identity != Identity::root && request.userns.kind == ModeKind::usual && !request.user;
  if (!own_id) return;
  request.userns.kind = ModeKind::keep_id;
  if (request.group_add.empty()) request.group_add = {"keep-groups"};
}

Result<void> join_launcher(const Context& context, const MpiFlags& flags,
                           const NetworkFlags& network, RunRequest& request, RunCall& call) {
  request.mpi = TRY(read_mpi(flags, context.environment));
  auto launcher = launcher_of(context.environment);
  if (!request.mpi) {
    bool said = !flags.mode.empty() || context.environment.get_filled("BERTH_MPI");
    if (launcher && launcher->size > 1 && launcher->rank == 0 && !said) {
      context.log.warn("this is one of " + std::to_string(launcher->size) + " ranks of " +
                       launcher->name +
                       ", which its container cannot know without --mpi, ignoring");
    }
    return {};
  }
  share_with_node(context, network, request);
  if (!launcher) return {};
  std::vector<std::string> variables = rank_variables(context.environment);
  pass_descriptor(context, variables, call);
  name_a_daemon(context.environment, variables);
  if (context.identity != Identity::root) turn_off_cma(context.environment, variables);
  // Inserted before the entries of the user, which win.
  request.environment.insert(request.environment.begin(),
                             std::make_move_iterator(variables.begin()),
                             std::make_move_iterator(variables.end()));
  add_meeting_places(context.environment, request);
  return {};
}

}  // namespace berth::engine
