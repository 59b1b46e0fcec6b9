// SPDX-License-Identifier: Apache-2.0
#include "engine/image/query.hpp"

#include <fnmatch.h>

#include <algorithm>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/context/time.hpp"
#include "engine/image/store.hpp"

namespace berth::engine {
namespace {

/// Docker's match of a reference with a pattern: a star does not match a slash, and a pattern
/// without a tag matches names.
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
    TRY(query.filters.check_keys(image_filter_keys()));
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
    // As with docker, the argument is one more reference filter.
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

const std::vector<std::string_view>& image_filter_keys() {
  static const std::vector<std::string_view> keys = {"before",    "dangling", "label",
                                                     "reference", "since",    "until"};
  return keys;
}

Result<std::vector<ImageSummary>> query_images(const Context& context, const ImageQuery& query) {
  image::Store store = TRY(open_store(context));
  ImageSieve sieve = TRY(ImageSieve::make(store, query));
  std::vector<ImageSummary> images = TRY(list_images(context));
  std::erase_if(images, [&](const ImageSummary& image) { return !sieve.fits(image); });
  return images;
}

}  // namespace berth::engine
