// SPDX-License-Identifier: Apache-2.0
#include "hub/spool.hpp"

#include <fcntl.h>

#include "sys/file/file.hpp"
#include "sys/thread/thread.hpp"

namespace berth::hub {
namespace {

constexpr size_t kMostBlobs = 4096;
// Six blobs at once take 96 MiB.
constexpr uint64_t kAhead = uint64_t{16} << 20;
constexpr uint64_t kPart = uint64_t{4} << 20;

}  // namespace

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

/// The name is removed at once: nothing of it is left if this process is killed.
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

}  // namespace berth::hub
