// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/mpi.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "engine/context/paths.hpp"
#include "engine/decide/mpi_launch.hpp"
#include "engine/gpu/host_devices.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/image/rootfs.hpp"
#include "engine/image/rootfs_driver.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "gpu/place/publish.hpp"
#include "mpi/swap.hpp"
#include "oci/edit.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"
#include "sys/file/file_system.hpp"
#include "sys/file/open_devices.hpp"

namespace berth::engine {
namespace {

constexpr const char* kMpiItem = "mpi";
constexpr const char* kLibraryItem = "mpi-library";
constexpr const char* kVariableItem = "mpi-variable";

/// Variables that name the installation of the image's MPI. If the host's MPI replaces it, they
/// would lead the host's libraries to the image's plugins.
constexpr std::array kOfInstallation = {"OPAL_PREFIX",
                                        "OPAL_LIBDIR",
                                        "OPAL_PKGLIBDIR",
                                        "OPAL_DATADIR",
                                        "OPAL_SYSCONFDIR",
                                        "OMPI_MCA_mca_base_component_path",
                                        "OMPI_MCA_mca_component_path",
                                        "PMIX_INSTALL_PREFIX",
                                        "PMIX_MCA_mca_base_component_path",
                                        "FI_PROVIDER_PATH",
                                        "UCX_MODULE_DIR"};

/// The machine's own files, as a tree to search for libraries.
class HostTree : public scan::Tree {
 public:
  static Result<HostTree> open() { return HostTree(TRY(gpu::DriverRoot::open("/"))); }

  Result<std::optional<File>> find_file(const std::string& path) const override {
    std::optional<File> none;
    auto found = root_.find(path);
    if (!found || !S_ISREG(found->info.st_mode)) return none;
    return std::optional<File>(
        File{std::move(found->host_path), static_cast<uint64_t>(found->info.st_size)});
  }
  Result<std::vector<std::string>> list(const std::string& path) const override {
    auto found = root_.find(path);
    if (!found) return std::vector<std::string>();
    auto names = root_.list(*found);
    return names.ok() ? std::move(names) : std::vector<std::string>();  // no permission to list it
  }
  Result<std::string> read(const File& file, uint64_t offset, size_t length) const override {
    if (open_path_ != file.path) {
      auto found = root_.open_file(file.path);
      if (!found) return std::string();
      open_ = std::move(found->fd);
      open_path_ = file.path;
    }
    return sys::read_at(open_, offset, length, file.path);
  }

 private:
  explicit HostTree(gpu::DriverRoot root) : root_(std::move(root)) {}

  gpu::DriverRoot root_;
  mutable sys::Fd open_;  ///< the last file that was read
  mutable std::string open_path_;
};

/// The value of a variable, given as "PATH="; empty if not set.
std::string variable_of(const oci::Process& process, std::string_view name) {
  for (const std::string& entry : process.env) {
    if (entry.starts_with(name)) return entry.substr(name.size());
  }
  return {};
}

// ---- nodes --------------------------------------------------------------------------------------

/// Device nodes of fabrics: those of InfiniBand verbs, but not of InfiniBand's management; those
/// for shared memory between processes and with GPUs; those of other fabrics.
bool is_of_fabric(std::string_view name) {
  return name == "xpmem" || name == "gdrdrv" || name == "knem" || name.starts_with("cxi") ||
         name.starts_with("hfi1_");
}
bool is_of_verbs(std::string_view name) {
  return name.starts_with("uverbs") || name == "rdma_cm";
}

/// Empty if there is no such directory, or no permission to read it.
Result<std::vector<std::string>> names_below(const std::string& directory) {
  auto opened = sys::open_if_exists(sys::cwd(), directory, O_RDONLY | O_DIRECTORY);
  if (!opened.ok() || !*opened) return std::vector<std::string>();
  return sys::list_directory(**opened, ".");
}

Result<std::vector<HostDevice>> fabric_nodes() {
  std::vector<HostDevice> nodes;
  auto add = [&](const std::string& path) -> Result<void> {
    auto info = TRY(sys::stat_entry(sys::cwd(), path));
    if (info && S_ISCHR(info->st_mode)) nodes.push_back({path, path, "rw"});
    return {};
  };
  for (const std::string& name : TRY(names_below("/dev"))) {
    if (is_of_fabric(name)) TRY(add("/dev/" + name));
  }
  for (const std::string& name : TRY(names_below("/dev/infiniband"))) {
    if (is_of_verbs(name)) TRY(add("/dev/infiniband/" + name));
  }
  return nodes;
}

/// Why this process cannot open a node; empty if it can.
std::string closed(const Context& context, const std::string& path) {
  if (sys::is_denied_by_cgroup(path)) return "the device cgroup of this job denies it";
  bool open =
      context.identity == Identity::root || sys::check_access(sys::cwd(), path, R_OK | W_OK).ok();
  return open ? "" : "this user may not open it";
}

Result<void> add_nodes(const Context& context, oci::Spec& spec, Provenance& provenance) {
  std::vector<HostDevice> usable;
  for (HostDevice& device : TRY(fabric_nodes())) {
    std::string why = closed(context, device.source);
    bool given = why.empty();
    provenance.mpi.push_back(
        {"node", device.source, given, given ? "of the fabric, for MPI" : why, ""});
    if (given) usable.push_back(std::move(device));
  }
  oci::ContainerEdits edits;
  edits.device_nodes = TRY(named_nodes(usable));
  oci::apply(edits, spec);
  return {};
}

// ---- libraries ----------------------------------------------------------------------------------

/// Prepares the files of `decision` in the state directory, and mounts them in the container.
class Placer {
 public:
  Placer(const Context& context, const mpi::Decision& decision)
      : state_path_(context.paths.state + "/mpi"), decision_(decision) {}

  Result<void> run(oci::Spec& spec) {
    TRY(sys::make_directories(sys::cwd(), state_path_, 0700));
    state_ = TRY(sys::open_at(sys::cwd(), state_path_, O_RDONLY | O_DIRECTORY));
    TRY(place_skeleton());
    place_libraries();
    for (const std::string& directory : decision_.directories) bind(directory, directory);
    add_lowest_layer(TRY(mountpoints()), spec);
    oci::apply(edits_, spec);
    return {};
  }

 private:
  Result<void> place_skeleton();
  void place_libraries();
  Result<std::string> mountpoints();

  void bind(std::string source, std::string destination) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = std::move(source);
    mount.destination = std::move(destination);
    mount.options = {"bind", "ro", "nosuid", "nodev"};
    edits_.mounts.push_back(std::move(mount));
  }

  std::string state_path_;
  const mpi::Decision& decision_;
  sys::Fd state_;
  oci::ContainerEdits edits_;
};

/// Creates an empty file as bind target for each library, and a link for each of its other names:
/// the same layout as the driver's directory (docs/decisions/0006).
Result<void> Placer::place_skeleton() {
  std::string content = "skeleton\n";
  for (const mpi::Brought& one : decision_.libraries) content += join(one.names, "\t") + "\n";
  auto fill = [&](const sys::Fd& directory) -> Result<void> {
    std::set<std::string> made;
    TRY(gpu::make_parents(directory, "lib/", made));
    for (const mpi::Brought& one : decision_.libraries) {
      TRY(sys::write_file(directory, "lib/" + one.names[0], "", 0444));
      for (size_t i = 1; i < one.names.size(); ++i) {
        TRY(sys::make_symlink(one.names[0], directory, "lib/" + one.names[i]));
      }
    }
    return {};
  };
  std::string name = "mpi-" + gpu::key_of_text(content);
  TRY_CTX(gpu::publish_directory(state_, name, fill), "cannot prepare the directory of MPI");
  bind(state_path_ + "/" + name, kMpiDirectory);
  return {};
}

void Placer::place_libraries() {
  const std::string directory = std::string(kMpiDirectory) + "/lib/";
  int32_t flags =
      scan::loader_flags(scan::ElfClass::elf64, scan::LoaderSettings().machine).value_or(0);
  for (const mpi::Brought& one : decision_.libraries) {
    bind(one.host_path, directory + one.names[0]);
    for (const std::string& name : one.names) {
      edits_.loader_entries.push_back({name, directory + name, flags});
    }
    // Through an RPATH or LD_LIBRARY_PATH, the loader finds the image's own files before it reads
    // its cache, so mount over these too.
    for (const std::string& over : one.over) bind(one.host_path, over);
  }
}

/// Mount points that the image may lack, as a layer below all others: creating them in the
/// container's own layer would copy up the directories above.
Result<std::string> Placer::mountpoints() {
  std::vector<std::string> directories = {std::string(kMpiDirectory)};
  directories.insert(directories.end(), decision_.directories.begin(), decision_.directories.end());
  std::string name = "places-" + gpu::key_of_text(join(directories, "\n"));
  auto fill = [&](const sys::Fd& directory) -> Result<void> {
    std::set<std::string> made;
    for (const std::string& one : directories) {
      TRY(gpu::make_parents(directory, one.substr(1) + "/", made));
    }
    return {};
  };
  TRY_CTX(gpu::publish_directory(state_, name, fill), "cannot prepare the mount points of MPI");
  return state_path_ + "/" + name;
}

/// Drops paths at or below a mount, because the files there are not the image's: neither the host's
/// /dev/shm nor a volume may be replaced.
void leave_out_hidden(const oci::Spec& spec, mpi::Decision& decision) {
  std::vector<std::string> places = {"/dev", "/proc", "/sys"};
  for (const oci::Mount& one : spec.mounts) {
    std::string place = std::filesystem::path(one.destination).lexically_normal();
    if (place != "/") places.push_back(std::move(place));
  }
  auto hidden = [&](const std::string& path) {
    return std::ranges::any_of(
        places, [&](const std::string& place) { return is_at_or_below(path, place); });
  };
  std::erase_if(decision.directories, hidden);
  places.insert(places.end(), decision.directories.begin(), decision.directories.end());
  for (mpi::Brought& one : decision.libraries) std::erase_if(one.over, hidden);
}

void withdraw_installation(oci::Spec& spec, Provenance& provenance) {
  std::erase_if(spec.process->env, [&](const std::string& entry) {
    std::string name = entry.substr(0, entry.find('='));
    bool of_it = std::ranges::find(kOfInstallation, name) != kOfInstallation.end();
    if (of_it) {
      provenance.mpi.push_back(
          {kVariableItem, entry, false, "it leads to plugins of an MPI that is replaced", ""});
    }
    return of_it;
  });
}

void keep_notes(const mpi::Decision& decision, Provenance& provenance) {
  for (const mpi::Note& note : decision.notes) {
    const char* kind = note.object.starts_with('/') ? kMpiItem : kLibraryItem;
    provenance.mpi.push_back({kind, note.object, note.given, note.why, note.host_path});
  }
  if (!decision.swapped()) return;
  for (const std::string& directory : decision.directories) {
    provenance.mpi.push_back(
        {"mount", directory, true, "plugins and settings of the host's MPI", ""});
  }
}

/// The file of the command, as execvp(3) finds it; empty: not found, or relative.
Result<std::string> program_of(const scan::Tree& tree, const RunRequest& request,
                               const oci::Process& process) {
  size_t first = request.init ? 2 : 0;  // after the init program and "--"
  std::string name = request.mpi->program;
  if (name.empty() && first < process.args.size()) name = process.args[first];
  if (name.starts_with('/')) return name;
  if (name.empty() || name.find('/') != std::string::npos) return std::string();
  const std::string directories = variable_of(process, "PATH=");
  for (std::string_view directory : split(directories, ':')) {
    if (!directory.starts_with('/')) continue;
    std::string path = std::string(directory) + "/" + name;
    if (TRY(tree.find_file(path))) return path;
  }
  return std::string();
}

Result<mpi::Libraries> libraries_of_image(const LayerTree& tree, const oci::Spec& spec) {
  mpi::Places places;
  places.library_path = variable_of(*spec.process, "LD_LIBRARY_PATH=");
  return mpi::Libraries::open(tree, places);
}

Result<mpi::Decision> decide_swap(const ImageLook& look, const oci::Spec& spec,
                                  const MpiRequest& request) {
  LayerTree tree(look.view);
  HostTree host_tree = TRY(HostTree::open());
  mpi::Places on_host;
  on_host.library_path = request.library_path;
  mpi::Libraries image = TRY(libraries_of_image(tree, spec));
  mpi::Libraries host = TRY(mpi::Libraries::open(host_tree, on_host));
  mpi::Question question;
  question.rule = request.rule;
  question.program = TRY(program_of(tree, look.request, *spec.process));
  return mpi::decide(image, host, question);
}

// ---- the launcher -------------------------------------------------------------------------------

/// The MPI that the program of a rank is linked with; nothing if the program is unknown.
Result<std::optional<mpi::Used>> mpi_of_program(const ImageLook& look, const oci::Spec& spec) {
  std::optional<mpi::Used> none;
  LayerTree tree(look.view);
  std::string path = TRY(program_of(tree, look.request, *spec.process));
  if (path.empty()) return none;
  mpi::Libraries libraries = TRY(libraries_of_image(tree, spec));
  const mpi::Library* program = TRY(libraries.at(path));
  if (program == nullptr) return none;
  std::vector<mpi::Installation> found = TRY(mpi::find_mpi_of(libraries, *program));
  if (found.empty()) return none;
  mpi::Used used = TRY(mpi::use_of(libraries, found[0]));
  used.called = mpi::calls_mpi(*program);
  return std::optional(std::move(used));
}

/// Why the launcher's PMIx would reject a rank; empty if the rank is accepted. The PMIx server
/// compares the user id that the kernel reports for a rank with the one that the rank sends. If the
/// two differ, the rank waits forever. Source: OpenPMIx, src/mca/psec/native; issue 3685.
std::string unknown_to_pmix(const Context& context, const oci::Spec& spec) {
  auto security = context.environment.get_filled("PMIX_SECURITY_MODE");
  bool asks = !security || security->find("native") != security->npos;
  uint32_t inside = spec.process->user.uid, outside = context.caller.uid;
  if (!asks || inside == outside) return {};
  return "PMIx accepts no rank that is user " + std::to_string(inside) + " in its container and " +
         std::to_string(outside) + " outside";
}

/// Why the ranks of this launch would not find each other; nothing if no reason is known.
std::optional<Error> obstacle(const Context& context, const oci::Spec& spec, const mpi::Used& used,
                              bool of_step) {
  auto launch = launch_of(context.environment);
  if (!launch) return std::nullopt;
  // Slurm sets PMI's variables only for tasks, not for the process that creates the container.
  launch->offers.pmi = launch->offers.pmi || of_step;
  if (auto objection = mpi::objection(*launch, used)) {
    return make_error(Kind::unsupported, "--mpi: " + objection.why,
                      !objection.alone ? objection.hint
                      : of_step        ? objection.hint + ", or BERTH_MPI=none, if that is intended"
                                       : objection.hint + ", or --mpi none, if that is intended");
  }
  bool has_pmi = launch->offers.pmi && used.takes.pmi && !of_step;
  bool by_pmix = launch->offers.pmix && used.takes.pmix && !has_pmi;
  std::string unknown = by_pmix ? unknown_to_pmix(context, spec) : "";
  if (unknown.empty()) return std::nullopt;
  return make_error(Kind::unsupported, "--mpi: " + unknown,
                    "without --container-remap-root, --user or --userns");
}

/// Refuses ranks that would not find each other, before the first one computes. If the program
/// itself may not use MPI, although a library of it does, rank 0 only warns.
Result<void> check_launch(const Context& context, const oci::Spec& spec,
                          const std::optional<mpi::Used>& used, const MpiRequest& request) {
  if (!used) return {};
  auto found = obstacle(context, spec, *used, !request.program.empty());
  if (!found) return {};
  if (used->called) return std::move(*found);
  bool first_node = context.environment.get_filled("SLURM_NODEID").value_or("0") == "0";
  if (first_node && speaks_for_ranks(context.environment)) {
    context.log.warn(to_line(*found) +
                     "; a library of the program is linked with that MPI, ignoring");
  }
  return {};
}

/// With --mpi auto, logs once for all ranks why the image's MPI stays. Logs nothing for an image
/// without MPI.
void log_decision(const Context& context, const mpi::Decision& decision) {
  if (!speaks_for_ranks(context.environment)) return;
  for (const std::string& warning : decision.warnings) {
    context.log.warn("--mpi: " + warning + ", ignoring");
  }
  if (!decision.has_mpi || (decision.swapped() && decision.own_stays.empty())) return;
  const std::string& why = decision.own_stays.empty() ? decision.why : decision.own_stays;
  context.log.warn("--mpi auto: " + why + ", using the image's MPI instead");
}

}  // namespace

Result<void> add_mpi(const Context& context, const ImageLook& look, oci::Spec& spec,
                     Provenance& provenance) {
  if (!look.request.mpi) return {};
  const MpiRequest& request = *look.request.mpi;
  TRY_CTX(add_nodes(context, spec, provenance), "cannot give the nodes of the fabric");
  if (request.mode == MpiMode::image) {
    provenance.mpi.push_back(
        {kMpiItem, "image", true, "the image's own MPI, as --mpi image says", ""});
    if (!launch_of(context.environment)) return {};
    auto own = TRY_CTX(mpi_of_program(look, spec), "cannot look for MPI in the image");
    return check_launch(context, spec, own, request);
  }
  if (look.request.rootfs && TRY(is_host_root(*look.request.rootfs))) {
    provenance.mpi.push_back(
        {kMpiItem, "host", true, "the root is the host's own, and so is its MPI", ""});
    return {};
  }
  mpi::Decision decision = TRY_CTX(decide_swap(look, spec, request),
                                   "cannot look for MPI in the image and on this node");
  TRY(check_launch(context, spec, decision.own, request));
  leave_out_hidden(spec, decision);
  bool stays = !decision.swapped() || !decision.own_stays.empty();
  if (stays && request.mode == MpiMode::host) {
    const std::string& why = decision.own_stays.empty() ? decision.why : decision.own_stays;
    return make_error(Kind::unsupported, "--mpi host: " + why,
                      "--mpi auto, which then keeps the image's MPI");
  }
  keep_notes(decision, provenance);
  log_decision(context, decision);
  if (!decision.swapped()) {
    provenance.mpi.insert(provenance.mpi.begin(), {kMpiItem, "image", true, decision.why, ""});
    return {};
  }
  provenance.mpi.insert(provenance.mpi.begin(), {kMpiItem, "host", true, decision.why, ""});
  withdraw_installation(spec, provenance);
  TRY_CTX(Placer(context, decision).run(spec), "cannot use the host's MPI in the container");
  return {};
}

}  // namespace berth::engine
