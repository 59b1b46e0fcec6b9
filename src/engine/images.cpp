// SPDX-License-Identifier: Apache-2.0
#include "engine/images.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "engine/container_document.hpp"
#include "engine/events.hpp"
#include "engine/image_facts.hpp"
#include "engine/mounted_images.hpp"
#include "engine/store.hpp"
#include "engine/time_text.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

Error no_image_error(std::string_view reference) {
  return make_error(Kind::not_found, "no such image: " + escape_controls(reference),
                    "berth images");
}

Result<image::Image> get_image(const image::Store& store, std::string_view reference) {
  auto found = TRY(store.find_image(reference));
  if (!found) return no_image_error(reference);
  return std::move(*found);
}

ImageSummary summary_of(const image::Image& image, const image::Reference* reference) {
  ImageSummary summary;
  summary.repository = reference != nullptr ? reference->familiar_name() : "<none>";
  summary.tag = reference != nullptr && !reference->tag().empty() ? reference->tag() : "<none>";
  summary.digest = image.target.empty() ? "" : image.target.text();
  summary.id = image.id.text();
  summary.created_at = parse_time(image.config.created).value_or(0);
  summary.size = image.size;
  summary.labels = image.config.config.labels;
  summary.read_only = !image.store.empty();
  return summary;
}

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
        digests.push_back(digest);  // of sorted names
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

Result<std::vector<ImageSummary>> list_images(const Context& context) {
  image::Store store = TRY(open_store(context));
  std::vector<std::string> damaged;
  std::vector<ImageSummary> summaries;
  for (const image::Image& image : TRY(store.list(&damaged))) {
    for (const image::Reference& reference : image.references) {
      summaries.push_back(summary_of(image, &reference));
    }
    if (image.references.empty()) summaries.push_back(summary_of(image, nullptr));
  }
  for (const std::string& text : damaged) context.log.warn(text + ", ignoring");
  return summaries;
}

Result<std::vector<std::string>> tags_of(const Context& context, std::string_view repository) {
  image::Reference wanted = TRY(image::Reference::parse(repository));
  if (repository.find_first_of(":@", repository.rfind('/') + 1) != repository.npos) {
    return make_error(Kind::usage, "tag can't be used with --all-tags/-a");
  }
  image::Store store = TRY(open_store(context));
  std::vector<std::string> damaged;
  std::vector<std::string> references;
  for (const image::Image& image : TRY(store.list(&damaged))) {
    for (const image::Reference& reference : image.references) {
      bool same = reference.registry() == wanted.registry() &&
                  reference.repository() == wanted.repository();
      if (same && !reference.tag().empty()) references.push_back(reference.familiar());
    }
  }
  std::sort(references.begin(), references.end());
  if (!references.empty()) return references;
  return make_error(Kind::not_found,
                    "An image does not exist locally with the tag: " + wanted.familiar_name(),
                    "berth images");
}

Result<RemovedImage> remove_image(const Context& context, std::string_view reference,
                                  RemoveImageOptions options) {
  image::Store store = TRY(open_store(context));
  auto image = TRY(store.find_image(reference));
  if (!image) return no_image_error(reference);
  const std::string id = image->id.text();
  std::string mounted = mounted_at(id);
  // By one of several names the image stays.
  auto named = image::Reference::parse(reference);
  bool by_name =
      named.ok() && std::ranges::find(image->references, *named) != image->references.end();
  bool stays = by_name && image->references.size() > 1;
  if (!mounted.empty() && !stays) {
    return make_error(Kind::busy,
                      "remove image " + quote(reference) + ": it is mounted at " + quote(mounted),
                      "berth image unmount " + mounted);
  }
  image::Removal removal = TRY(store.remove(reference, image::RemoveOptions{options.force}));
  if (removal.kept) {
    context.log.warn("cannot tell what nothing needs any more: " + to_line(*removal.kept) +
                     "; keeping all layers, ignoring");
  }
  RemovedImage removed;
  for (const image::Reference& name : removal.untagged) removed.untagged.push_back(name.familiar());
  for (const Digest& digest : removal.deleted) removed.deleted.push_back(digest.text());
  for (size_t i = 0; i < removed.untagged.size(); ++i) tell_image(context.paths, "untag", id, id);
  if (removed.deleted.empty()) return removed;
  forget_facts(context, *image);
  tell_image(context.paths, "delete", id, id);
  return removed;
}

std::string familiar(std::string_view reference) {
  auto parsed = image::Reference::parse(reference);
  if (!parsed.ok() || !reference.starts_with("docker.io/")) return std::string(reference);
  size_t name_end = reference.find_first_of(":@", reference.rfind('/'));
  return parsed->familiar_name() +
         std::string(name_end == reference.npos ? "" : reference.substr(name_end));
}

Result<void> tag_image(const Context& context, std::string_view source, std::string_view target) {
  image::Store store = TRY(open_store(context));
  image::Reference name = TRY(image::Reference::parse(target));
  if (name.digest()) {
    return make_error(Kind::usage, "a digest cannot be a name: " + quote(target));
  }
  image::Image image = TRY(get_image(store, source));
  TRY(store.tag(image, name));
  tell_image(context.paths, "tag", image.id.text(), name.familiar());
  return {};
}

Result<std::string> inspect_image(const Context& context, std::string_view reference) {
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(get_image(store, reference));
  return json::dump(inspect_value(image));
}

Result<std::vector<HistoryEntry>> image_history(const Context& context,
                                                std::string_view reference) {
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(get_image(store, reference));
  std::vector<HistoryEntry> entries;
  size_t layer = 0;
  for (const oci::History& step : image.config.history) {
    HistoryEntry entry;
    entry.created_at = parse_time(step.created).value_or(0);
    entry.created_by = step.created_by;
    entry.comment = step.comment;
    if (!step.empty_layer && layer < image.layers.size()) entry.size = image.layers[layer++].bytes;
    entries.insert(entries.begin(), std::move(entry));
  }
  // An image without a history still has layers.
  for (; layer < image.layers.size(); ++layer) {
    HistoryEntry entry;
    entry.size = image.layers[layer].bytes;
    entries.insert(entries.begin(), std::move(entry));
  }
  if (!entries.empty()) entries.front().image_id = image.id.text();
  return entries;
}

}  // namespace berth::engine
