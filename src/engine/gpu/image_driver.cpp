// SPDX-License-Identifier: Apache-2.0
#include "engine/gpu/image_driver.hpp"

#include <fcntl.h>

#include <set>

#include "base/text.hpp"
#include "gpu/place/publish.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH=";
constexpr const char* kFormat = "1";  // of the cached facts
constexpr size_t kMaxFacts = size_t{1} << 20;

std::string library_path_of(const oci::Process& process) {
  for (const std::string& entry : process.env) {
    if (entry.starts_with(kLibraryPath)) return entry.substr(kLibraryPath.size());
  }
  return {};
}

/// The host path that a volume shows at `path` of the container; empty: none.
std::string in_volumes(const RunRequest& request, const std::string& path) {
  for (const Volume& volume : request.volumes) {
    if (path.starts_with(volume.destination + "/")) {
      return volume.source + path.substr(volume.destination.size());
    }
  }
  return {};
}

Result<void> add_those_of_volumes(const RunRequest& request, const scan::LoaderSettings& settings,
                                  scan::DriverFiles& found) {
  if (request.volumes.empty()) return {};
  for (std::string_view directory : split(settings.library_path, ':')) {
    if (directory == settings.ours) return {};
    std::string path = std::string(directory) + "/libcuda.so.1";
    std::string source = in_volumes(request, path);
    if (source.empty() || !TRY(sys::stat_entry(sys::cwd(), source))) continue;
    found.libraries.insert(found.libraries.begin(), {path, path, {}, "LD_LIBRARY_PATH", true});
  }
  return {};
}

}  // namespace

Result<scan::DriverFiles> driver_files_of(const Context& context, const ImageLook& look,
                                          const oci::Process& process) {
  scan::LoaderSettings settings;
  settings.library_path = library_path_of(process);
  // For a name without a path, the RPATH of the program is not considered: PATH would have to be
  // searched.
  if (!process.args.empty() && process.args[0].starts_with('/')) settings.program = process.args[0];
  std::string directory = context.paths.state + "/gpu";
  // The image chooses parts of the key, so file names can collide: the whole key is stored with the
  // facts.
  std::string key = look.image.id.text() + "\n" + kFormat + "\n" + settings.library_path + "\n" +
                    settings.program + std::string(1, '\0');
  std::string name = "image-" + gpu::key_of_text(key);
  scan::DriverFiles found;
  // A directory or file of the host may change at any time, so its facts are not kept.
  bool fixed = is_of_store(look.request);
  std::optional<std::string> kept;
  if (fixed) kept = TRY(sys::read_file_if_exists(sys::cwd(), directory + "/" + name, kMaxFacts));
  if (kept && !kept->starts_with(key)) kept.reset();
  auto read = kept ? json::read<scan::DriverFiles>(std::string_view(*kept).substr(key.size()), name)
                   : Result<scan::DriverFiles>(found);
  if (kept && read.ok()) {
    found = std::move(*read);
  } else {
    found = TRY(scan::find_driver_files(LayerTree(look.view), settings));
    if (fixed) {
      TRY(sys::make_directories(sys::cwd(), directory, 0700));
      TRY(sys::replace_file(sys::cwd(), directory + "/" + name, key + json::write(found), 0600));
    }
  }
  TRY(add_those_of_volumes(look.request, settings, found));
  return found;
}

Result<void> copy_driver_files(const std::vector<gpu::Copy>& files,
                               const std::vector<gpu::GrantedLink>& links,
                               const ContainerDirectory& directory) {
  if (files.empty()) return {};
  const char* context = "cannot copy the driver's files into the container";
  auto upper = TRY_CTX(sys::open_at(directory.fd(), std::string(kUpperDirectory),
                                    O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
                       context);
  std::set<std::string> made;
  for (const gpu::Copy& file : files) {
    std::string path = file.path.substr(1);
    TRY_CTX(gpu::make_parents(upper, path, made), context);
    auto source = TRY_CTX(sys::open_at(sys::cwd(), file.host_path, O_RDONLY | O_NONBLOCK), context);
    auto target = TRY_CTX(sys::open_at(upper, path, O_WRONLY | O_CREAT | O_EXCL, 0600), context);
    TRY_CTX(sys::copy_rest(source, target, path), context);
    TRY_CTX(sys::change_mode(target, file.mode, path), context);
  }
  for (const gpu::GrantedLink& link : links) {
    std::string path = link.path.substr(1);
    TRY_CTX(gpu::make_parents(upper, path, made), context);
    auto linked = sys::make_symlink(link.target, upper, path);
    if (!linked.ok() && linked.error().kind != Kind::exists) return linked;
  }
  return {};
}

}  // namespace berth::engine
