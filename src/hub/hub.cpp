// SPDX-License-Identifier: Apache-2.0
#include "hub/hub.hpp"

#include <string>

#include "base/digest.hpp"
#include "base/text.hpp"
#include "hub/choice.hpp"
#include "hub/config/config.hpp"
#include "hub/reply.hpp"
#include "hub/sources.hpp"
#include "json/fields.hpp"
#include "node/file/load.hpp"
#include "sys/file/file.hpp"
#include "transfer/registry/url.hpp"
#include "transfer/sign/published_facts.hpp"

namespace berth::hub {
namespace {

using transfer::HttpResponse;
using transfer::Nearness;
using Follow = transfer::Registry::Follow;

// ---- transfer of a blob through the hub, or past it ---------------------------------------------

struct BlobWish {
  Digest digest;
  bool head = false;
  std::string range;            ///< result of plain_range()
  bool client_is_near = false;  ///< on this machine: loopback addresses lead to the same place
};

/// The headers for a blob, from the answer of the registry.
Reply head_of(const HttpResponse& response, const BlobWish& wish) {
  Reply reply;
  reply.status = static_cast<unsigned>(response.status);
  reply.headers = {{"Content-Type", "application/octet-stream"},
                   {"Docker-Content-Digest", wish.digest.text()},
                   {"Accept-Ranges", "bytes"}};
  auto length = parse_u64(response.header("content-length").value_or(""));
  if (length) reply.length = *length;
  auto range = response.header("content-range");
  if (range && range->find_first_of("\r\n") == range->npos) {
    reply.headers.emplace_back("Content-Range", std::string(*range));
  }
  return reply;
}

Reply redirect_to(const transfer::Url& url) {
  Reply reply;
  reply.status = 307;
  reply.headers = {{"Location", url.text()}};
  return reply;
}

/// Whether the client can reach the URL as well as the hub can.
bool is_for(const transfer::Url& url, const BlobWish& wish) {
  Nearness near = transfer::nearness(url.host);
  return near == Nearness::anywhere || (near == Nearness::machine && wish.client_is_near);
}

/// Passes the redirect on, unless the client must not follow it.
std::optional<Reply> pass_redirect(const HttpResponse& response, const BlobWish& wish) {
  auto next = transfer::resolve_url(response.url, std::string(*response.header("location")));
  if (!next.ok() || !is_for(*next, wish)) return std::nullopt;
  if (response.url.scheme == "https" && next->scheme == "http") return std::nullopt;
  // A redirect by a remote registry could name an address of this machine, which a client on this
  // machine can reach.
  if (wish.client_is_near && response.from != Nearness::machine) return std::nullopt;
  return redirect_to(*next);
}

/// Checks that the answer is the blob or the requested range: otherwise the body of a 204, for
/// example, would be passed on as the blob.
Result<void> check_status(const HttpResponse& response, const BlobWish& wish) {
  bool whole = response.status == 200;
  bool part = response.status == 206 && !wish.range.empty() && !wish.head;
  if (whole || part) return {};
  return make_error(Kind::corrupt, fmt::format("read '{}': the registry answers a request for {} "
                                               "with status {}",
                                               response.url.shown(),
                                               wish.range.empty() ? "a blob" : "a part of a blob",
                                               response.status));
}

Result<Reply> look_at(Source& source, const BlobWish& wish) {
  HttpResponse response = TRY(source.registry().look_at_blob(wish.digest, Follow::yes));
  if (response.broken) return std::move(*response.broken);
  TRY(check_status(response, wish));
  return head_of(response, wish);
}

Result<void> begin(const HttpResponse& head, const BlobWish& wish, Output& output) {
  if (output.begun()) return {};
  TRY(check_status(head, wish));
  return output.begin(head_of(head, wish));
}

/// Streams the blob. Nothing if the registry redirects to where the client must not be sent.
Result<std::optional<Reply>> stream(Source& source, const BlobWish& wish, Follow follow,
                                    Output& output) {
  auto take = [&](const HttpResponse& head, std::string_view bytes) -> Result<void> {
    TRY(begin(head, wish, output));
    return output.write(bytes);
  };
  HttpResponse response = TRY(source.registry().pass_blob(wish.digest, wish.range, follow, take));
  // Checked before `broken`: docker-registry announces a wrong length with a 416, which breaks the
  // response too.
  if (response.status == 416) {
    return std::optional(refusal(416, "RANGE_INVALID", "the blob has no such bytes"));
  }
  if (response.broken) return std::move(*response.broken);
  if (transfer::is_redirect(response)) return pass_redirect(response, wish);
  TRY(begin(response, wish, output));  // not called yet if the blob has no bytes
  return std::optional(Reply());
}

Result<Reply> give(Source& source, const BlobWish& wish, Blobs way, Output& output) {
  if (way == Blobs::redirect) {
    // A registry that serves the blob anonymously serves it to the client too.
    Reply found = TRY(look_at(source, wish));
    if (wish.head) return found;
    transfer::Url url = source.registry().blob_url(wish.digest);
    if (source.registry().is_anonymous() && is_for(url, wish)) return redirect_to(url);
    auto given = TRY(stream(source, wish, Follow::no, output));
    if (given) return std::move(*given);
  }
  if (wish.head) return look_at(source, wish);
  auto given = TRY(stream(source, wish, Follow::yes, output));
  BERTH_ASSERT(given.has_value());
  return std::move(*given);
}

/// Returns the reply if it is for a HEAD, a redirect or a refusal; otherwise streams to `output`.
/// Errors: io (the client or the registry has disconnected).
Result<Reply> give_blob(Source& source, const BlobWish& wish, Blobs way, Output& output,
                        Note& note) {
  auto given = give(source, wish, way, output);
  if (given.ok()) return given;
  note.error = to_line(given.error());
  if (output.begun()) return given;
  return upstream_refusal(given.error(), "BLOB_UNKNOWN");
}

constexpr size_t kMaxHtpasswd = size_t{8} << 20;

/// The answer to tags/list.
struct TagList {
  std::string name;
  std::vector<std::string> tags;
};
void fields(auto& v, TagList& t) {
  v.required("name", t.name);
  v.always("tags", t.tags);
}

class Permit {
 public:
  /// Releases the parser slot while this thread waits for a registry.
  class Pause {
   public:
    explicit Pause(Permit& permit) : permit_(permit) { permit_.slots_.release(); }
    ~Pause() { permit_.slots_.acquire(); }
    Pause(Pause&&) = delete;

   private:
    Permit& permit_;
  };

  explicit Permit(std::counting_semaphore<2>& slots) : slots_(slots) { slots_.acquire(); }
  ~Permit() { slots_.release(); }
  Permit(Permit&&) = delete;

 private:
  std::counting_semaphore<2>& slots_;
};

/// Logs messages of the registry client that concern the site.
void log_event(const image::TransferEvent& event, Log& log) {
  if (const auto* warning = std::get_if<image::WarningEvent>(&event)) log.warn(warning->text);
}

Reply ask_who() {
  Reply reply = refusal(401, "UNAUTHORIZED", "this hub wants a user name and a password");
  reply.headers.emplace_back("WWW-Authenticate", "Basic realm=\"berth hub\", charset=\"UTF-8\"");
  return reply;
}

Reply not_served(std::string_view name) {
  return refusal(404, "NAME_UNKNOWN", fmt::format("{} is not served here", quote(name)));
}

}  // namespace

/// A request, and the facts about the client.
struct Hub::Question {
  const Asked& asked;
  Nodes::Caller caller;
  Note note;
  bool head() const { return asked.method == "HEAD"; }
};

Result<std::unique_ptr<Hub>> Hub::make(Order order, const transfer::Cancel& cancel, Log& log) {
  const Config& config = order.config;
  std::optional<Htpasswd> accounts;
  if (!config.htpasswd.empty()) {
    std::string text = TRY(sys::read_file(sys::cwd(), config.htpasswd, kMaxHtpasswd));
    accounts = TRY(Htpasswd::parse(text, config.htpasswd));
  }
  std::vector<node::Profile> fleet;
  if (!config.fleet.empty()) fleet = TRY(node::load_fleet(config.fleet));
  Nodes nodes = TRY(Nodes::make(config, std::move(fleet)));
  return std::unique_ptr<Hub>(
      new Hub(std::move(order), std::move(accounts), std::move(nodes), cancel, log));
}

Hub::Hub(Order order, std::optional<Htpasswd> accounts, Nodes nodes, const transfer::Cancel& cancel,
         Log& log)
    : config_(std::move(order.config)),
      accounts_(std::move(accounts)),
      nodes_(std::move(nodes)),
      trust_{order.fetch_facts, order.signed_only, std::move(order.keys)},
      sources_(config_, cancel, log),
      events_([&log](const image::TransferEvent& event) { log_event(event, log); },
              transfer::Events::Layers::hidden) {}

Answer Hub::answer(const Asked& asked) {
  Question question{asked, {}, {}};
  Answer answer;
  if (auto refused = know_caller(asked, question)) {
    answer.reply = std::move(*refused);
  } else {
    Route route = route_of(asked.method, asked.target);
    answer = std::visit([&](const auto& one) { return answer_route(one, question); }, route);
  }
  answer.note = std::move(question.note);
  return answer;
}

/// Identifies the client, and refuses one without access before the request is examined.
std::optional<Reply> Hub::know_caller(const Asked& asked, Question& question) {
  question.caller.header = asked.node;
  question.caller.address = asked.address;
  auto login = read_basic(asked.authorization);
  if (login) {
    question.caller.login = login->name;
    question.caller.name = read_login_name(
        login->name, [&](std::string_view name) { return accounts_ && accounts_->has(name); });
  }
  if (!accounts_) return std::nullopt;
  if (!login || !accounts_->verify(question.caller.name.account, login->password)) return ask_who();
  question.note.user = login->name;
  return std::nullopt;
}

Answer Hub::answer_route(const PingRoute&, Question&) {
  Reply reply;
  reply.headers = {{"Content-Type", "application/json"}};
  reply.body = std::make_shared<const std::string>("{}\n");
  return {std::move(reply), {}, {}};
}

Answer Hub::answer_route(const Reply& reply, Question&) {
  return {reply, {}, {}};
}

Answer Hub::answer_route(const ManifestRoute& route, Question& question) {
  auto place = place_of(config_.upstream, route.name);
  if (!place) return {not_served(route.name), {}, {}};
  auto given = [&]() -> Result<Reply> {
    auto source = TRY(sources_.get(*place));
    return give_manifest(route, *source, question);
  }();
  if (given.ok()) return {std::move(*given), {}, {}};
  question.note.error = to_line(given.error());
  return {upstream_refusal(given.error(), "MANIFEST_UNKNOWN"), {}, {}};
}

Result<Reply> Hub::give_manifest(const ManifestRoute& route, Source& source, Question& question) {
  Held held = TRY(source.get(route.reference));
  // A request by digest gets exactly that object.
  if (!route.by_digest && !is_referrers_tag(route.reference)) {
    auto refused = TRY(choose(route, source, held, question));
    if (refused) return std::move(*refused);
  }
  question.note.digest = held.digest;
  if (!accepts(question.asked.accept, held.media_type)) {
    return refusal(404, "MANIFEST_UNKNOWN",
                   fmt::format("it is of the type {}, which the client does not accept",
                               quote(held.media_type)));
  }
  return document_reply(held.bytes, held.media_type, held.digest);
}

/// Replaces an index by the entry for the node of the client, or returns a refusal.
Result<std::optional<Reply>> Hub::choose(const ManifestRoute& route, Source& source, Held& held,
                                         Question& question) {
  auto node = nodes_.node_of(question.caller);
  if (!node.ok()) {
    question.note.error = to_line(node.error());
    return std::optional(refusal(400, "UNSUPPORTED", node.error().what));
  }
  if (!*node) return std::optional<Reply>();
  question.note.node = (*node)->name;
  Choice choice = TRY(choice_for(**node, source, held));
  if (!choice.refusal.empty()) {
    question.note.error = choice.refusal;
    return std::optional(
        refusal(404, "MANIFEST_UNKNOWN",
                fmt::format("no variant of {}:{} runs on node '{}': {}", route.name,
                            route.reference, (*node)->name, choice.refusal)));
  }
  if (choice.entry) {
    transfer::Document entry = TRY(source.get_described(*choice.entry));
    held.digest = entry.digest.text();
    held.media_type = std::move(entry.media_type);
    held.bytes = std::make_shared<const std::string>(std::move(entry.bytes));
  }
  return std::optional<Reply>();
}

/// The entry that `berth match` would choose, from the same facts.
Result<Choice> Hub::choice_for(const node::Profile& node, Source& source, const Held& held) {
  const std::string key = source.key() + "@" + held.digest + "@" + node.name;
  if (auto choice = choices_.find(key)) return *choice;
  match::Job job;
  job.user_land = config_.user_land.value_or(match::UserLand::host);
  Permit permit(parsers_);
  Beside beside;
  beside.fetch = [&](const oci::Descriptor& inner) -> Result<transfer::Document> {
    Permit::Pause pause(permit);
    return source.get_described(inner);
  };
  beside.facts = [&]() -> Result<std::optional<image::PublishedFacts>> {
    if (!trust_.fetch) return std::optional<image::PublishedFacts>();
    Permit::Pause pause(permit);
    Permit of_facts(facts_);
    Digest subject = TRY(Digest::parse(held.digest));
    return transfer::fetch_published(source.registry(), subject, trust_, events_);
  };
  Choice choice = TRY(choose_entry(*held.bytes, held.media_type, node, job, beside));
  choices_.put(key, choice);
  return choice;
}

Answer Hub::answer_route(const BlobRoute& route, Question& question) {
  auto place = place_of(config_.upstream, route.name);
  if (!place) return {not_served(route.name), {}, {}};
  BlobWish wish{route.digest, question.head(), plain_range(question.asked.range),
                is_loopback(question.asked.address)};
  question.note.digest = route.digest.text();
  Answer answer;
  answer.stream = [this, place = std::move(*place), wish = std::move(wish)](
                      Output& output, Note& note) -> Result<Reply> {
    auto source = sources_.get(place);
    if (source.ok()) return give_blob(**source, wish, config_.blobs, output, note);
    note.error = to_line(source.error());
    return upstream_refusal(source.error(), "BLOB_UNKNOWN");
  };
  return answer;
}

Answer Hub::answer_route(const TagsRoute& route, Question& question) {
  auto place = place_of(config_.upstream, route.name);
  if (!place) return {not_served(route.name), {}, {}};
  auto given = [&]() -> Result<Reply> {
    auto source = TRY(sources_.get(*place));
    return give_tags(route, *source);
  }();
  if (given.ok()) return {std::move(*given), {}, {}};
  question.note.error = to_line(given.error());
  return {upstream_refusal(given.error(), "NAME_UNKNOWN"), {}, {}};
}

Result<Reply> Hub::give_tags(const TagsRoute& route, Source& source) {
  std::string query;
  if (route.count > 0) query = fmt::format("n={}", route.count);
  if (!route.last.empty()) query += (query.empty() ? "last=" : "&last=") + route.last;
  transfer::HttpResponse response = TRY(source.registry().list_tags(query));
  Permit permit(parsers_);
  TagList list = TRY(json::read<TagList>(response.body, "tags"));
  list.name = route.name;
  Reply reply;
  reply.headers = {{"Content-Type", "application/json"}};
  bool more = response.header("link").has_value() && !list.tags.empty() && route.count > 0;
  if (more) {
    std::string link = fmt::format("</v2/{}/tags/list?n={}&last={}>; rel=\"next\"", route.name,
                                   route.count, transfer::percent_encode(list.tags.back()));
    reply.headers.emplace_back("Link", std::move(link));
  }
  reply.body = std::make_shared<const std::string>(json::write(list) + "\n");
  return reply;
}

Result<Renewed> read_again(const Order& running) {
  Renewed renewed{running, {}};
  Config next;
  if (!running.file.empty()) {
    std::string text = TRY(sys::read_file(sys::cwd(), running.file, kMaxConfig));
    next = TRY(read_config(text, running.file));
  }
  TRY(add_flags(next, running.flags));
  if (!next.user_land) next.user_land = running.user_land;
  renewed.fixed = keep_fixed(running.config, next);
  TRY(check(next));  // checks what will be served, including the old addresses
  renewed.order.config = std::move(next);
  return renewed;
}

}  // namespace berth::hub
