// SPDX-License-Identifier: Apache-2.0
#include "gpu/cdi/resolve.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <iterator>

#include "base/text.hpp"
#include "gpu/cdi/known_hooks.hpp"
#include "gpu/grant/grant.hpp"
#include "scan/elf.hpp"
#include "scan/loader.hpp"
#include "sys/file/file.hpp"

namespace berth::gpu::cdi {
namespace {

constexpr size_t kMaxLibraries = 4096;  // of one mounted directory

// The loader's default directories.  ld.so(8), Debian's multiarch
constexpr std::string_view kLoaderDefaults[] = {"/lib",
                                                "/usr/lib",
                                                "/lib64",
                                                "/usr/lib64",
                                                "/lib/x86_64-linux-gnu",
                                                "/usr/lib/x86_64-linux-gnu",
                                                "/lib/aarch64-linux-gnu",
                                                "/usr/lib/aarch64-linux-gnu"};

std::string without_slash(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

std::string parent_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

std::string type_of(mode_t mode) {
  if (S_ISCHR(mode)) return "c";
  if (S_ISBLK(mode)) return "b";
  return S_ISFIFO(mode) ? "p" : "";
}

/// A library of the host for a container.
struct Library {
  std::string path;  ///< in the container
  std::string soname;
  int32_t flags = 0;
};

/// Nothing if it is not a library for this machine.
std::optional<Library> read_library(const std::string& host_path, std::string path) {
  auto place = sys::open_at(sys::cwd(), host_path, O_PATH);
  if (!place.ok()) return std::nullopt;
  auto info = sys::stat_fd(*place, host_path);
  if (!info.ok() || !S_ISREG(info->st_mode)) return std::nullopt;  // a fifo would block
  auto file = sys::open_at(sys::cwd(), sys::fd_path(*place), O_RDONLY);
  if (!file.ok()) return std::nullopt;
  auto elf = scan::read_elf([&](uint64_t offset, size_t length) {
    return sys::read_at(*file, offset, length, host_path);
  });
  if (!elf.ok() || elf->type != 3) return std::nullopt;
  auto flags = scan::loader_flags(elf->elf_class, elf->machine);
  if (!flags) return std::nullopt;
  std::string soname = elf->soname.empty() ? name_of(path) : elf->soname;
  if (soname.find('/') != std::string::npos || soname != escape_controls(soname)) {
    return std::nullopt;  // neither a file name nor fit for a line of a file
  }
  return Library{std::move(path), std::move(soname), *flags};
}

class Resolver {
 public:
  Resolver(const oci::cdi::Edits& edits, const Inherited& inherited) : in_(edits) {
    out_.inherited = inherited;
  }

  Result<Resolved> run() {
    out_.edits.env = in_.env;
    for (const auto& node : in_.device_nodes) TRY(add_node(node));
    for (const auto& mount : in_.mounts) TRY(add_mount(mount));
    for (const auto& device : in_.net_devices) {
      out_.edits.net_devices.push_back({device.host_interface_name, device.name});
    }
    for (uint32_t gid : in_.additional_gids) {
      if (gid != 0) out_.edits.additional_gids.push_back(gid);
    }
    add_rdt();
    for (const auto& hook : in_.hooks) add_hook(hook);
    if (own_file_) remove_driver_place();
    add_libraries();
    return std::move(out_);
  }

 private:
  Result<void> add_node(const oci::cdi::DeviceNode& node);
  Result<void> fill(const oci::cdi::DeviceNode& node, oci::DeviceNode& out);
  Result<void> add_mount(const oci::cdi::Mount& mount);
  void add_rdt();
  void add_hook(const oci::cdi::Hook& hook);
  void do_hook(KnownHook hook);
  void remove_driver_place();
  void add_libraries();
  bool in_loader_folders(const std::string& folder) const;
  bool has_link(const std::string& path) const {
    const auto& links = out_.edits.links;
    return std::ranges::any_of(links, [&](const oci::Link& link) { return link.path == path; });
  }
  std::vector<Library> mounted_libraries() const;

  const oci::cdi::Edits& in_;
  Resolved out_;
  bool own_file_ = false;
};

Result<void> Resolver::add_node(const oci::cdi::DeviceNode& node) {
  oci::DeviceNode out;
  out.path = node.path;
  out.host_path = node.host_path;
  out.type = node.type;
  out.major = node.major.value_or(0);
  out.minor = node.minor.value_or(0);
  out.permissions = node.permissions.empty() ? "rwm" : node.permissions;
  out.file_mode = node.file_mode;
  out.uid = node.uid;
  out.gid = node.gid;
  out.owned_by_process = true;
  TRY(fill(node, out));
  out_.edits.device_nodes.push_back(std::move(out));
  return {};
}

// Does the same as the CDI library that all engines use: numbers come from the host unless a major
// is given, and a node that cannot be examined is an error unless the file has everything needed.
Result<void> Resolver::fill(const oci::cdi::DeviceNode& node, oci::DeviceNode& out) {
  bool complete = out.type == "p" || (!out.type.empty() && out.major != 0);
  if (complete && out.file_mode) return {};
  const std::string& path = node.host_path.empty() ? node.path : node.host_path;
  out_.nodes.push_back(path);
  auto place = sys::open_at(sys::cwd(), path, O_PATH);
  if (!place.ok()) {
    if (complete) return {};
    return std::move(place).error().with_context("cannot give device " + quote(node.path));
  }
  struct stat info = TRY(sys::stat_fd(*place, path));
  std::string type = type_of(info.st_mode);
  std::string wanted = out.type == "u" ? "c" : out.type;
  if (type.empty() || (!wanted.empty() && wanted != type)) {
    if (complete) return {};
    return make_error(Kind::corrupt,
                      quote(path) + (type.empty() ? " is not a device" : " is of type " + type));
  }
  if (out.type.empty()) out.type = type;
  if (out.major == 0 && type != "p") {
    out.major = major(info.st_rdev);
    out.minor = minor(info.st_rdev);
  }
  if (!out.file_mode) out.file_mode = info.st_mode & 07777;
  return {};
}

Result<void> Resolver::add_mount(const oci::cdi::Mount& mount) {
  oci::Mount out;
  out.destination = mount.container_path;
  out.source = mount.host_path;
  out.type = mount.type;
  out.options = mount.options;
  auto has = [&](std::string_view option) {
    return std::ranges::find(out.options, option) != out.options.end();
  };
  if (mount.container_path.find_first_not_of("/.") == std::string::npos) {
    return make_error(Kind::corrupt, "a mount over the container's root");
  }
  bool bind = has("bind") || has("rbind");
  if (!bind && (out.type.empty() || out.type == "bind")) {
    out.options.emplace_back("rbind");
    bind = true;
  }
  if (bind) out.type = "bind";
  if (bind && !out.source.starts_with('/')) {
    return make_error(Kind::corrupt, "mount of " + quote(out.source) + ": not an absolute path");
  }
  out_.edits.mounts.push_back(std::move(out));
  return {};
}

void Resolver::add_rdt() {
  if (!in_.intel_rdt) return;
  const oci::cdi::IntelRdt& rdt = *in_.intel_rdt;
  oci::IntelRdt& out = out_.edits.intel_rdt.emplace();
  out.clos_id = rdt.clos_id;
  out.schemata = rdt.schemata;
  out.l3_cache_schema = rdt.l3_cache_schema;
  out.mem_bw_schema = rdt.mem_bw_schema;
  // Before 1.1.0 each of the two kinds of monitoring had its own member.
  out.enable_monitoring = rdt.enable_monitoring || rdt.enable_cmt || rdt.enable_mbm;
}

void Resolver::add_hook(const oci::cdi::Hook& hook) {
  if (auto known = recognise(hook)) {
    do_hook(std::move(*known));
    return;
  }
  oci::append_hook(hook.hook_name, {hook.path, hook.args, hook.env, hook.timeout},
                   out_.edits.hooks);
}

// Removes the tmpfs that our CDI files mount so that other engines can make links in it. Our
// runtime makes links only in the container's root file system: any other mount may be a directory
// of the user.
void Resolver::remove_driver_place() {
  std::erase_if(out_.edits.mounts, [](const oci::Mount& mount) {
    return mount.type == "tmpfs" && mount.destination == kDriverDirectory;
  });
}

void Resolver::do_hook(KnownHook hook) {
  own_file_ = own_file_ || hook.own;
  auto move_all = [](auto& from, auto& to) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  };
  move_all(hook.links, out_.edits.links);
  move_all(hook.loader_entries, out_.edits.loader_entries);
  move_all(hook.loader_folders, out_.inherited.loader_folders);
  move_all(hook.soname_folders, out_.inherited.soname_folders);
  out_.inherited.loader_cache = out_.inherited.loader_cache || hook.loader_cache;
  if (hook.compat) out_.edits.compat = std::move(hook.compat);
  out_.edits.freeze_device_nodes = out_.edits.freeze_device_nodes || hook.freeze_device_nodes;
  out_.edits.application_profile = out_.edits.application_profile || hook.application_profile;
}

bool contains(const std::vector<std::string>& folders, const std::string& folder) {
  return std::ranges::any_of(folders,
                             [&](const std::string& one) { return without_slash(one) == folder; });
}

bool Resolver::in_loader_folders(const std::string& folder) const {
  return std::ranges::find(kLoaderDefaults, folder) != std::end(kLoaderDefaults) ||
         contains(out_.inherited.loader_folders, folder);
}

bool is_library_name(const std::string& name) {
  return name.ends_with(".so") || name.find(".so.") != std::string::npos;
}

// The libraries that are mounted one by one, and those in mounted directories.
std::vector<Library> Resolver::mounted_libraries() const {
  std::vector<Library> libraries;
  auto add = [&](const std::string& host_path, const std::string& path) {
    if (!is_library_name(name_of(path))) return;
    if (auto library = read_library(host_path, path)) libraries.push_back(std::move(*library));
  };
  for (const oci::Mount& mount : out_.edits.mounts) {
    if (mount.type != "bind") continue;
    std::string path = without_slash(mount.destination);
    add(mount.source, path);
    // A mounted directory that is or contains a folder that a hook names.
    for (const std::string& folder : out_.inherited.loader_folders) {
      std::string place = without_slash(folder);
      if (place != path && !place.starts_with(path + "/")) continue;
      std::string source = mount.source + place.substr(path.size());
      auto names = sys::list_directory(sys::cwd(), source, kMaxLibraries);
      if (!names.ok()) continue;
      for (const std::string& name : *names) add(source + "/" + name, place + "/" + name);
    }
  }
  return libraries;
}

// Does what ldconfig would do in the container: adds an entry by SONAME for every library, even if
// its file has another name, and, for create-soname-symlinks, the link.
void Resolver::add_libraries() {
  const Inherited& wanted = out_.inherited;
  if (!wanted.loader_cache && wanted.soname_folders.empty()) return;
  std::map<std::pair<std::string, int32_t>, std::string> paths;  // by SONAME and architecture
  for (const Library& library : mounted_libraries()) {
    std::string folder = parent_of(library.path);
    bool own_name = name_of(library.path) == library.soname;
    if (contains(wanted.soname_folders, folder) && !own_name) {
      out_.edits.links.push_back({folder + "/" + library.soname, name_of(library.path)});
    }
    if (!wanted.loader_cache || !in_loader_folders(folder)) continue;
    // The path that ldconfig would enter: the link, if one is made.
    std::string link = folder + "/" + library.soname;
    bool linked = !own_name && has_link(link);
    auto [entry, added] =
        paths.try_emplace({library.soname, library.flags}, linked ? link : library.path);
    if (!added && own_name) entry->second = library.path;
  }
  for (const auto& [key, path] : paths) {
    out_.edits.loader_entries.push_back({key.first, path, key.second});
  }
}

}  // namespace

Result<Resolved> resolve(const oci::cdi::Edits& edits, const Inherited& inherited) {
  return Resolver(edits, inherited).run();
}

}  // namespace berth::gpu::cdi
