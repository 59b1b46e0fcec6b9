// SPDX-License-Identifier: Apache-2.0
#include "hub/job_front.hpp"

#include <fcntl.h>

#include <algorithm>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/thread/thread.hpp"
#include "transfer/registry/access.hpp"
#include "transfer/work/sha256.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostKnownObjects = 4096;
constexpr size_t kMostType = 255;

/// The value in "artifactType=application%2Fvnd…", as Berth's client writes it; "" for an empty
/// query; nothing for any other query.
std::optional<std::string> artifact_type(std::string_view query) {
  constexpr std::string_view kKey = "artifactType=";
  if (query.empty()) return "";
  if (!query.starts_with(kKey) || query.size() > kMostType) return std::nullopt;
  query.remove_prefix(kKey.size());
  std::string out;
  for (size_t i = 0; i < query.size(); ++i) {
    char c = query[i];
    if (c == '%') {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      if (i + 2 >= query.size()) return std::nullopt;
      size_t high = kDigits.find(query[i + 1]);
      size_t low = kDigits.find(query[i + 2]);
      if (high == kDigits.npos || low == kDigits.npos) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      i += 2;
    }
    bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 std::string_view("!#$&-^_.+/").find(c) != std::string_view::npos;
    if (!plain) return std::nullopt;
    out += c;
  }
  return out;
}

constexpr size_t kMostBlobs = 4096;
// How far a blob is fetched ahead. Six blobs at once take 96 MiB.
constexpr uint64_t kAhead = uint64_t{16} << 20;
constexpr uint64_t kPart = uint64_t{4} << 20;

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using transfer::Document;
using transfer::Registry;

constexpr size_t kMostDocuments = 1024;
constexpr size_t kPiece = size_t{256} << 10;
/// The wait for the first bytes of a blob. After this time the client is asked to retry, so that it
/// holds no thread.
constexpr milliseconds kForFirst{2000};
constexpr milliseconds kLookForEnd{200};
/// The wait for the next bytes of a blob. After this time the client is asked to retry, before it
/// assumes that this node is dead.
constexpr milliseconds kForNext{10'000};

/// The nodes of a job belong to one user, so they get the full error.
Reply refusal_of(const Error& error) {
  std::string text = to_line(error);
  switch (error.kind) {
    case Kind::not_found:
      return refusal(404, "NOT_FOUND", text);
    case Kind::denied:
      return refusal(403, "DENIED", text);
    default:
      return refusal(500, "UNKNOWN", text);
  }
}

Answer just(Reply reply) {
  Answer answer;
  answer.reply = std::move(reply);
  return answer;
}

Reply head_of(const oci::Descriptor& blob, ByteRange range) {
  Reply reply;
  reply.headers = {{"Content-Type", "application/octet-stream"},
                   {"Docker-Content-Digest", blob.digest.text()},
                   {"Accept-Ranges", "bytes"}};
  reply.length = range.end - range.begin;
  if (*reply.length == blob.size) return reply;
  reply.status = 206;
  reply.headers.emplace_back("Content-Range",
                             fmt::format("bytes {}-{}/{}", range.begin, range.end - 1, blob.size));
  return reply;
}

}  // namespace

std::optional<ReferrersRoute> referrers_route(std::string_view method, std::string_view target) {
  constexpr std::string_view kKind = "/referrers/";
  constexpr std::string_view kRoot = "/v2/";
  if (method != "GET" || !target.starts_with(kRoot)) return std::nullopt;
  size_t question = target.find('?');
  std::string_view path = target.substr(0, question).substr(kRoot.size());
  size_t kind = path.rfind(kKind);
  if (kind == path.npos || kind == 0) return std::nullopt;
  auto subject = Digest::parse(path.substr(kind + kKind.size()));
  auto type = artifact_type(question == target.npos ? "" : target.substr(question + 1));
  if (!subject.ok() || !type) return std::nullopt;
  return ReferrersRoute{std::string(path.substr(0, kind)), std::move(*subject), std::move(*type)};
}

std::optional<ByteRange> range_of(std::string_view value, uint64_t size) {
  constexpr size_t kUnit = 6;  // "bytes="
  std::string range = plain_range(value);
  if (range.empty()) return ByteRange{0, size};
  size_t dash = range.find('-');
  uint64_t begin = parse_u64(range.substr(kUnit, dash - kUnit)).value_or(size);
  uint64_t last = parse_u64(range.substr(dash + 1)).value_or(size);
  if (begin >= size || last < begin) return std::nullopt;
  return ByteRange{begin, std::min(last, size - 1) + 1};
}

bool Belongings::has_manifest(const Digest& digest) const {
  std::lock_guard lock(mutex_);
  return manifests_.contains(digest);
}

bool Belongings::has_manifest(std::string_view tag_or_digest) const {
  constexpr std::string_view kReferrers = "sha256-";
  constexpr size_t kDigits = 64;
  if (tag_or_digest == root_) return true;
  std::string text(tag_or_digest);
  // The tag may have the suffix of signatures: "sha256-HEX.sig".
  if (text.starts_with(kReferrers)) {
    text = "sha256:" + text.substr(kReferrers.size(), kDigits);
  }
  auto digest = Digest::parse(text);
  return digest.ok() && has_manifest(*digest);
}

std::optional<oci::Descriptor> Belongings::blob(const Digest& digest) const {
  std::lock_guard lock(mutex_);
  auto known = blobs_.find(digest);
  if (known == blobs_.end()) return std::nullopt;
  return known->second;
}

void Belongings::learn(const Digest& digest, std::string_view bytes, std::string_view media_type) {
  auto parsed = oci::parse_manifest(bytes, media_type);
  std::lock_guard lock(mutex_);
  if (manifests_.size() < kMostKnownObjects) manifests_.insert(digest);
  if (!parsed.ok()) return;
  if (const auto* index = std::get_if<oci::Index>(&*parsed)) {
    for (const oci::Descriptor& entry : index->manifests) {
      if (manifests_.size() < kMostKnownObjects) manifests_.insert(entry.digest);
    }
    return;
  }
  const auto& manifest = std::get<oci::Manifest>(*parsed);
  auto add = [&](const oci::Descriptor& blob) {
    if (blobs_.size() < kMostKnownObjects) blobs_.emplace(blob.digest, blob);
  };
  add(manifest.config);
  for (const oci::Descriptor& layer : manifest.layers) add(layer);
}

Result<uint64_t> SpooledBlob::await(uint64_t position, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return error_ || have_ > position || have_ == size_; });
  if (error_) return *error_;
  return have_;
}

Result<size_t> SpooledBlob::read(uint64_t position, char* buffer, size_t size) const {
  return sys::read_at(file_, position, buffer, size, "a blob on its way");
}

Result<void> SpooledBlob::append(std::string_view bytes) {
  TRY(sys::write_at(file_, have_, bytes, "a blob on its way"));  // only this thread changes have_
  std::lock_guard lock(mutex_);
  have_ += bytes.size();
  changed_.notify_all();
  return {};
}

void SpooledBlob::note_whole() {
  std::lock_guard lock(mutex_);
  have_ = size_;
  changed_.notify_all();
}

void SpooledBlob::fail(Error error) {
  std::lock_guard lock(mutex_);
  error_ = std::move(error);
  changed_.notify_all();
}

Spool::Spool(const image::Store& store, Fetch fetch, const transfer::Cancel& cancel)
    : store_(store),
      fetch_(std::move(fetch)),
      cancel_(cancel),
      fetcher_({.connections = kAtOnce, .ahead = kAhead, .part = kPart}, cancel) {}

Spool::~Spool() {
  threads_.clear();  // joins them, before the members they use are destroyed
}

Result<std::shared_ptr<SpooledBlob>> Spool::get(const oci::Descriptor& blob) {
  std::lock_guard lock(mutex_);
  auto known = blobs_.find(blob.digest);
  if (known != blobs_.end()) return known->second;
  std::shared_ptr<SpooledBlob> begun = TRY(begin(blob));
  blobs_[blob.digest] = begun;
  return begun;
}

Result<std::shared_ptr<SpooledBlob>> Spool::begin(const oci::Descriptor& blob) {
  auto kept = TRY(sys::open_if_exists(sys::cwd(), store_.blob_path(blob.digest), O_RDONLY));
  if (kept) {
    struct stat found = TRY(sys::stat_fd(*kept, "a kept blob"));
    if (static_cast<uint64_t>(found.st_size) == blob.size) {
      auto whole = std::make_shared<SpooledBlob>(std::move(*kept), blob.size);
      whole->note_whole();
      return whole;
    }
  }
  if (threads_.size() >= kMostBlobs) return make_error(Kind::busy, "pass on more than 4096 blobs");
  auto begun = std::make_shared<SpooledBlob>(TRY(make_file()), blob.size);
  auto thread = sys::start_thread([this, blob, begun] { bring(blob, *begun); });
  if (!thread) return make_error(Kind::busy, "start a thread: the limit of processes is reached");
  threads_.push_back(std::move(*thread));
  return begun;
}

/// The name of the file is removed at once, so that no file is left if this process is killed.
Result<sys::Fd> Spool::make_file() const {
  image::Delivery delivery = TRY(image::Delivery::begin(store_));
  image::Staged staged = TRY(delivery.stage_file());
  return sys::duplicate(staged.fd());
}

void Spool::bring(const oci::Descriptor& blob, SpooledBlob& into) {
  places_.acquire();
  auto done = copy(blob, into);
  places_.release();
  if (done.ok()) return;
  into.fail(std::move(done).error());
  std::lock_guard lock(mutex_);
  blobs_.erase(blob.digest);
}

Result<void> Spool::copy(const oci::Descriptor& blob, SpooledBlob& into) {
  TRY(cancel_.check());
  auto fetch = [&](transfer::BlobPart part) { return fetch_(blob, std::move(part)); };
  transfer::BlobStream::Options options;
  options.action = fmt::format("read blob '{}'", blob.digest.text());
  transfer::BlobStream stream(fetcher_, blob, fetch, std::move(options));
  while (true) {
    std::string_view bytes = TRY(stream.next());
    if (bytes.empty()) return {};
    TRY(into.append(bytes));
  }
}

Reply wait_a_moment() {
  Reply reply = refusal(503, "UNAVAILABLE", "it has not begun to come");
  reply.headers.emplace_back("Retry-After", "0");
  return reply;
}

JobFront::JobFront(image::JobOrder order, image::Reference reference, image::Store store,
                   const transfer::Cancel& cancel, Log& log)
    : order_(std::move(order)),
      reference_(std::move(reference)),
      store_(std::move(store)),
      cancel_(cancel),
      events_(
          [&log](const image::TransferEvent& event) {
            if (const auto* warning = std::get_if<image::WarningEvent>(&event)) {
              log.warn(warning->text);
            }
          },
          transfer::Events::Layers::hidden),
      http_(transfer::http_options(order_.access), cancel),
      belongings_(reference_.manifest_reference()) {
  touch();
}

Result<std::unique_ptr<JobFront>> JobFront::make(image::JobOrder order,
                                                 const transfer::Cancel& cancel, Log& log) {
  image::Reference reference = TRY(image::Reference::parse(order.reference));
  image::Store store = TRY(image::Store::open(order.root, {}));
  std::unique_ptr<JobFront> front(
      new JobFront(std::move(order), std::move(reference), std::move(store), cancel, log));
  JobFront& f = *front;
  std::vector<Registry> peers =
      TRY(transfer::open_peers(f.http_, cancel, f.order_.access, f.reference_));
  f.chain_.emplace(
      std::move(peers),
      [&f] {
        return transfer::open_site_source(f.http_, f.cancel_, f.order_.access, f.reference_,
                                          f.events_);
      },
      cancel, f.events_);
  f.spool_.emplace(
      f.store_,
      [&f](const oci::Descriptor& blob, transfer::BlobPart part) {
        return f.chain_->get_blob(blob, std::move(part));
      },
      cancel);
  return front;
}

void JobFront::touch() const {
  touched_ = steady_clock::now().time_since_epoch().count();
}

milliseconds JobFront::idle() const {
  if (streams_ > 0) return milliseconds(0);
  steady_clock::time_point last{steady_clock::duration(touched_.load())};
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - last);
}

Answer JobFront::answer(const Asked& asked) {
  touch();
  auto is_ours = [&](const std::string& name) { return name == reference_.repository(); };
  const Answer unknown = just(refusal(404, "NAME_UNKNOWN", "this is not part of the job's image"));
  if (auto route = referrers_route(asked.method, asked.target)) {
    if (!is_ours(route->name) || !belongings_.has_manifest(route->subject)) return unknown;
    auto find = [route = *route](Registry& place) -> Result<std::optional<Document>> {
      auto found = TRY(place.find_referrers(route.subject, route.artifact_type));
      if (!found) return std::optional<Document>();
      Digest digest = transfer::sha256_of(*found);
      return std::optional(
          Document{std::move(*found), std::string(oci::media_type::kIndex), digest});
    };
    return give_document(asked.target, find, "referrers of " + route->subject.text());
  }
  Route route = route_of(asked.method, asked.target);
  if (std::holds_alternative<PingRoute>(route)) return just(Reply());
  if (auto* manifest = std::get_if<ManifestRoute>(&route)) {
    const std::string& wanted = manifest->reference;
    if (!is_ours(manifest->name) || !belongings_.has_manifest(wanted)) return unknown;
    auto find = [wanted](Registry& place) { return place.find_manifest(wanted); };
    return give_document("manifests/" + wanted, find, "manifest " + wanted);
  }
  if (auto* blob = std::get_if<BlobRoute>(&route)) {
    if (!is_ours(blob->name)) return unknown;
    return give_blob(blob->digest, asked);
  }
  if (auto* reply = std::get_if<Reply>(&route)) return just(std::move(*reply));
  return unknown;
}

/// Null if too many documents are held.
std::shared_ptr<JobFront::Held> JobFront::hold(const std::string& key) {
  std::lock_guard lock(mutex_);
  auto known = documents_.find(key);
  if (known != documents_.end()) return known->second;
  if (documents_.size() >= kMostDocuments) return nullptr;
  return documents_.emplace(key, std::make_shared<Held>()).first->second;
}

Answer JobFront::give_document(const std::string& key, Find find, const std::string& what) {
  std::shared_ptr<Held> held_document = hold(key);
  if (!held_document) return just(refusal(500, "UNKNOWN", "too many documents"));
  Answer answer;
  // The first request for a document waits for the parent node, so it runs on the threads for
  // streams, not on those for quick answers.
  answer.stream = [this, held_document, find = std::move(find), what](Output&, Note&) {
    return document_of(*held_document, find, what);
  };
  return answer;
}

Result<Reply> JobFront::document_of(Held& held, const Find& find, const std::string& what) {
  std::lock_guard lock(held.mutex);
  if (!held.known) {
    auto found = chain_->ask(find);
    if (!found.ok()) return refusal_of(found.error());
    held.document = std::move(*found);
    held.known = true;
    if (held.document) {
      belongings_.learn(held.document->digest, held.document->bytes, held.document->media_type);
    }
  }
  if (!held.document)
    return refusal(404, "MANIFEST_UNKNOWN", reference_.registry() + " has no " + what);
  const Document& document = *held.document;
  const std::string& type = document.media_type;
  return document_reply(std::make_shared<const std::string>(document.bytes),
                        type.empty() ? "application/octet-stream" : type, document.digest.text());
}

Answer JobFront::give_blob(const Digest& digest, const Asked& asked) {
  auto blob = belongings_.blob(digest);
  if (!blob) return just(refusal(404, "BLOB_UNKNOWN", "this is not part of the job's image"));
  if (asked.method == "HEAD") return just(head_of(*blob, {0, blob->size}));
  Answer answer;
  answer.stream = [this, blob = *blob, range = asked.range](Output& output, Note&) {
    ++streams_;
    auto streamed = stream_blob(blob, range, output);
    touch();
    --streams_;
    return streamed;
  };
  return answer;
}

Result<Reply> JobFront::stream_blob(const oci::Descriptor& blob, const std::string& range,
                                    Output& output) {
  auto wanted = range_of(range, blob.size);
  if (!wanted) return refusal(416, "RANGE_INVALID", "the blob has no such bytes");
  auto spooled = spool_->get(blob);
  if (!spooled.ok()) return refusal_of(spooled.error());
  SpooledBlob& bytes = **spooled;
  auto have = bytes.await(wanted->begin, kForFirst);
  if (!have.ok()) return refusal_of(have.error());
  if (*have <= wanted->begin && blob.size > 0) return wait_a_moment();
  TRY(output.begin(head_of(blob, *wanted)));
  return send(bytes, *wanted, output);
}

Result<Reply> JobFront::send(SpooledBlob& blob, ByteRange range, Output& output) {
  std::array<char, kPiece> buffer;
  auto moved = steady_clock::now();
  for (uint64_t at = range.begin; at < range.end;) {
    TRY(cancel_.check());
    uint64_t have = TRY(blob.await(at, kLookForEnd));
    if (have <= at) {
      if (steady_clock::now() - moved < kForNext) continue;
      return make_error(Kind::io, "pass a blob on: no more data arrives");
    }
    uint64_t room = std::min<uint64_t>({have, range.end, at + buffer.size()}) - at;
    size_t count = TRY(blob.read(at, buffer.data(), room));
    if (count == 0) return make_error(Kind::io, "pass a blob on: its file has become shorter");
    TRY(output.write({buffer.data(), count}));
    touch();
    at += count;
    moved = steady_clock::now();
  }
  return Reply();
}

}  // namespace berth::hub
