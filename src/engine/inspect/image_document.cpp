// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/image_document.hpp"

#include <utility>
#include <vector>

#include "base/text.hpp"
#include "engine/image/store.hpp"
#include "engine/inspect/container_document.hpp"
#include "json/value.hpp"

namespace berth::engine {
namespace {

json::Value strings(const std::vector<std::string>& texts) {
  json::Array array;
  for (const std::string& text : texts) array.emplace_back(text);
  return json::Value(std::move(array));
}

json::Value inspect_value(const image::Image& image) {
  std::vector<std::string> tags;
  std::vector<std::string> digests;
  for (const image::Reference& reference : image.references) {
    if (!reference.tag().empty()) tags.push_back(reference.familiar());
    if (!image.target.empty()) {
      std::string digest = reference.familiar_name() + "@" + image.target.text();
      if (digests.empty() || digests.back() != digest)
        digests.push_back(digest);  // the names are sorted
    }
  }
  json::Array layers;
  for (const Digest& diff_id : image.config.rootfs.diff_ids) layers.emplace_back(diff_id.text());
  json::Object root_fs = {{"Type", json::Value("layers")},
                          {"Layers", json::Value(std::move(layers))}};
  const std::string comment =
      image.config.history.empty() ? "" : image.config.history.back().comment;
  const std::vector<std::string> directories = image.layer_directories();
  std::string top = directories.empty() ? "" : directories.back();
  std::string lower = join({directories.rbegin() + (top.empty() ? 0 : 1), directories.rend()}, ":");
  json::Object data;
  if (!lower.empty()) data.emplace_back("LowerDir", lower);
  data.emplace_back("UpperDir", top);
  json::Object members = {
      {"Id", image.id.text()},
      {"RepoTags", strings(tags)},
      {"RepoDigests", strings(digests)},
      {"Parent", ""},
      {"Comment", comment},
      {"Created", image.config.created},
      {"Container", ""},
      {"DockerVersion", ""},
      {"Author", image.config.author},
      {"Config", config_document(image.config.config)},
      {"Architecture", image.config.architecture},
  };
  if (!image.config.variant.empty()) members.emplace_back("Variant", image.config.variant);
  json::Object more = {
      {"Os", image.config.os},
      {"Size", image.size},
      {"VirtualSize", image.size},
      {"GraphDriver", json::Object{{"Data", std::move(data)}, {"Name", "overlay"}}},
      {"RootFS", std::move(root_fs)},
      {"Metadata", json::Object{{"LastTagTime", image.pulled_at}}},
  };
  members.insert(members.end(), more.begin(), more.end());
  return json::Value(std::move(members));
}

}  // namespace

Result<std::string> inspect_image(const Context& context, std::string_view reference) {
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(get_image(store, reference));
  return json::dump(inspect_value(image));
}

}  // namespace berth::engine
