// SPDX-License-Identifier: Apache-2.0
#include "transfer/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "json/fields.hpp"
#include "transfer/access.hpp"
#include "transfer/event.hpp"

namespace berth::transfer {
namespace {

using image::FoundRepository;
using image::Reference;
using image::SearchRequest;

constexpr uint32_t kSearchPage = 100;  // Docker Hub gives no more at once
constexpr int kMaxSearchPages = 10;    // they are ranked: what comes later is hardly meant
constexpr int kMaxPages = 1000;
constexpr std::chrono::milliseconds kTellEvery{200};

struct SearchedRepository {
  std::string name;
  std::string description;
  int64_t star_count = 0;
  bool is_official = false;
  bool is_automated = false;
};
template <class V>
void fields(V& v, SearchedRepository& r) {
  v.required("name", r.name);
  v.optional("description", r.description);
  v.optional("star_count", r.star_count);
  v.optional("is_official", r.is_official);
  v.optional("is_automated", r.is_automated);
}

struct SearchPage {
  uint64_t num_pages = 0;  ///< 0: it does not say
  std::vector<SearchedRepository> results;
};
template <class V>
void fields(V& v, SearchPage& p) {
  v.optional("num_pages", p.num_pages);
  v.required("results", p.results);
}

struct Catalog {
  std::vector<std::string> repositories;
};
template <class V>
void fields(V& v, Catalog& c) {
  v.optional("repositories", c.repositories);
}

struct Tags {
  std::vector<std::string> tags;
};
template <class V>
void fields(V& v, Tags& t) {
  v.optional("tags", t.tags);
}

/// What fits, as it comes in: at least as many as are wanted, if there are.
class Findings {
 public:
  Findings(const SearchRequest& request, const WholeRegistry& place, Events& events)
      : request_(request), place_(place), events_(events) {}

  bool full() const { return found_.size() >= request_.limit; }
  std::vector<FoundRepository>& found() { return found_; }

  /// Says how far the search is, after `names` more, now and then.
  void tell(size_t names) {
    looked_at_ += names;
    auto now = std::chrono::steady_clock::now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    events_.status(fmt::format("Searching {}: {} names", request_.registry, looked_at_));
  }

  /// `repository.name` is the registry's own.
  void add(FoundRepository repository) {
    if (!fits(repository)) return;
    std::string_view name = repository.name;
    if (!place_.below.empty()) {
      if (!name.starts_with(place_.below + "/")) return;
      name.remove_prefix(place_.below.size() + 1);
    }
    auto parsed = Reference::parse(request_.registry + "/" + std::string(name));
    // A name of one part is what Docker Hub's index calls "library/NAME", and of no use elsewhere.
    bool usable = parsed.ok() && name.find_first_of("@:#") == name.npos &&
                  (place_.is_hub || parsed->repository() == name);
    if (!usable) {
      ++unusable_;
      return;
    }
    if (is_blocked(request_.access, parsed->registry() + "/" + parsed->repository())) return;
    repository.name = parsed->familiar_name();
    found_.push_back(std::move(repository));
  }

  void finish() {
    if (unusable_ == 0) return;
    events_.warn(fmt::format("registry '{}' lists {} {} that no image can have: left out",
                             escape_controls(request_.registry), unusable_,
                             unusable_ == 1 ? "name" : "names"));
  }

 private:
  bool fits(const FoundRepository& repository) const {
    return repository.stars >= request_.stars.value_or(0) &&
           repository.official == request_.official.value_or(repository.official) &&
           repository.automated == request_.automated.value_or(repository.automated);
  }

  const SearchRequest& request_;
  const WholeRegistry& place_;
  Events& events_;
  std::vector<FoundRepository> found_;
  size_t looked_at_ = 0;
  size_t unusable_ = 0;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

/// Nothing where the registry has no search.
Result<std::optional<SearchPage>> read_search_page(Registry& registry, const std::string& text,
                                                   int page) {
  auto response = TRY(
      registry.search(fmt::format("q={}&n={}&page={}", percent_encode(text), kSearchPage, page)));
  if (!response) return std::optional<SearchPage>();
  SearchPage read = TRY(json::read<SearchPage>(response->body, "the answer to /v1/search"));
  return std::optional<SearchPage>(std::move(read));
}

/// Docker's search, from its first page, which is there already.
Result<void> search_pages(Registry& registry, const SearchRequest& request, SearchPage page,
                          Findings& findings) {
  std::string first;  // name of the page before
  for (int number = 1; !page.results.empty(); ++number) {
    // One that knows no pages gives the same again.
    if (page.results.front().name == first) return {};
    first = page.results.front().name;
    bool more = page.num_pages == 0 ? page.results.size() >= kSearchPage
                                    : static_cast<uint64_t>(number) < page.num_pages;
    findings.tell(page.results.size());
    for (SearchedRepository& one : page.results) {
      uint64_t stars = static_cast<uint64_t>(std::max<int64_t>(one.star_count, 0));
      findings.add({std::move(one.name), std::move(one.description), stars, one.is_official,
                    one.is_automated});
    }
    if (!more || findings.full() || number == kMaxSearchPages) return {};
    auto next = TRY(read_search_page(registry, request.text, number + 1));
    if (!next) return {};
    page = std::move(*next);
  }
  return {};
}

/// Whether every word of `text` is in `name`.
bool holds(std::string_view name, std::string_view text) {
  std::vector<std::string_view> words = split_blank(text);
  return std::all_of(words.begin(), words.end(),
                     [&](std::string_view word) { return name.find(word) != name.npos; });
}

/// Calls `take` with each page of a list until it has enough; `ask` gets the query of one.
Result<void> each_page(const std::string& list,
                       const std::function<Result<HttpResponse>(const std::string& query)>& ask,
                       const std::function<Result<bool>(const HttpResponse& page)>& take,
                       Events& events) {
  std::string query;
  for (int number = 1; number <= kMaxPages; ++number) {
    HttpResponse page = TRY(ask(query));
    bool enough = TRY(take(page));
    auto next = next_page(page);
    if (enough || !next) return {};
    if (*next == query) {
      return make_error(Kind::corrupt, fmt::format("{} names itself as the page after it", list));
    }
    query = std::move(*next);
  }
  events.warn(fmt::format("{} has more than {} pages: the rest was not read", list, kMaxPages));
  return {};
}

Result<void> look_through(Registry& registry, const SearchRequest& request, Findings& findings,
                          Events& events) {
  const std::string text = to_lower(request.text);
  return each_page(
      fmt::format("the list of repositories of '{}'", escape_controls(request.registry)),
      [&](const std::string& query) -> Result<HttpResponse> {
        auto page = TRY(registry.list_repositories(query));
        if (page) return *std::move(page);
        return make_error(
            Kind::unsupported,
            fmt::format("registry '{}' has neither a search nor a list of its repositories",
                        request.registry),
            fmt::format("its web page, or berth search --list-tags {}/NAME", request.registry));
      },
      [&](const HttpResponse& page) -> Result<bool> {
        Catalog catalog = TRY(json::read<Catalog>(page.body, "the answer to /v2/_catalog"));
        findings.tell(catalog.repositories.size());
        for (std::string& name : catalog.repositories) {
          if (findings.full()) break;
          if (!holds(name, text)) continue;
          FoundRepository repository;
          repository.name = std::move(name);
          findings.add(std::move(repository));
        }
        return findings.full();
      },
      events);
}

/// Which filter asks for what a list of names does not tell; null: none does.
const char* unknown_filter(const SearchRequest& request) {
  if (request.stars.value_or(0) > 0) return "stars";
  if (request.official.value_or(false)) return "is-official";
  if (request.automated.value_or(false)) return "is-automated";
  return nullptr;
}

Result<void> search_place(WholeRegistry& place, const SearchRequest& request, Findings& findings,
                          const Cancel& cancel, Events& events) {
  if (!request.text.empty()) {
    if (!place.is_hub) place.registry.try_once();  // the list of repositories is at hand
    auto first = read_search_page(place.registry, request.text, 1);
    TRY(cancel.check());
    if (place.is_hub && !first.ok()) return std::move(first).error();
    place.registry.try_again();
    if (first.ok() && *first) {
      return search_pages(place.registry, request, std::move(**first), findings);
    }
  }
  if (const char* filter = unknown_filter(request)) {
    return make_error(Kind::unsupported,
                      fmt::format("--filter {}: registry '{}' has a list of names alone", filter,
                                  request.registry),
                      "without the filter");
  }
  return look_through(place.registry, request, findings, events);
}

}  // namespace

Result<image::TransferResult> search(const SearchRequest& request, const EventSink& sink,
                                     Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  const std::string what = fmt::format("cannot search '{}'", escape_controls(request.registry));
  Http http(http_options(request.access), cancel);
  WholeRegistry place =
      TRY_CTX(open_whole(http, cancel, request.access, request.registry, events), what);
  Findings findings(request, place, events);
  TRY_CTX(search_place(place, request, findings, cancel, events), what);
  findings.finish();
  image::TransferResult result;
  result.found = std::move(findings.found());
  std::stable_sort(result.found.begin(), result.found.end(),
                   [](const auto& a, const auto& b) { return a.stars > b.stars; });
  if (result.found.size() > request.limit) result.found.resize(request.limit);
  return result;
}

Result<image::TransferResult> list_tags(const image::TagsRequest& request, const EventSink& sink,
                                        Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  const std::string what = fmt::format("cannot list the tags of {}", quote(request.reference));
  Reference reference = TRY_CTX(Reference::parse(request.reference), what);
  Http http(http_options(request.access), cancel);
  Holds holds = [](Registry& one) -> Result<void> {
    TRY(one.list_tags(""));
    return {};
  };
  Registry registry =
      TRY_CTX(open_source(http, cancel, request.access, reference, events, holds), what);
  image::TransferResult result;
  auto ask = [&](const std::string& query) { return registry.list_tags(query); };
  auto take = [&](const HttpResponse& page) -> Result<bool> {
    Tags list = TRY(json::read<Tags>(page.body, "the answer to tags/list"));
    size_t room = request.limit - result.tags.size();
    for (std::string& tag : list.tags) {
      if (room == 0) break;
      result.tags.push_back(std::move(tag));
      --room;
    }
    return room == 0;
  };
  TRY_CTX(each_page("the list of tags", ask, take, events), what);
  return result;
}

}  // namespace berth::transfer
