// SPDX-License-Identifier: Apache-2.0
#include "engine/image/images.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/context/time.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/mounted.hpp"
#include "engine/image/store.hpp"
#include "engine/state/journal.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

Error no_image_error(std::string_view reference) {
  return make_error(Kind::not_found, "no such image: " + escape_controls(reference),
                    "berth images");
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

/// Matches a reference with a pattern as Docker does: a star does not match a slash, and a pattern
/// without a tag is compared with the name alone.
bool matches(const std::string& pattern, const ImageSummary& image) {
  auto fits = [&](const std::string& text) {
    return ::fnmatch(pattern.c_str(), text.c_str(), FNM_PATHNAME) == 0;
  };
  return fits(image.repository + ":" + image.tag) || fits(image.repository) ||
         (!image.digest.empty() && fits(image.repository + "@" + image.digest));
}

Result<int64_t> created(const image::Store& store, const std::string& name) {
  auto image = TRY(store.find_image(name));
  if (!image)
    return make_error(Kind::not_found, "no such image: " + escape_controls(name), "berth images");
  return parse_time(image->config.created).value_or(0);
}

class ImageSieve {
 public:
  static Result<ImageSieve> make(const image::Store& store, const ImageQuery& query) {
    TRY(query.filters.check_keys({"before", "dangling", "label", "reference", "since", "until"}));
    ImageSieve sieve(query);
    sieve.dangling_ = TRY(query.filters.flag("dangling"));
    for (const std::string& name : query.filters.values("before")) {
      sieve.before_ = TRY(created(store, name));
    }
    for (const std::string& name : query.filters.values("since")) {
      sieve.since_ = TRY(created(store, name));
    }
    for (const std::string& text : query.filters.values("until")) {
      auto moment = parse_moment(text, query.now);
      if (!moment) {
        return make_error(Kind::usage, "invalid filter " + quote("until=" + text) +
                                           ": expected a duration such as 24h, or a time");
      }
      sieve.until_ = *moment / kNanosecondsPerSecond;
    }
    return sieve;
  }

  bool fits(const ImageSummary& image) const {
    if (dangling_ && *dangling_ != (image.tag == "<none>")) return false;
    if (before_ && image.created_at >= *before_) return false;
    if (since_ && image.created_at <= *since_) return false;
    if (until_ && image.created_at > *until_) return false;
    if (!query_.filters.fits_labels(image.labels)) return false;
    // As with docker, the argument acts as one more reference filter.
    auto fits = [&](const std::string& pattern) { return matches(familiar(pattern), image); };
    if (!query_.repository) return query_.filters.fits("reference", fits);
    return fits(*query_.repository) ||
           (query_.filters.has("reference") && query_.filters.fits("reference", fits));
  }

 private:
  explicit ImageSieve(const ImageQuery& query) : query_(query) {}

  const ImageQuery& query_;
  std::optional<bool> dangling_;
  std::optional<int64_t> before_, since_, until_;
};

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
  std::ranges::sort(references);
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
  // If the image has several names, removing one name keeps the image.
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
    context.log.warn("cannot find out what is still needed: " + to_line(*removal.kept) +
                     "; keeping all layers, ignoring");
  }
  RemovedImage removed;
  for (const image::Reference& name : removal.untagged) removed.untagged.push_back(name.familiar());
  for (const Digest& digest : removal.deleted) removed.deleted.push_back(digest.text());
  for (size_t i = 0; i < removed.untagged.size(); ++i)
    emit_image_event(context.paths, "untag", id, id);
  if (removed.deleted.empty()) return removed;
  forget_facts(context, *image);
  emit_image_event(context.paths, "delete", id, id);
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
  emit_image_event(context.paths, "tag", image.id.text(), name.familiar());
  return {};
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

Result<std::vector<ImageSummary>> query_images(const Context& context, const ImageQuery& query) {
  image::Store store = TRY(open_store(context));
  ImageSieve sieve = TRY(ImageSieve::make(store, query));
  std::vector<ImageSummary> images = TRY(list_images(context));
  std::erase_if(images, [&](const ImageSummary& image) { return !sieve.fits(image); });
  return images;
}

}  // namespace berth::engine
