// SPDX-License-Identifier: Apache-2.0
#include "engine/image/registry_search.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "image/reference.hpp"

namespace berth::engine {
namespace {

/// The largest of several "stars" filters, since each is a minimum.
Result<std::optional<uint64_t>> stars_of(const Filters& filters) {
  std::optional<uint64_t> stars;
  for (const std::string& value : filters.values("stars")) {
    std::optional<uint64_t> number = parse_u64(value);
    if (!number) {
      return make_error(Kind::usage, "--filter stars=" + value + ": expected a number");
    }
    stars = std::max(stars.value_or(0), *number);
  }
  return stars;
}

}  // namespace

Result<std::vector<image::FoundRepository>> search_registry(const Context& context,
                                                            const SearchWish& wish,
                                                            const Progress& progress) {
  TRY(wish.filters.check_keys({"is-automated", "is-official", "stars"}));
  image::SearchRequest request;
  image::SearchTerm term = TRY(image::parse_search_term(wish.term));
  request.registry = std::move(term.registry);
  request.text = std::move(term.text);
  request.limit = wish.limit;
  request.stars = TRY(stars_of(wish.filters));
  request.official = TRY(wish.filters.flag("is-official"));
  request.automated = TRY(wish.filters.flag("is-automated"));
  request.access = wish.access;
  return TRY(transfer(context, std::move(request), progress)).found;
}

Result<TagList> list_tags(const Context& context, const SearchWish& wish,
                          const Progress& progress) {
  if (!wish.filters.empty()) {
    return make_error(Kind::usage, "--filter cannot be used together with --list-tags");
  }
  image::Reference reference = TRY(image::Reference::parse(wish.term));
  image::TagsRequest request;
  request.reference = reference.registry() + "/" + reference.repository();
  request.limit = wish.limit;
  request.access = wish.access;
  return TagList{reference.familiar_name(),
                 TRY(transfer(context, std::move(request), progress)).tags};
}

}  // namespace berth::engine
