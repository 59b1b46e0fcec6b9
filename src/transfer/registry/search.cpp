// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "json/fields.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/registry/verbs.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {
namespace {

using image::FoundRepository;
using image::Reference;
using image::SearchRequest;

constexpr size_t kSearchPage = 100;  // Docker Hub's maximum
constexpr int kMaxSearchPages = 10;  // results are ranked: later ones are hardly relevant
constexpr size_t kMaxDescription = 1024;
// Limits of a whole list: more pages, bytes or time than any registry needs.
constexpr int kMaxPages = 1000;
constexpr size_t kMaxListBytes = size_t{64} << 20;
constexpr std::chrono::minutes kMaxListTime{10};
constexpr std::chrono::milliseconds kTellEvery{200};

struct SearchedRepository {
  std::string name;
  std::string description;
  int64_t star_count = 0;
  bool is_official = false;
  bool is_automated = false;
};
void fields(auto& v, SearchedRepository& r) {
  v.required("name", r.name);
  v.optional("description", r.description);
  v.optional("star_count", r.star_count);
  v.optional("is_official", r.is_official);
  v.optional("is_automated", r.is_automated);
}

/// Each result is parsed separately, so that an invalid result does not affect the others.
struct SearchPage {
  json::Value num_pages;
  std::vector<json::Value> results;
};
void fields(auto& v, SearchPage& p) {
  v.optional("num_pages", p.num_pages);
  v.optional("results", p.results);
}

struct Catalog {
  std::vector<std::string> repositories;
};
void fields(auto& v, Catalog& c) {
  v.optional("repositories", c.repositories);
}

struct Tags {
  std::vector<std::string> tags;
};
void fields(auto& v, Tags& t) {
  v.optional("tags", t.tags);
}

/// The untrusted text on one line and with limited length.
std::string description_of(std::string text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    auto after = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    bool c1 = byte == 0xc2 && after >= 0x80 && after < 0xa0;  // U+0080 to U+009F
    bool control = byte < 0x20 || byte == 0x7f || c1;
    out += control ? ' ' : text[i];
    if (c1) ++i;
  }
  if (out.size() <= kMaxDescription) return out;
  size_t end = kMaxDescription;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  return out.substr(0, end) + "…";
}

/// Collects matches. It may collect too many, as each page of a search is added as a whole.
class Findings {
 public:
  Findings(const SearchRequest& request, const WholeRegistry& target, Events& events)
      : request_(request), target_(target), events_(events) {}

  bool full() const { return found_.size() >= request_.limit; }
  std::vector<FoundRepository>& found() { return found_; }

  /// Counts `names` more names, and from time to time reports the progress of the search.
  void report(size_t names) {
    looked_at_ += names;
    auto now = std::chrono::steady_clock::now();
    if (now - told_ < kTellEvery) return;
    told_ = now;
    events_.status(fmt::format("Searching {}: {} names", request_.registry, looked_at_));
  }

  void pass_over() { ++unusable_; }

  /// Adds a name of a list, if it contains every word of the text.
  void add_listed(const std::string& name) {
    FoundRepository repository;
    auto own = own_name(name);
    if (!own || !holds(*own, to_lower(request_.text))) return;
    repository.name = std::move(*own);
    take(std::move(repository));
  }

  /// Adds a result of the registry's own search.
  void add_searched(const SearchedRepository& searched) {
    FoundRepository repository;
    repository.description = description_of(searched.description);
    repository.stars = static_cast<uint64_t>(std::max<int64_t>(searched.star_count, 0));
    repository.official = searched.is_official;
    repository.automated = searched.is_automated;
    auto own = own_name(searched.name);
    if (!own || !fits(repository)) return;
    repository.name = std::move(*own);
    take(std::move(repository));
  }

  void finish() {
    if (unusable_ == 0) return;
    events_.warn(fmt::format("registry '{}' lists {} {} that no image can have, ignoring",
                             request_.registry, unusable_, unusable_ == 1 ? "name" : "names"));
  }

 private:
  /// The repository's name at the requested registry, without the path that the site's rules put in
  /// front of it. Nothing for a repository with another path.
  std::optional<std::string> own_name(const std::string& name) const {
    std::string whole = name;
    bool short_name = target_.is_hub && name.find('/') == name.npos;
    if (short_name) whole = "library/" + name;  // Docker Hub's index says "nginx"
    if (target_.below.empty()) return whole;
    if (!whole.starts_with(target_.below + "/")) return std::nullopt;
    return whole.substr(target_.below.size() + 1);
  }

  static bool holds(const std::string& name, const std::string& text) {
    std::vector<std::string_view> words = split_blank(text);
    return std::ranges::all_of(words,
                               [&](std::string_view word) { return name.find(word) != name.npos; });
  }

  bool fits(const FoundRepository& repository) const {
    return repository.stars >= request_.stars.value_or(0) &&
           repository.official == request_.official.value_or(repository.official) &&
           repository.automated == request_.automated.value_or(repository.automated);
  }

  /// Whether the site's rules would refuse a pull of the repository, or send it to another place.
  bool is_elsewhere(const std::string& name) const {
    const image::RegistryRule* rule = image::rule_of(request_.access.registries, name);
    return rule != nullptr && rule != target_.rule && (rule->blocked || !rule->location.empty());
  }

  void take(FoundRepository repository) {
    auto parsed = Reference::parse(request_.registry + "/" + repository.name);
    // "debian" of a Docker Hub mirror is not a valid name there: "debian" means "library/debian".
    if (!parsed.ok() || parsed->repository() != repository.name) return pass_over();
    if (is_elsewhere(request_.registry + "/" + repository.name)) return;
    repository.name = parsed->familiar_name();
    if (seen_.insert(repository.name).second) found_.push_back(std::move(repository));
  }

  const SearchRequest& request_;
  const WholeRegistry& target_;
  Events& events_;
  std::vector<FoundRepository> found_;
  std::set<std::string> seen_;  ///< names of `found_`
  size_t looked_at_ = 0;
  size_t unusable_ = 0;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

/// Reads one page; nothing if the registry has no search.
Result<std::optional<SearchPage>> read_search_page(Registry& registry, const std::string& text,
                                                   int page) {
  auto response = TRY(
      registry.search(fmt::format("q={}&n={}&page={}", percent_encode(text), kSearchPage, page)));
  if (!response) return std::optional<SearchPage>();
  SearchPage read = TRY(json::read<SearchPage>(response->body, "the answer to /v1/search"));
  return std::optional<SearchPage>(std::move(read));
}

/// Adds the results of `page`, the first page of Docker's search, and of the further pages.
Result<void> search_pages(Registry& registry, const SearchRequest& request, SearchPage page,
                          Findings& findings, Events& events) {
  std::set<std::string> names;
  for (int number = 1;; ++number) {
    size_t before = names.size();
    findings.report(page.results.size());
    for (const json::Value& value : page.results) {
      auto one = json::from_value<SearchedRepository>(value, "result");
      if (!one.ok()) {
        findings.pass_over();
      } else if (names.size() < kMaxSearchPages * kSearchPage && names.insert(one->name).second) {
        findings.add_searched(*one);
      }
    }
    auto pages = json::from_value<uint64_t>(page.num_pages, "num_pages");
    bool more =
        pages.ok() ? static_cast<uint64_t>(number) < *pages : page.results.size() >= kSearchPage;
    // A registry without pages repeats the same list.
    if (!more || findings.full() || names.size() == before) return {};
    if (number == kMaxSearchPages) {
      events.warn(fmt::format("registry '{}' has more results: only the first {} are shown",
                              request.registry, findings.found().size()));
      return {};
    }
    auto next = TRY(read_search_page(registry, request.text, number + 1));
    if (!next) return {};
    page = std::move(*next);
  }
}

/// Calls `take` with each page of `list` until it has enough; `ask` fetches the page of a query.
Result<void> each_page(const std::string& list,
                       const std::function<Result<HttpResponse>(const std::string& query)>& ask,
                       const std::function<Result<bool>(const HttpResponse& page)>& take,
                       Events& events) {
  auto end = std::chrono::steady_clock::now() + kMaxListTime;
  size_t bytes = 0;
  std::string query;
  std::set<std::string> asked;
  while (asked.insert(query).second) {
    HttpResponse page = TRY(ask(query));
    bytes += page.body.size();
    bool enough = TRY(take(page));
    if (enough) return {};
    auto next = TRY_CTX(next_page(page), "cannot read " + list);
    if (!next) return {};
    query = std::move(*next);
    bool too_much = asked.size() == kMaxPages || bytes > kMaxListBytes ||
                    std::chrono::steady_clock::now() > end;
    if (too_much) {
      events.warn(fmt::format("{} is not read to its end, after {} pages and {} bytes", list,
                              asked.size(), bytes));
      return {};
    }
  }
  return make_error(Kind::corrupt, fmt::format("read {}: a page leads back to one before", list));
}

std::string list_of(const SearchRequest& request) {
  return fmt::format("the list of repositories of '{}'", request.registry);
}

/// False: the registry has no such list.
Result<bool> look_through(Registry& registry, const SearchRequest& request, Findings& findings,
                          Events& events) {
  auto first = TRY(registry.list_repositories(""));
  if (!first) return false;
  auto ask = [&](const std::string& query) -> Result<HttpResponse> {
    if (query.empty()) return *std::move(first);
    auto page = TRY(registry.list_repositories(query));
    if (page) return *std::move(page);
    return make_error(Kind::corrupt, fmt::format("read {}: a page is missing", list_of(request)));
  };
  auto take = [&](const HttpResponse& page) -> Result<bool> {
    Catalog catalog = TRY(json::read<Catalog>(page.body, "the answer to /v2/_catalog"));
    findings.report(catalog.repositories.size());
    for (const std::string& name : catalog.repositories) {
      if (findings.full()) break;
      findings.add_listed(name);
    }
    return findings.full();
  };
  TRY(each_page(list_of(request), ask, take, events));
  return true;
}

/// The first filter that needs more than a list of names; null: none.
const char* unknown_filter(const SearchRequest& request) {
  if (request.stars.value_or(0) > 0) return "stars";
  if (request.official.value_or(false)) return "is-official";
  if (request.automated.value_or(false)) return "is-automated";
  return nullptr;
}

Result<void> search_target(WholeRegistry& target, const SearchRequest& request, Findings& findings,
                           const Cancel& cancel, Events& events) {
  std::optional<Error> failed;  // the registry may have a search, but it did not answer
  if (!request.text.empty()) {
    if (!target.is_hub) target.registry.try_once();  // the list of repositories is the alternative
    auto first = read_search_page(target.registry, request.text, 1);
    TRY(cancel.check());
    target.registry.try_again();
    if (first.ok() && *first) {
      return search_pages(target.registry, request, std::move(**first), findings, events);
    }
    if (!first.ok()) failed = std::move(first).error();
    if (failed && target.is_hub) return *std::move(failed);
  }
  if (const char* filter = unknown_filter(request)) {
    if (failed) return *std::move(failed);
    return make_error(Kind::unsupported,
                      fmt::format("--filter {}: registry '{}' has only a list of names", filter,
                                  request.registry),
                      "without the filter");
  }
  bool has_list = TRY(look_through(target.registry, request, findings, events));
  if (has_list) return {};
  if (failed) return *std::move(failed);
  return make_error(
      Kind::unsupported,
      fmt::format("registry '{}' has neither a search nor a list of its repositories",
                  request.registry),
      fmt::format("its web page, or berth search --list-tags {}/NAME", request.registry));
}

}  // namespace

Result<image::TransferResult> search(const SearchRequest& request, const EventSink& sink,
                                     Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  auto what = [&] { return fmt::format("cannot search '{}'", request.registry); };
  Http http(http_options(request.access), cancel);
  WholeRegistry target =
      TRY_CTX(open_whole(http, cancel, request.access, request.registry, events), what());
  Findings findings(request, target, events);
  TRY_CTX(search_target(target, request, findings, cancel, events), what());
  findings.finish();
  image::TransferResult result;
  result.found = std::move(findings.found());
  std::ranges::stable_sort(result.found,
                           [](const auto& a, const auto& b) { return a.stars > b.stars; });
  if (result.found.size() > request.limit) result.found.resize(request.limit);
  return result;
}

Result<image::TransferResult> list_tags(const image::TagsRequest& request, const EventSink& sink,
                                        Cancel& cancel) {
  Events events(sink, Events::Layers::hidden);
  auto what = [&] { return fmt::format("cannot list the tags of {}", quote(request.reference)); };
  Reference reference = TRY_CTX(Reference::parse(request.reference), what());
  Http http(http_options(request.access), cancel);
  std::optional<HttpResponse> first;  // of the source that is used
  Holds holds = [&first](Registry& one) -> Result<void> {
    first = TRY(one.list_tags(""));
    return {};
  };
  Registry registry =
      TRY_CTX(open_source(http, cancel, request.access, reference, events, holds), what());
  image::TransferResult result;
  size_t unusable = 0;
  auto ask = [&](const std::string& query) -> Result<HttpResponse> {
    if (query.empty() && first) return *std::move(first);
    return registry.list_tags(query);
  };
  auto take = [&](const HttpResponse& page) -> Result<bool> {
    Tags list = TRY(json::read<Tags>(page.body, "the answer to tags/list"));
    for (std::string& tag : list.tags) {
      if (result.tags.size() == request.limit) break;
      if (image::is_tag(tag)) {
        result.tags.push_back(std::move(tag));
      } else {
        ++unusable;
      }
    }
    return result.tags.size() == request.limit;
  };
  TRY_CTX(each_page("the list of tags", ask, take, events), what());
  if (unusable > 0) {
    events.warn(fmt::format("{} lists {} {}: left out", quote(request.reference), unusable,
                            unusable == 1 ? "tag that is none" : "tags that are none"));
  }
  return result;
}

}  // namespace berth::transfer
