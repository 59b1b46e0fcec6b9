// SPDX-License-Identifier: Apache-2.0
#include "transfer/layers.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <thread>

#include "facts/code/always_runs.hpp"
#include "sys/file.hpp"
#include "transfer/erofs_layer.hpp"
#include "transfer/threads.hpp"
#include "transfer/unpack.hpp"

namespace berth::transfer {

using image::LayerPhase;

namespace {

constexpr size_t kMostUnpackers = 48;  // of 9 MiB of blocks each

}  // namespace

Result<void> LayerPipeline::run(const oci::Manifest& manifest, const oci::ImageConfig& config) {
  TRY(add_tasks(manifest, config));
  // Those that wait for the network keep no processor from the others.
  unpackers_ =
      std::min(kDownloads + std::max(1u, std::thread::hardware_concurrency()), kMostUnpackers);
  size_t workers = std::min(kDownloads + unpackers_, 2 * tasks_.size());
  run_in_threads(workers, [this] { work(); });
  if (error_) return *std::move(error_);
  return {};
}

Result<void> LayerPipeline::add_tasks(const oci::Manifest& manifest,
                                      const oci::ImageConfig& config) {
  for (size_t i = 0; i < manifest.layers.size(); ++i) {
    const oci::Descriptor& blob = manifest.layers[i];
    const Digest& diff_id = config.rootfs.diff_ids[i];
    auto twin = std::ranges::find(tasks_, blob.digest, [](const Task& t) { return t.blob.digest; });
    if (twin == tasks_.end()) {
      oci::Compression compression = TRY(oci::layer_compression(blob.media_type));
      tasks_.push_back({blob, diff_id, compression});
    } else if (twin->diff_id != diff_id) {
      return make_error(Kind::corrupt, fmt::format("read config: layer '{}' has two diff ids",
                                                   blob.digest.text()));
    }
  }
  for (Task& task : tasks_) {
    events_.layer(task.blob.digest.short_hex(), LayerPhase::waiting, 0, task.blob.size);
    to_download_.push_back(&task);
  }
  // The largest first: it is the one that the whole pull ends up waiting for.
  std::ranges::stable_sort(to_download_, std::greater{},
                           [](const Task* t) { return t->blob.size; });
  return {};
}

void LayerPipeline::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return error_ || finished_ == tasks_.size() ||
             (!to_unpack_.empty() && unpacking_ < unpackers_) ||
             (!to_download_.empty() && downloading_ < kDownloads);
    });
    if (error_ || finished_ == tasks_.size()) return;

    bool unpacks = !to_unpack_.empty() && unpacking_ < unpackers_;
    std::deque<Task*>& queue = unpacks ? to_unpack_ : to_download_;
    size_t& running = unpacks ? unpacking_ : downloading_;
    Task& task = *queue.front();
    queue.pop_front();
    ++running;

    lock.unlock();
    Result<void> done = unpacks ? unpack(task) : download(task);
    if (done.ok() && !unpacks) offer(task);
    bool knows_why = done.ok() || !unpacks || is_cause(done.error(), task);
    lock.lock();

    --running;
    if (done.ok()) {
      if (--task.left == 0) {
        ++finished_;
        tell_done(task);
      }
    } else {
      // Those who are stopped by this one's failure report an interruption, which is not the cause.
      if (!error_ && knows_why) error_ = std::move(done).error();
      cancel_.request();
    }
    changed_.notify_all();
  }
}

/// Who unpacks a blob that is damaged, or does not come, knows less than who fetches it.
bool LayerPipeline::is_cause(const Error& error, const Task& task) {
  bool doubtful = error.kind == Kind::corrupt || error.kind == Kind::interrupted;
  return !doubtful || task.arrival == nullptr || task.arrival->wait_end();
}

void LayerPipeline::offer(Task& task) {
  std::lock_guard lock(mutex_);
  if (task.offered) return;
  task.offered = true;
  to_unpack_.push_back(&task);
  changed_.notify_all();
}

void LayerPipeline::tell_done(Task& task) {
  task.arriving.reset();
  bool there = !task.unpacked && task.arrival == nullptr;
  events_.layer(task.blob.digest.short_hex(), there ? LayerPhase::exists : LayerPhase::done,
                task.blob.size, task.blob.size);
}

Result<void> LayerPipeline::download(Task& task) {
  TRY(cancel_.check());
  bool present = TRY(delivery_.keep_blob(task.blob.digest));
  if (present) return {};
  auto stopped = [this] { return cancel_.requested(); };
  image::Claim claim = TRY(delivery_.claim_blob(task.blob.digest, stopped));
  present = TRY(delivery_.keep_blob(task.blob.digest));  // somebody else may have brought it
  if (present) return {};
  if (registry_ == nullptr) {
    return make_error(Kind::not_found,
                      fmt::format("find blob '{}' in the store", task.blob.digest.text()),
                      "berth pull, for the image is not complete");
  }

  image::Staged file = TRY(delivery_.stage_file());
  task.arriving = TRY(sys::duplicate(file.fd()));
  task.arrival = std::make_unique<Arrival>(task.blob.size);
  offer(task);
  Result<void> fetched = fetch(task);
  task.arrival->end(fetched.ok());
  TRY(std::move(fetched));
  return delivery_.publish_blob(std::move(file), task.blob.digest);
}

Result<void> LayerPipeline::fetch(Task& task) {
  std::string id = task.blob.digest.short_hex();
  return registry_->get_blob(task.blob, task.arriving, [&](uint64_t bytes) {
    task.arrival->set(bytes);
    events_.layer(id, LayerPhase::downloading, bytes, task.blob.size);
  });
}

Result<void> LayerPipeline::unpack(Task& task) {
  if (TRY(delivery_.keep_layer(task.diff_id))) return {};
  auto stopped = [this] { return cancel_.requested(); };
  image::Claim claim = TRY(delivery_.claim_layer(task.diff_id, stopped));
  if (TRY(delivery_.keep_layer(task.diff_id))) return {};
  TRY_CTX(unpack_claimed(task), fmt::format("cannot unpack layer '{}'", task.blob.digest.text()));
  task.unpacked = true;
  return {};
}

namespace {

/// The same for the same layer, wherever it is made.
erofs::Identity identity_of(const Digest& diff_id) {
  erofs::Identity identity;
  const std::string& hex = diff_id.hex();
  for (size_t i = 0; i < identity.uuid.size(); ++i) {
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, identity.uuid[i], 16);
  }
  return identity;
}

Result<UnpackedLayer> unpack_into(const image::Staged& staged, image::LayerFormat format,
                                  const sys::Fd& blob, oci::Compression compression,
                                  const Digest& diff_id, const UnpackOptions& options) {
  if (format == image::LayerFormat::directory) {
    sys::Fd directory = TRY(sys::open_at(staged.fd(), "fs", O_RDONLY | O_DIRECTORY));
    return unpack_layer(blob, compression, directory, options);
  }
  constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  sys::Fd image = TRY(sys::open_at(staged.fd(), "fs.erofs", kNew, 0600));
  ErofsLayer sink(image, identity_of(diff_id), options);
  return unpack_layer(blob, compression, sink, options);
}

}  // namespace

Result<void> LayerPipeline::unpack_claimed(Task& task) {
  std::string id = task.blob.digest.short_hex();
  sys::Fd blob =
      TRY(task.arrival ? sys::duplicate(task.arriving)
                       : sys::open_at(sys::cwd(), store_.blob_path(task.blob.digest), O_RDONLY));
  image::Staged staged = TRY(delivery_.stage_layer(store_.flavor().format));
  facts::LayerScan scan(facts::level_of_code);
  UnpackOptions options;
  if (scan_ == Scan::yes) options.scan = &scan;
  options.ownership = store_.flavor().ownership;
  options.overlay_xattr = store_.flavor().overlay_xattr;
  options.cancel = &cancel_;
  options.arrival = task.arrival.get();
  options.on_progress = [&](uint64_t bytes) {
    if (task.arrival && !task.arrival->ended()) return;  // how much has come is told
    events_.layer(id, LayerPhase::unpacking, bytes, task.blob.size);
  };
  options.on_warning = [&](const std::string& text) { events_.warn("layer " + id + ": " + text); };
  UnpackedLayer unpacked = TRY(
      unpack_into(staged, store_.flavor().format, blob, task.compression, task.diff_id, options));
  if (unpacked.diff_id != task.diff_id) {
    return make_error(
        Kind::corrupt,
        fmt::format("check the unpacked bytes: they have digest '{}', the config says "
                    "'{}'",
                    unpacked.diff_id.text(), task.diff_id.text()));
  }
  if (task.arrival && !task.arrival->wait_end()) {
    return make_error(Kind::interrupted, "its blob has not arrived");
  }
  if (scan_ == Scan::yes) {
    TRY(sys::write_file(staged.fd(), facts::kLayerFactsFile, write_layer_facts(scan.take()), 0600));
  }
  return delivery_.publish_layer(std::move(staged),
                                 {task.diff_id, store_.flavor(), unpacked.entries, unpacked.bytes});
}

}  // namespace berth::transfer
