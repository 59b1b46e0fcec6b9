// SPDX-License-Identifier: Apache-2.0
#include "engine/container/volumes_of_container.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/container/volume_store.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/state/directory.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

/// Each volume costs a directory, a record and a mount, so the number of volumes of an image is
/// limited.
constexpr size_t kMostVolumesOfImage = 256;

/// The mounts so far.
struct Mounted {
  std::vector<Volume> volumes;
  const std::vector<Tmpfs>& tmpfs;

  bool has(const std::string& destination) const {
    auto is_there = [&](const auto& mount) { return mount.destination == destination; };
    return std::ranges::any_of(volumes, is_there) || std::ranges::any_of(tmpfs, is_there);
  }
};

Result<RunRequest> kept_request(const Context& context, const ContainerSummary& container) {
  auto request = TRY(find_request(context, container));
  if (request) return std::move(*request);
  return make_error(Kind::unsupported,
                    "container " + quote(container.name) + " has no list of its volumes",
                    "-d when it is started, or without --rm");
}

// "NAME", "NAME:ro", "NAME:rw"; z and Z have no effect on the other container's volumes.
Result<void> take_from(const Context& context, const std::string& text, Mounted& mounted) {
  size_t colon = text.find(':');
  std::string mode = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (mode != "" && mode != "ro" && mode != "rw" && mode != "z" && mode != "Z") {
    return make_error(Kind::usage, "invalid mode: " + escape_controls(mode) +
                                       " for --volumes-from " + quote(text));
  }
  ContainerSummary container = TRY(get_container(context, text.substr(0, colon)));
  RunRequest other = TRY_CTX(kept_request(context, container), "--volumes-from " + quote(text));
  for (Volume& volume : other.volumes) {
    if (mounted.has(volume.destination)) continue;
    volume.read_only |= mode == "ro";
    mounted.volumes.push_back(std::move(volume));
  }
  return {};
}

Result<void> check_places(const RunRequest& request) {
  std::vector<std::string> places;
  for (const Volume& volume : request.volumes) places.push_back(volume.destination);
  for (const Tmpfs& tmpfs : request.tmpfs) places.push_back(tmpfs.destination);
  std::ranges::sort(places);
  auto twice = std::ranges::adjacent_find(places);
  if (twice == places.end()) return {};
  return make_error(Kind::usage, "Duplicate mount point: " + *twice);
}

/// The image's config is untrusted: invalid paths are skipped.
std::optional<std::string> place_of(const std::string& declared) {
  std::string path = declared;
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  bool good = path.starts_with('/') && path != "/" && (path + "/").find("/../") == path.npos &&
              path.find('\0') == path.npos;
  return good ? std::optional<std::string>(path) : std::nullopt;
}

}  // namespace

Result<std::vector<Volume>> volumes_of(const Context& context, const oci::ContainerDefaults& image,
                                       const RunRequest& request) {
  TRY(check_places(request));
  Mounted mounted{request.volumes, request.tmpfs};
  for (const std::string& other : request.volumes_from) TRY(take_from(context, other, mounted));
  if (image.volumes.size() > kMostVolumesOfImage) {
    return make_error(
        Kind::denied,
        "the image declares " + std::to_string(image.volumes.size()) + " volumes; at most " +
            std::to_string(kMostVolumesOfImage) + " are made",
        "an image with only its files: berth image mount IMAGE DIR, and berth import DIR NAME");
  }
  for (const auto& [declared, nothing] : image.volumes) {
    auto place = place_of(declared);
    if (!place || mounted.has(*place)) continue;
    Volume volume;
    volume.destination = std::move(*place);
    volume.anonymous = true;
    mounted.volumes.push_back(std::move(volume));
  }
  for (Volume& volume : mounted.volumes) {
    if (volume.anonymous && volume.name.empty()) volume.name = sys::random_hex(32);
  }
  return std::move(mounted.volumes);
}

Result<void> provide_volumes(const Context& context, const RunRequest& request,
                             const std::string& id, const std::vector<std::string>& layers) {
  bool any = std::ranges::any_of(request.volumes,
                                 [](const Volume& volume) { return !volume.name.empty(); });
  if (!any) return {};
  LayerView view = TRY(LayerView::open(layers));
  for (const Volume& volume : request.volumes) {
    if (volume.name.empty()) continue;
    VolumeRecord wish;
    wish.name = volume.name;
    wish.labels = volume.labels;
    wish.anonymous = volume.anonymous;
    if (volume.anonymous) wish.container = id;
    wish.goes_with_it = volume.anonymous && request.remove;
    TRY_CTX(make_volume(context, std::move(wish)), "cannot make volume " + quote(volume.name));
    if (volume.no_copy) continue;
    TRY_CTX(fill_if_empty(context, volume, view), "cannot fill volume " + quote(volume.name));
  }
  return {};
}

}  // namespace berth::engine
