// SPDX-License-Identifier: Apache-2.0
#include "engine/build/bases.hpp"

#include "base/text.hpp"
#include "engine/image/store.hpp"
#include "engine/site/rules.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"

namespace berth::engine {
namespace {

Result<oci::Platform> wish_of(const std::string& platform) {
  if (platform.empty()) return oci::host_platform();
  return oci::parse_platform(platform);
}

}  // namespace

Result<ResolvedImage> resolve_image(const Context& context, const std::string& name,
                                    const std::string& platform,
                                    const image::RegistryAccess& access) {
  image::Reference reference = TRY(image::Reference::parse(name));
  TRY(check_registry(context, name, nullptr));
  image::ResolveRequest request;
  request.reference = name;
  request.access = access;
  image::TransferResult found = TRY(transfer(context, std::move(request), {}));
  bool single = found.entries.size() == 1 && found.entries.front().config.has_value();
  oci::Descriptor entry;
  if (single) {
    entry = found.entries.front().descriptor;
  } else {
    oci::Index index;
    for (image::ResolvedEntry& one : found.entries) index.manifests.push_back(one.descriptor);
    oci::Platform wish = TRY(wish_of(platform));
    entry = TRY_CTX(oci::select_platform(index, wish), "cannot use " + quote(name));
  }
  return ResolvedImage{
      reference.registry() + "/" + reference.repository() + "@" + entry.digest.text(),
      entry.digest};
}

Result<ResolvedImage> BaseImages::resolve(const std::string& name, const std::string& platform) {
  std::string key = platform + " " + name;
  auto known = resolved_.find(key);
  if (known != resolved_.end()) return known->second;
  ResolvedImage resolved;
  if (from_ == BaseFrom::store) {
    image::Store store = TRY(open_store(context_));
    auto here = TRY(store.find_image(name));
    TRY(check_registry(context_, name, here ? &*here : nullptr));
    resolved = {name, here ? here->manifest_digest : Digest()};
  } else {
    resolved = TRY(resolve_image(context_, name, platform, access_));
  }
  resolved_[key] = resolved;
  return resolved;
}

Result<std::vector<Base>> BaseImages::fetch(const BuildPlace& place,
                                            const std::vector<bake::BaseImage>& images,
                                            const std::string& platform, const Progress& progress) {
  std::vector<Base> bases;
  for (const bake::BaseImage& image : images) {
    std::string layout = TRY_CTX(layout_of(place, image.name, platform, progress),
                                 "cannot build on " + quote(image.name));
    bases.push_back({image.name, layout});
    // buildah 1.28 looks up the name as in the file, before it substitutes arguments.
    if (image.spelled != image.name) bases.push_back({image.spelled, layout});
  }
  return bases;
}

Result<std::string> BaseImages::layout_of(const BuildPlace& place, const std::string& name,
                                          const std::string& platform, const Progress& progress) {
  ResolvedImage resolved = TRY(resolve(name, platform));
  auto known = layouts_.find(resolved.reference);
  if (known != layouts_.end()) return known->second;
  image::Store store = TRY(open_store(context_));
  auto here = TRY(store.find_image(resolved.reference));
  if (!here) {
    image::PullRequest pull;
    pull.reference = resolved.reference;
    if (!platform.empty()) pull.platform = platform;
    pull.access = access_;
    pull.keep_blobs = true;  // for the builder
    TRY(transfer(context_, std::move(pull), progress));
    here = TRY(store.find_image(resolved.reference));
    if (!here) return make_error(Kind::not_found, "find it in the store: it was removed meanwhile");
  }
  // buildah derives an image name from the path, so the path identifies the image and has only
  // characters that are valid in image names.
  std::string layout = "base-" + here->manifest_digest.hex();
  image::SaveRequest save;
  save.references = {resolved.reference};
  save.output = place.work() + "/" + layout;
  save.format = "oci";
  save.access = access_;
  auto present = TRY(sys::stat_entry(sys::cwd(), save.output));
  if (!present) TRY(transfer(context_, std::move(save), {}));
  layouts_[resolved.reference] = layout;
  return layout;
}

}  // namespace berth::engine
