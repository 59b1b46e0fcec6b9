// SPDX-License-Identifier: Apache-2.0
#include "engine/site/environment_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/text.hpp"
#include "edf/resolve.hpp"
#include "engine/context/paths.hpp"
#include "engine/gpu/cdi.hpp"
#include "engine/image/file.hpp"
#include "engine/request/text.hpp"
#include "image/reference.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxDefinition = size_t{1} << 20;
// O_NONBLOCK: do not block on a pipe.
constexpr int kOpenFlags = O_RDONLY | O_NONBLOCK | O_NOCTTY;

bool is_path(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

Result<std::vector<std::string>> search_directories(const Environment& caller) {
  auto path = caller.get_filled("EDF_PATH");
  auto home = caller.get_filled("HOME");
  std::vector<std::string> out;
  if (!path && home) out.push_back(std::string(*home) + "/.edf");
  for (std::string_view directory : split(path.value_or(""), ':')) {
    if (directory.empty()) continue;
    if (!directory.starts_with('/')) {
      return make_error(Kind::usage, "EDF_PATH: " + quote(directory) + " is not absolute");
    }
    out.emplace_back(directory);
  }
  return out;
}

Result<edf::File> file_of(const sys::Fd& file, const std::string& path) {
  struct stat info = TRY(sys::stat_fd(file, path));
  if (!S_ISREG(info.st_mode)) {
    return make_error(Kind::usage, quote(path) + " is not a regular file");
  }
  std::string text = TRY(sys::read_all(file, path, kMaxDefinition));
  return edf::File{path, std::move(text)};
}

Result<edf::File> load(const Environment& caller, const std::string& name) {
  if (is_path(name)) {
    sys::Fd file = TRY(sys::open_at(sys::cwd(), name, kOpenFlags));
    return file_of(file, name);
  }
  std::vector<std::string> directories = TRY(search_directories(caller));
  for (const std::string& directory : directories) {
    std::string path = directory + "/" + name + ".toml";
    auto file = TRY(sys::open_if_exists(sys::cwd(), path, kOpenFlags));
    if (file) return file_of(*file, path);
  }
  std::string where = directories.empty() ? "EDF_PATH, which is not set" : join(directories, ":");
  return make_error(Kind::not_found, "no " + quote(name + ".toml") + " in " + where,
                    "./" + name + ".toml for a file of this directory");
}

/// A path that begins with "./" is relative to the directory of the caller, not of the file.
Result<std::string> placed_path(const std::string& path, const std::string& working_directory) {
  if (path != "." && !path.starts_with("./")) return path;
  std::string_view rest = path;
  if (path != ".") rest.remove_prefix(2);
  // ".//etc" must not become an absolute path.
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  return absolute_path(rest.empty() ? "." : rest, working_directory);
}

/// Converts "[REGISTRY#]IMAGE[:TAG]".
Result<std::string> reference_of(const std::string& image) {
  size_t hash = image.find('#');
  std::string registry = hash == std::string::npos ? "" : image.substr(0, hash);
  if (registry.find('@') != std::string::npos) {
    return make_error(Kind::usage,
                      "image " + quote(image) + " contains a user name for the registry",
                      "berth login, and the image without the user name");
  }
  std::string name = registry.empty() ? image : registry + "/" + image.substr(hash + 1);
  image::Reference reference = TRY(image::Reference::parse(name));
  // Only the registry "docker.io" may be omitted in a name.
  if (registry.empty() || reference.registry() == registry) return name;
  return make_error(Kind::usage,
                    "image " + quote(image) + ": " + quote(registry) + " is not a registry");
}

Result<AnyMount> read_mount(const std::string& text, const std::string& working_directory) {
  auto parts = split(text, ':');
  bool good = parts.size() == 2 || parts.size() == 3;
  if (!good) {
    return make_error(Kind::usage, "mount " + quote(text) + ": expected SOURCE:TARGET[:FLAG+FLAG]");
  }
  std::string source = TRY(placed_path(std::string(parts[0]), working_directory));
  std::string target = TRY(placed_path(std::string(parts[1]), working_directory));
  std::string flags(parts.size() == 3 ? parts[2] : "rw");
  if (!source.starts_with('/')) {
    return make_error(Kind::usage, "mount " + quote(text) + ": the source is not an absolute path",
                      "'./' before a path below this directory");
  }
  bool squashfs = flags == "sqsh";
  std::ranges::replace(flags, '+', ',');
  Volume volume = TRY(parse_volume(source + ":" + target + (squashfs ? "" : ":" + flags), ""));
  volume.must_exist = true;
  if (!squashfs) return AnyMount(std::move(volume));
  std::string file = TRY(find_image_file(volume.source));
  return AnyMount(ImageMount{
      .source = std::move(file), .destination = std::move(volume.destination), .is_file = true});
}

const std::string& destination_of(const AnyMount& mount) {
  return std::visit([](const auto& one) -> const std::string& { return one.destination; }, mount);
}

bool is_taken(const RunRequest& request, const std::string& destination) {
  auto is_there = [&](const auto& mount) { return mount.destination == destination; };
  return std::ranges::any_of(request.volumes, is_there) ||
         std::ranges::any_of(request.tmpfs, is_there) ||
         std::ranges::any_of(request.image_mounts, is_there);
}

// Of several mounts at one destination, the mount of a flag wins, else the last one in the files.
Result<void> add_mounts(const std::vector<edf::Text>& texts, const std::string& working_directory,
                        RunRequest& request) {
  std::vector<AnyMount> mounts;
  for (const edf::Text& text : texts) {
    AnyMount mount = TRY_CTX(read_mount(text.text, working_directory), text.place);
    const std::string& destination = destination_of(mount);
    if (is_taken(request, destination)) continue;
    std::erase_if(mounts, [&](const auto& one) { return destination_of(one) == destination; });
    mounts.push_back(std::move(mount));
  }
  for (AnyMount& mount : mounts) {
    if (auto* volume = std::get_if<Volume>(&mount)) {
      request.volumes.push_back(std::move(*volume));
    } else {
      request.image_mounts.push_back(std::move(std::get<ImageMount>(mount)));
    }
  }
  return {};
}

Result<void> add_device(const std::string& text, RunRequest& request) {
  if (text.starts_with('/')) {
    HostDevice device = TRY(parse_host_device(text));
    bool there = std::ranges::find(request.host_devices, device) != request.host_devices.end();
    if (!there) request.host_devices.push_back(std::move(device));
    return {};
  }
  TRY(check_device(text));
  bool there = std::ranges::find(request.devices, text) != request.devices.end();
  if (!there) request.devices.push_back(text);
  return {};
}

bool asks_for_hook(const std::string& annotation, const std::string& value) {
  bool known = annotation.starts_with("com.hooks.") || annotation.starts_with("com.pyxis.");
  return known && value != "false";
}

Result<void> add_annotations(const std::map<std::string, edf::Text>& annotations, Log& log,
                             RunRequest& request) {
  std::vector<std::string> hooks;
  for (const auto& [name, text] : annotations) {
    TRY_CTX(parse_annotation(name + "=" + text.text), text.place);
    if (asks_for_hook(name, text.text)) hooks.push_back(name);
    request.annotations.emplace(name, text.text);
  }
  if (hooks.empty()) return {};
  log.warn("no hook is run for " + join(hooks, ", ") + ": they are for CSCS's engine, ignoring");
  return {};
}

Result<void> add_workdir(const edf::Text& workdir, const std::string& working_directory,
                         RunRequest& request) {
  std::string path = TRY(placed_path(workdir.text, working_directory));
  if (request.workdir || path.empty()) return {};
  if (!path.starts_with('/')) {
    return make_error(Kind::usage,
                      workdir.place + ": workdir " + quote(path) + " is not an absolute path");
  }
  request.workdir = std::move(path);
  return {};
}

}  // namespace

Result<edf::Definition> read_environment_file(const Environment& caller, const std::string& name) {
  auto load_one = [&](const std::string& one) { return load(caller, one); };
  auto look_up = [&](std::string_view variable) { return caller.get(variable); };
  edf::File file = TRY_CTX(load(caller, name), "cannot read environment " + quote(name));
  return edf::resolve(file, load_one, look_up);
}

Result<std::string> image_of(const edf::Definition& definition) {
  if (!definition.image || definition.image->text.empty()) return std::string();
  const auto& [text, place] = *definition.image;
  if (is_image_path(text)) {
    TRY_CTX(find_image_file(text), place);
    return text;
  }
  return TRY_CTX(reference_of(text), place);
}

Result<void> add_definition(const edf::Definition& definition, const std::string& working_directory,
                            Log& log, RunRequest& request) {
  // As at CSCS, do not run the image's entrypoint by default.
  if (!request.entrypoint && !definition.entrypoint.value_or(false)) {
    if (request.command.empty()) {
      return make_error(Kind::usage,
                        "no command was given, and 'entrypoint' is not true in the environment",
                        "a command, or 'entrypoint = true' for that of the image");
    }
    request.entrypoint = "";
  }
  if (definition.workdir) TRY(add_workdir(*definition.workdir, working_directory, request));
  if (!definition.writable.value_or(true)) request.read_only = true;
  TRY(add_mounts(definition.mounts, working_directory, request));
  for (const edf::Text& device : definition.devices) {
    TRY_CTX(add_device(device.text, request), device.place);
  }
  TRY(add_annotations(definition.annotations, log, request));
  return {};
}

Result<std::vector<std::string>> expand_variables(
    const Environment& caller, const std::vector<std::string>& image,
    const std::map<std::string, edf::Text>& variables) {
  std::vector<std::string> entries;
  if (variables.empty()) return entries;
  Environment of_image(image);
  auto look_up = [&](std::string_view name) {
    auto value = of_image.get(name);
    return value ? value : caller.get(name);
  };
  for (const auto& [name, text] : variables) {
    std::string value = TRY_CTX(edf::expand(text.text, look_up), text.place);
    // A bare name removes the variable if the caller has no value for it.
    entries.push_back(value.empty() ? name : name + "=" + value);
  }
  return entries;
}

}  // namespace berth::engine
