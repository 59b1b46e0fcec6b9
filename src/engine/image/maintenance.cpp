// SPDX-License-Identifier: Apache-2.0
#include "engine/image/maintenance.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/image/mounted.hpp"
#include "engine/image/store.hpp"

namespace berth::engine {
namespace {

Result<std::vector<Digest>> mounted_layers(const Context& context) {
  std::vector<Digest> layers;
  image::Store store = TRY(open_own_store(context));
  for (const image::Image& image : TRY(find_mounted(store))) {
    for (const image::Layer& layer : image.layers) layers.push_back(layer.diff_id);
  }
  return layers;
}

Result<void> check_not_read_only(const Context& context, const std::string& name) {
  image::Store store = TRY(open_store(context));
  auto image = TRY(store.find_image(name));
  if (!image || image->store.empty()) return {};
  return make_error(
      Kind::denied,
      "convert image " + quote(name) + ": it is in the read-only store " + quote(image->store),
      "berth --root " + image->store + " image convert, as its owner");
}

/// Refuses mounted images: converting a mounted layer would make the mount empty.
Result<void> check_not_mounted(const Context& context, const std::vector<std::string>& images) {
  std::vector<Digest> mounted = TRY(mounted_layers(context));
  image::Store store = TRY(open_own_store(context));
  for (const std::string& name : images) {
    auto image = store.find_image(name);
    if (image.ok() && !*image) TRY(check_not_read_only(context, name));
    if (!image.ok() || !*image) continue;  // the conversion reports it
    for (const image::Layer& layer : (*image)->layers) {
      if (std::ranges::find(mounted, layer.diff_id) == mounted.end()) continue;
      return make_error(Kind::busy,
                        "convert image " + quote(name) + ": it is mounted, or shares layer " +
                            layer.diff_id.short_hex() + " with an image that is",
                        "berth image unmount; 'berth image mount' lists them");
    }
  }
  return {};
}

}  // namespace

Result<image::DedupeReport> dedupe_layers(const Context& context, Trial trial,
                                          const Progress& progress) {
  image::DedupeRequest request;
  request.dry_run = trial == Trial::yes;
  request.mounted = TRY(mounted_layers(context));
  image::TransferResult result = TRY(transfer(context, std::move(request), progress));
  if (result.dedupe) return std::move(*result.dedupe);
  return make_error(Kind::corrupt, "berth-transfer has another version");
}

Result<image::ConvertReport> convert_layers(const Context& context, const std::string& format,
                                            const std::vector<std::string>& images,
                                            const Progress& progress) {
  TRY(check_not_mounted(context, images));
  Context wanted = context;
  wanted.layer_format = format;  // checked as for a pull
  image::ConvertRequest request;
  request.images = images;
  image::TransferResult result = TRY(transfer(wanted, std::move(request), progress));
  if (result.convert) return std::move(*result.convert);
  return make_error(Kind::corrupt, "berth-transfer has another version");
}

Result<image::CheckReport> check_store(const Context& context, Repair repair) {
  if (repair == Repair::yes) {
    for (const MountedImage& mounted : TRY(list_mounted_images())) {
      return make_error(Kind::busy,
                        "repair the store: image " + quote(mounted.image) + " is mounted at " +
                            quote(mounted.directory),
                        "berth image unmount " + mounted.directory);
    }
  }
  image::CheckRequest request;
  request.repair = repair == Repair::yes;
  image::TransferResult result = TRY(transfer(context, std::move(request), {}));
  if (result.check) return std::move(*result.check);
  return make_error(Kind::corrupt, "berth-transfer has another version");
}

}  // namespace berth::engine
