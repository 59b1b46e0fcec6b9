// SPDX-License-Identifier: Apache-2.0
#include "gpu/probe/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "gpu/probe/driver_capabilities.hpp"
#include "gpu/probe/libraries.hpp"
#include "gpu/probe/nodes.hpp"
#include "gpu/probe/program_version.hpp"
#include "sys/file/file.hpp"
#include "sys/user/identity.hpp"

namespace berth::gpu {
namespace {

constexpr std::array<std::string_view, 8> kProgramDirectories = {"/usr/bin",
                                                                 "/usr/sbin",
                                                                 "/usr/local/bin",
                                                                 "/usr/local/nvidia/bin",
                                                                 "/run/current-system/sw/bin",
                                                                 "/opt/bin",
                                                                 "/home/kubernetes/bin/nvidia/bin",
                                                                 "/bin"};
constexpr std::array<std::string_view, 4> kConfigDirectories = {
    "/etc", "/usr/local/share", "/usr/share", "/usr/local/nvidia/share"};
// Directories of X modules: below a library directory, and those of the X servers of distributions.
constexpr std::array<std::string_view, 7> kModulePlaces = {
    "/nvidia",  // Debian: links to the selected branch
    "/nvidia/xorg",
    "/xorg/modules/updates/drivers",
    "/xorg/modules/updates/extensions",
    "/xorg/modules/drivers",
    "/xorg/modules/extensions",
    "/modules/drivers"};
constexpr std::array<std::string_view, 4> kModuleRoots = {"/usr/lib64", "/usr/lib",
                                                          "/usr/X11R6/lib64", "/usr/X11R6/lib"};
constexpr std::string_view kVersionWord = "VERSION";
constexpr size_t kMaxProgram = size_t{64} << 20;
constexpr std::string_view kEverything = "compute,utility,graphics,display,video,ngx,compat32";

// Finds the files other than libraries, most of them by name in a few directories.
class Files {
 public:
  Files(const DriverRoot& root, Inventory& inventory, std::vector<std::string> library_directories,
        const std::vector<std::string>& of_root)
      : root_(root),
        inventory_(inventory),
        library_directories_(std::move(library_directories)),
        of_root_(of_root) {}

  void read(const Configured& configured) {
    take_programs();
    take_modules();
    take_firmware();
    take_sockets();
    take_service_directories();
    take_configs();
    for (const std::string& path : configured.files) take_configured(path);
  }

 private:
  void take_programs();
  void take_program(const NamedFile& program, const std::vector<std::string>& directories);
  std::string version_in(const std::string& path) const;
  void take_modules();
  void take_module(const std::string& name, const std::string& version);
  void take_firmware();
  void take_sockets();
  void take_service_directories();
  void take_configs();
  void take_configured(const std::string& path);

  std::optional<std::string> find_file(const std::string& path) const {
    auto found = root_.find(path);
    if (!found || !S_ISREG(found->info.st_mode)) return std::nullopt;
    return found->host_path;
  }
  /// "/opt/driver/bin" for the libraries in "/opt/driver/lib64".
  std::vector<std::string> beside_libraries(std::string_view name) const {
    std::vector<std::string> out;
    for (const std::string& directory : library_directories_) {
      out.push_back(directory.substr(0, directory.rfind('/')) + std::string(name));
    }
    return out;
  }
  /// "/nix/store/…-bin/lib" for the programs in "/nix/store/…-bin/bin": NixOS has the modules of
  /// the X server there, and links only to the programs.
  std::vector<std::string> beside_programs(std::string_view name) const {
    std::vector<std::string> out;
    const std::string root = root_.path() == "/" ? "" : root_.path();
    for (const DriverFile& file : inventory_.files) {
      if (file.kind != FileKind::binary || !file.host_path.starts_with(root + "/")) continue;
      std::string_view path = std::string_view(file.host_path).substr(root.size());
      for (int up = 0; up < 2; ++up) path = path.substr(0, path.rfind('/'));
      std::string directory = std::string(path) + std::string(name);
      if (std::ranges::find(out, directory) == out.end()) out.push_back(std::move(directory));
    }
    return out;
  }
  /// "/usr/lib/nvidia/tesla-450" for the libraries in "/usr/lib/x86_64-linux-gnu/nvidia/tesla-450":
  /// Debian's packages have the programs of each branch there.
  std::vector<std::string> program_directories() const {
    std::vector<std::string> out = beside_libraries("/bin");
    for (const std::string& directory : library_directories_) {
      size_t at = directory.find("/nvidia/");
      if (at != std::string::npos) out.push_back("/usr/lib" + directory.substr(at));
    }
    out.insert(out.end(), kProgramDirectories.begin(), kProgramDirectories.end());
    return out;
  }
  /// Takes `file` from the first of `directories` that has it.
  void take_first(FileKind kind, const NamedFile& file,
                  const std::vector<std::string>& directories);
  /// Names the first of `paths`, below the root, that gives no file though there is such a name.
  void name_unusable(const std::vector<std::string>& paths, std::string_view capabilities);
  void add(FileKind kind, std::string host_path, std::string_view name, std::string container_path,
           std::string_view capabilities) {
    DriverFile file;
    file.kind = kind;
    file.host_path = std::move(host_path);
    file.name = name;
    file.container_path = std::move(container_path);
    file.capabilities = words_of(capabilities);
    inventory_.files.push_back(std::move(file));
  }

  const DriverRoot& root_;
  Inventory& inventory_;
  std::vector<std::string> library_directories_;  ///< below the root
  const std::vector<std::string>& of_root_;
};

void Files::take_first(FileKind kind, const NamedFile& file,
                       const std::vector<std::string>& directories) {
  std::vector<std::string> paths;
  std::string name(file.name);
  if (size_t at = name.find(kVersionWord); at != std::string::npos) {
    name.replace(at, kVersionWord.size(), inventory_.driver.library_version);
  }
  for (const std::string& directory : directories) {
    paths.push_back(fmt::format("{}/{}", directory, name));
    auto path = find_file(paths.back());
    if (!path) continue;
    add(kind, *path, name.substr(name.rfind('/') + 1), fmt::format("{}/{}", file.target, name),
        file.capabilities);
    return;
  }
  name_unusable(paths, file.capabilities);
}

// Debian's packages have links by /etc/alternatives in all of these places.
void Files::name_unusable(const std::vector<std::string>& paths, std::string_view capabilities) {
  if (inventory_.driver.library_version.empty()) return;
  for (const std::string& path : paths) {
    std::string why = why_no_file(root_, path);
    if (why.empty()) continue;
    const std::string root = root_.path() == "/" ? "" : root_.path();
    add_unusable({root + path, std::move(why), words_of(capabilities)}, inventory_.unusable);
    return;
  }
}

void Files::take_programs() {
  std::vector<std::string> directories = program_directories();
  for (const NamedFile& program : program_names()) take_program(program, directories);
}

// Programs next to the libraries belong to the same driver. A root with several drivers may also
// have programs of the others, at places that do not say so: a program that names the version of
// the libraries wins.
void Files::take_program(const NamedFile& program, const std::vector<std::string>& directories) {
  std::vector<std::string> places, paths;
  for (const std::string& directory : directories) {
    places.push_back(fmt::format("{}/{}", directory, program.name));
    auto path = find_file(places.back());
    bool is_new = path && std::ranges::find(paths, *path) == paths.end();
    if (is_new) paths.push_back(*std::move(path));
  }
  if (paths.empty()) {
    name_unusable(places, program.capabilities);
    return;
  }
  const std::string& wanted = inventory_.driver.library_version;
  std::string path = paths[0], version;
  bool matters = names_its_driver(program.name) || paths.size() > 1;
  if (matters) version = version_in(path);
  for (size_t i = 1; i < paths.size() && version != wanted; ++i) {
    if (version_in(paths[i]) != wanted) continue;
    path = paths[i];
    version = wanted;
  }
  bool other = !version.empty() && !wanted.empty() && version != wanted;
  if (other && names_its_driver(program.name)) {
    inventory_.problems.push_back(
        fmt::format("{} is of driver {}, the libraries are of {}", quote(path), version, wanted));
  }
  add(FileKind::binary, std::move(path), program.name,
      fmt::format("{}/{}", program.target, program.name), program.capabilities);
}

/// The version of a driver that a program names: that of the libraries if it is among several;
/// empty if it names none, or cannot be read.
std::string Files::version_in(const std::string& path) const {
  auto file = sys::open_at(sys::cwd(), path, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) return {};
  auto bytes = sys::read_all(*file, path, kMaxProgram);
  if (!bytes.ok()) return {};
  auto versions = driver_versions_in(*bytes);
  if (versions.empty()) return {};
  const std::string& wanted = inventory_.driver.library_version;
  return std::ranges::find(versions, wanted) == versions.end() ? versions[0] : wanted;
}

void Files::take_configs() {
  std::vector<std::string> directories(kConfigDirectories.begin(), kConfigDirectories.end());
  for (std::string_view name : {"/share", "/etc"}) {
    auto beside = beside_libraries(name);
    directories.insert(directories.end(), beside.begin(), beside.end());
  }
  for (const NamedFile& config : config_names()) take_first(FileKind::config, config, directories);
}

// The X server loads these modules by the paths in its configuration, so the paths are the same as
// on the host.
void Files::take_modules() {
  const std::string& version = inventory_.driver.library_version;
  if (version.empty()) return;
  take_module("nvidia_drv.so", "");
  take_module("libglxserver_nvidia.so", version);
  take_module("libglx.so", version);  // its name until 390
}

// The X server loads `name`, which may be a link to the file with `version` at its end.
void Files::take_module(const std::string& name, const std::string& version) {
  const std::string file = version.empty() ? name : name + "." + version;
  constexpr std::string_view kCapabilities = "graphics,display";
  std::vector<std::string> roots = library_directories_, paths;
  std::optional<UnusableFile> other;
  for (std::string& directory : beside_programs("/lib")) roots.push_back(std::move(directory));
  roots.insert(roots.end(), kModuleRoots.begin(), kModuleRoots.end());
  for (const std::string& directory : roots) {
    for (std::string_view place : kModulePlaces) {
      std::string where = fmt::format("{}{}", directory, place);
      paths.push_back(where + "/" + name);
      auto object = open_elf(root_, where + "/" + file, kCapabilities, inventory_.unusable);
      if (!object) object = open_elf(root_, paths.back(), kCapabilities, inventory_.unusable);
      if (!object || object->fit != Fit::native) continue;
      if (!object->host_path.ends_with("/" + file)) {
        auto of = driver_version_of(object->host_path.substr(object->host_path.rfind('/') + 1));
        // Debian's alternatives may lead to another branch that is installed, too.
        bool of_branch = object->host_path.find("/lib/nvidia/") != std::string::npos;
        if (!of.empty() && !of_branch && !other) {
          other = {object->host_path, of_other_driver(of, inventory_.driver.library_version),
                   words_of(kCapabilities)};
        }
        continue;
      }
      add(FileKind::module, object->host_path, file, paths.back(), kCapabilities);
      return;
    }
  }
  if (other) {
    add_unusable(std::move(*other), inventory_.unusable);
  } else {
    name_unusable(paths, kCapabilities);
  }
}

// Looks in the kernel's firmware directories, in the kernel's order. In the container the files are
// below /usr/lib, the target of /lib in nearly every image.
void Files::take_firmware() {
  const std::string& version = inventory_.driver.module_version;
  if (version.empty()) return;
  auto text = [this](const char* path) {
    auto read = root_.read_machine(path);
    return read.ok() && *read ? std::string(trim(**read)) : std::string();
  };
  std::vector<std::string> directories;
  std::string custom = text("/sys/module/firmware_class/parameters/path");
  if (custom.starts_with('/')) directories.push_back(custom);
  std::string release = text("/proc/sys/kernel/osrelease");
  for (const char* base : {"/lib/firmware/updates", "/lib/firmware"}) {
    if (!release.empty()) directories.push_back(fmt::format("{}/{}", base, release));
    directories.emplace_back(base);
  }
  for (const std::string& directory : directories) {
    auto found = root_.find(fmt::format("{}/nvidia/{}", directory, version));
    if (!found) continue;
    auto names = root_.list(*found);
    if (!names.ok()) continue;
    bool any = false;
    for (const std::string& name : *names) {
      if (!name.starts_with("gsp") || !name.ends_with(".bin")) continue;
      auto path = find_file(fmt::format("{}/nvidia/{}/{}", directory, version, name));
      if (!path) continue;
      add(FileKind::firmware, *path, name,
          fmt::format("/usr/lib/firmware/nvidia/{}/{}", version, name), "utility");
      any = true;
    }
    if (any) return;
  }
}

// The socket of a service may be in the root of the driver's files or in the root of the machine.
void Files::take_sockets() {
  for (const NamedFile& socket : socket_names()) {
    const std::string path(socket.name);
    auto found = root_.find(path);
    if (!found || !S_ISSOCK(found->info.st_mode)) found = root_.find_on_machine(path);
    if (!found || !S_ISSOCK(found->info.st_mode)) continue;
    add(FileKind::socket, found->host_path, "socket", std::string(socket.target),
        socket.capabilities);
  }
}

// In a world-writable directory, such a name is trusted only if its owner is trusted: a program
// must not connect to a daemon of another user. In a user namespace, root and all unmapped users
// have the same id.
void Files::take_service_directories() {
  for (const NamedFile& directory : service_directories()) {
    const std::string path(directory.name);
    auto info = root_.stat_machine(path);
    bool trusted = info && S_ISDIR(info->st_mode) &&
                   (info->st_uid == 0 || info->st_uid == sys::effective_uid() ||
                    std::ranges::find(of_root_, path) != of_root_.end());
    if (!trusted) continue;
    add(FileKind::directory, root_.machine_path(path), path.substr(path.rfind('/') + 1),
        std::string(directory.target), directory.capabilities);
  }
}

void Files::take_configured(const std::string& path) {
  auto found = root_.find_on_machine(path);
  if (!found || (!S_ISREG(found->info.st_mode) && !S_ISDIR(found->info.st_mode))) {
    inventory_.problems.push_back(
        fmt::format("{} is to be given with every GPU and is not there, ignoring it", quote(path)));
    return;
  }
  add(S_ISDIR(found->info.st_mode) ? FileKind::directory : FileKind::config, found->host_path,
      path.substr(path.rfind('/') + 1), path, kEverything);
}

constexpr const char* kProcTexts = "/proc/driver/";
// Most files have a few lines, but the table of minors has 4300, of which few are used.
constexpr size_t kMaxText = size_t{64} << 10, kMaxTable = size_t{1} << 20;

class Texts {
 public:
  Texts(const DriverRoot& root, Inventory& inventory) : root_(root), inventory_(inventory) {}

  Result<void> read() {
    for (const char* name : {"version", "params", "registry", "suspend", "suspend_depth"}) {
      add(std::string("nvidia/") + name, {}, {});
    }
    for (const char* name : {"warnings/README", "patches/README"}) {
      add(std::string("nvidia/") + name, {}, {});
    }
    for (const char* name : {"config", "monitor"}) {
      add(std::string("nvidia/capabilities/mig/") + name, {}, {});
    }
    add("nvidia/capabilities/fabric-imex-mgmt", {}, {});
    for (const Gpu& gpu : inventory_.gpus) {
      if (gpu.vendor == Vendor::nvidia) TRY(read_gpu(gpu));
    }
    add_tables();
    return {};
  }

 private:
  Result<void> read_gpu(const Gpu& gpu);
  void add_tables();

  std::optional<std::string> text_of(const std::string& path, size_t max_bytes) const {
    auto text = root_.read_machine(kProcTexts + path);
    if (!text.ok() || !*text || (*text)->size() > max_bytes) return std::nullopt;
    return std::move(*text);
  }
  void add(const std::string& path, std::optional<uint32_t> gpu, std::optional<uint32_t> slice) {
    if (auto text = text_of(path, kMaxText)) {
      inventory_.proc_texts.push_back({path, std::move(*text), gpu, slice});
    }
  }

  const DriverRoot& root_;
  Inventory& inventory_;
};

Result<void> Texts::read_gpu(const Gpu& gpu) {
  const std::string directory = "nvidia/gpus/" + gpu.pci_address;
  for (const std::string& name : TRY(root_.list_machine(kProcTexts + directory))) {
    add(directory + "/" + name, gpu.index, {});
  }
  const std::string mig = fmt::format("nvidia/capabilities/gpu{}/mig", gpu.minor);
  for (const MigDevice& slice : gpu.mig) {
    const std::string instance = fmt::format("{}/gi{}", mig, slice.gpu_instance);
    add(instance + "/access", gpu.index, slice.index);
    add(fmt::format("{}/ci{}/access", instance, slice.compute_instance), gpu.index, slice.index);
  }
  return {};
}

void Texts::add_tables() {
  add("nvidia-caps/nvlink-minors", {}, {});
  auto table = text_of("nvidia-caps/mig-minors", kMaxTable);
  if (!table) return;
  for (ProcText& row : mig_minor_rows(*table, inventory_)) {
    inventory_.proc_texts.push_back(std::move(row));
  }
}

const Gpu* find_gpu(const Inventory& inventory, std::string_view name) {
  auto minor = numbered(name, "gpu");
  for (const Gpu& gpu : inventory.gpus) {
    if (gpu.vendor == Vendor::nvidia && minor == gpu.minor) return &gpu;
  }
  return nullptr;
}

}  // namespace

Result<void> read_driver_files(const DriverRoot& root, const Configured& configured,
                               const std::vector<std::string>& of_root, Inventory& inventory) {
  auto directories = TRY(read_libraries(root, configured.library_directories, inventory));
  Files(root, inventory, std::move(directories), of_root).read(configured);
  return {};
}

std::vector<std::string> services_of_root(const std::string& driver_root) {
  std::vector<std::string> out;
  auto root = DriverRoot::open(driver_root);
  if (!root.ok()) return out;
  for (const NamedFile& directory : service_directories()) {
    auto info = root->stat_machine(std::string(directory.name));
    if (info && S_ISDIR(info->st_mode) && info->st_uid == 0) out.emplace_back(directory.name);
  }
  return out;
}

std::vector<ProcText> mig_minor_rows(std::string_view table, const Inventory& inventory) {
  std::vector<ProcText> out;
  auto add = [&](std::string_view line, std::optional<uint32_t> gpu,
                 std::optional<uint32_t> slice) {
    out.push_back({"nvidia-caps/mig-minors", std::string(line) + "\n", gpu, slice});
  };
  for (std::string_view line : split(table, '\n')) {
    auto words = split_blank(line);
    if (words.size() != 2 || !parse_u32(words[1])) continue;
    if (words[0] == "config" || words[0] == "monitor") add(line, {}, {});
    auto parts = split(words[0], '/');
    if (parts.size() < 3 || parts.size() > 4 || parts.back() != "access") continue;
    const Gpu* gpu = find_gpu(inventory, parts[0]);
    auto gi = numbered(parts[1], "gi");
    auto ci = parts.size() == 4 ? numbered(parts[2], "ci") : std::nullopt;
    if (gpu == nullptr || !gi || (parts.size() == 4 && !ci)) continue;
    for (const MigDevice& slice : gpu->mig) {
      bool same = slice.gpu_instance == *gi && (!ci || slice.compute_instance == *ci);
      if (same) add(line, gpu->index, slice.index);
    }
  }
  return out;
}

Result<void> read_proc_texts(const DriverRoot& root, Inventory& inventory) {
  return Texts(root, inventory).read();
}

}  // namespace berth::gpu
