// SPDX-License-Identifier: Apache-2.0
#include "transfer/layer/layers.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <thread>

#include "facts/code/always_runs.hpp"
#include "sys/file/file.hpp"
#include "transfer/layer/erofs.hpp"
#include "transfer/layer/unpack.hpp"
#include "transfer/layer/writer.hpp"
#include "transfer/work/threads.hpp"

namespace berth::transfer {

using image::LayerPhase;

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kEachLayer = 18 * kMiB;  // blocks in transfer, and pieces to be written
constexpr uint64_t kEachWindow = 8 * kMiB;  // the usual window of zstd
constexpr uint64_t kLeastAhead = 4 * kMiB;  // bytes of a blob that wait for the unpacker
constexpr uint64_t kMostAhead = 32 * kMiB;  // more would only take memory
constexpr size_t kMostWorkers = 48;

/// How many layers are handled at once, and how much of each blob is buffered, within a memory
/// budget.
struct Shares {
  size_t workers;
  BlobFetcher::Limits fetch;
};
Shares share_budget(uint64_t budget, size_t connections, size_t tasks, bool windows) {
  uint64_t takes = kEachLayer + (windows ? kEachWindow : 0);
  size_t processors = std::max(1u, std::thread::hardware_concurrency());
  size_t wanted = std::clamp(std::max(processors, connections), size_t{1}, kMostWorkers);
  size_t affordable = std::max<uint64_t>(1, budget / (takes + kLeastAhead));
  Shares shares;
  shares.workers = std::max<size_t>(1, std::min({wanted, affordable, tasks}));
  uint64_t each = budget / shares.workers;
  uint64_t left = each - std::min(each, takes);
  shares.fetch.ahead = std::clamp(left, kLeastAhead, kMostAhead);
  shares.fetch.part = shares.fetch.ahead / 4;
  shares.fetch.connections = connections;
  return shares;
}

}  // namespace

Result<void> LayerPipeline::run(const oci::Manifest& manifest, const oci::ImageConfig& config) {
  TRY(add_tasks(manifest, config));
  if (tasks_.empty()) return {};
  bool windows = std::ranges::any_of(
      tasks_, [](const Task& task) { return task.compression == oci::Compression::zstd; });
  Shares shares =
      share_budget(options_.memory_budget, options_.connections, tasks_.size(), windows);
  if (!origin_) shares.fetch.connections = 0;
  const char* limits = std::getenv("BERTH_UNPACK_LIMITS");
  if (limits != nullptr) limits_ = TRY(limits_.changed_by(limits));
  const char* threads = std::getenv("BERTH_INFLATE_THREADS");
  if (threads != nullptr) inflate_threads_ = TRY(parse_inflate_threads(threads));
  BlobFetcher fetcher(shares.fetch, cancel_);
  run_in_threads(shares.workers, [&] { work(fetcher); });
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
  for (const Task& task : tasks_) {
    events_.layer(task.blob.digest.short_hex(), LayerPhase::waiting, 0, task.blob.size);
  }
  std::ranges::stable_sort(tasks_, std::greater{}, [](const Task& t) { return t.blob.size; });
  return {};
}

void LayerPipeline::work(BlobFetcher& fetcher) {
  while (true) {
    const Task* task = nullptr;
    {
      std::lock_guard lock(mutex_);
      if (error_ || next_ == tasks_.size()) return;
      task = &tasks_[next_++];
    }
    Result<bool> made = complete(*task, fetcher);
    if (!made.ok()) return fail(std::move(made).error());
    events_.layer(task->blob.digest.short_hex(), *made ? LayerPhase::done : LayerPhase::exists,
                  task->blob.size, task->blob.size);
  }
}

/// Keeps the first error: tasks that are stopped because of it report an interruption, which is not
/// the cause.
void LayerPipeline::fail(Error error) {
  std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  cancel_.request();
}

/// Makes the layer if it is missing. Returns whether it was missing.
Result<bool> LayerPipeline::complete(const Task& task, BlobFetcher& fetcher) {
  TRY(cancel_.check());
  bool kept = TRY(delivery_.keep_blob(task.blob.digest));
  auto make_layer = [&]() -> Result<bool> {
    // A manifest may pair any blob with the diff id of a stored layer: this is believed only after
    // the blob has been unpacked once.
    if (TRY(delivery_.keep_layer_of(task.diff_id, task.blob.digest))) return false;
    auto stopped = [this] { return cancel_.requested(); };
    image::Claim claim = TRY(delivery_.claim_layer(task.diff_id, stopped));
    if (TRY(delivery_.keep_layer_of(task.diff_id, task.blob.digest))) return false;
    TRY(kept ? unpack_stored(task) : distrusting([&] { return fetch(task, fetcher); }));
    return true;
  };
  bool made = TRY(make_layer());
  if (made || kept || !options_.keep_blobs) return made;
  TRY(distrusting([&] { return keep(task, fetcher); }));
  return true;
}

/// Repeats the fetch if the blob is damaged and can come from another source.
template <class Fetch>
Result<void> LayerPipeline::distrusting(Fetch fetch) {
  Result<void> fetched = fetch();
  bool damaged = !fetched.ok() && fetched.error().kind == Kind::corrupt;
  if (!damaged || !options_.distrust || cancel_.requested()) return fetched;
  options_.distrust(fetched.error());
  return fetch();
}

Result<Registry*> LayerPipeline::registry_of(const Task& task) {
  if (origin_) return origin_(task.blob);
  return make_error(Kind::not_found,
                    fmt::format("find blob '{}' in the store", task.blob.digest.text()),
                    "berth pull, to complete the image");
}

/// Returns the function that fetches a task's blob, and sets the blob's name for errors in
/// `stream`.
Result<BlobStream::Fetch> LayerPipeline::source_of(const Task& task, BlobStream::Options& stream) {
  if (options_.fetch) {
    stream.action = fmt::format("read blob '{}'", task.blob.digest.text());
    return BlobStream::Fetch(
        [this, &task](BlobPart part) { return options_.fetch(task.blob, std::move(part)); });
  }
  Registry* registry = TRY(registry_of(task));
  stream.action = registry->read_action(task.blob.digest);
  return BlobStream::Fetch(
      [registry, &task](BlobPart part) { return registry->get_blob(task.blob, std::move(part)); });
}

/// Unpacks a blob while it arrives.
Result<void> LayerPipeline::fetch(const Task& task, BlobFetcher& fetcher) {
  std::string id = task.blob.digest.short_hex();
  BlobStream::Options options;
  options.progress = [&](uint64_t bytes) {
    events_.layer(id, LayerPhase::downloading, bytes, task.blob.size);
  };
  image::Staged copy;
  if (options_.keep_blobs) {
    copy = TRY(delivery_.stage_file());
    options.copy = &copy.fd();
  }
  BlobStream::Fetch source = TRY(source_of(task, options));
  BlobStream stream(fetcher, task.blob, std::move(source), std::move(options));
  Result<void> unpacked = unpack(
      task, [&] { return stream.next(); }, &stream);
  if (!unpacked.ok()) {
    Error error = std::move(unpacked).error();
    // If the blob is damaged or does not arrive, the error of the fetcher is better than that of
    // the unpacker.
    bool damaged = error.kind == Kind::corrupt && error.hint != kRaiseHint;
    if (damaged || stream.failed()) TRY(stream.finish());
    fail(error);  // cancels first, so that no connection delays the end of the stream
    return error;
  }
  if (!options_.keep_blobs) return {};
  return delivery_.publish_blob(std::move(copy), task.blob.digest);
}

/// Fetches the blob of an existing layer.
Result<void> LayerPipeline::keep(const Task& task, BlobFetcher& fetcher) {
  image::Staged copy = TRY(delivery_.stage_file());
  BlobStream::Options options;
  options.copy = &copy.fd();
  options.progress = [&](uint64_t bytes) {
    events_.layer(task.blob.digest.short_hex(), LayerPhase::downloading, bytes, task.blob.size);
  };
  BlobStream::Fetch source = TRY(source_of(task, options));
  BlobStream stream(fetcher, task.blob, std::move(source), std::move(options));
  TRY(stream.finish());
  return delivery_.publish_blob(std::move(copy), task.blob.digest);
}

Result<void> LayerPipeline::unpack_stored(const Task& task) {
  sys::Fd blob = TRY(sys::open_at(sys::cwd(), store_.blob_path(task.blob.digest), O_RDONLY));
  return unpack(task, file_input(blob), nullptr);
}

namespace {

/// The identity depends only on the layer, so every machine makes the same image.
erofs::Identity identity_of(const Digest& diff_id) {
  erofs::Identity identity;
  const std::string& hex = diff_id.hex();
  for (size_t i = 0; i < identity.uuid.size(); ++i) {
    std::from_chars(hex.data() + 2 * i, hex.data() + 2 * i + 2, identity.uuid[i], 16);
  }
  return identity;
}

}  // namespace

image::LayerFlavor flavor_of_new_layers(const image::Store& store) {
  image::LayerFlavor flavor = store.flavor();
  if (flavor.format == image::LayerFormat::erofs) {
    flavor.ownership = image::Ownership::full;
    flavor.overlay_xattr = image::OverlayXattr::trusted;
  }
  return flavor;
}

Result<UnpackedLayer> make_layer(const image::Staged& staged, image::LayerFormat format,
                                 std::unique_ptr<Inflater> bytes, const Digest& diff_id,
                                 const UnpackOptions& options) {
  if (format == image::LayerFormat::directory) {
    sys::Fd directory = TRY(sys::open_at(staged.fd(), "fs", O_RDONLY | O_DIRECTORY));
    LayerWriter sink = TRY(LayerWriter::make(directory, options));
    UnpackedLayer layer = TRY(unpack_layer(std::move(bytes), sink, options));
    TRY_CTX(record_tree(directory, sink.written(), sink.left_out().devices(), staged.fd()),
            "cannot record the layer's files");
    return layer;
  }
  constexpr int kNew = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
  sys::Fd image = TRY(sys::open_at(staged.fd(), "fs.erofs", kNew, 0600));
  ErofsLayer sink(image, identity_of(diff_id), options);
  UnpackedLayer layer = TRY(unpack_layer(std::move(bytes), sink, options));
  TRY_CTX(sink.take_extents().write(image, staged.fd()), "cannot record the layer's image");
  return layer;
}

/// `stream`: the source of the blob, or null.
Result<void> LayerPipeline::unpack(const Task& task, const Inflater::Input& input,
                                   BlobStream* stream) {
  std::string id = task.blob.digest.short_hex();
  image::LayerFlavor flavor = flavor_of_new_layers(store_);
  image::Staged staged = TRY(delivery_.stage_layer(flavor.format));
  facts::LayerScan scan(facts::level_of_code);
  UnpackOptions options;
  if (options_.scan) options.scan = &scan;
  options.ownership = flavor.ownership;
  options.overlay_xattr = flavor.overlay_xattr;
  options.cancel = &cancel_;
  options.cache = sys::PieceWriter::Cache::past;
  options.blob_size = task.blob.size;
  options.limits = limits_;
  options.on_progress = [&](uint64_t bytes) {
    if (stream != nullptr && !stream->arrived()) return;  // the download reports progress
    events_.layer(id, LayerPhase::unpacking, bytes, task.blob.size);
  };
  options.on_warning = [&](const std::string& text) { events_.warn("layer " + id + ": " + text); };
  auto unpacked = [&]() -> Result<UnpackedLayer> {
    UnpackedLayer layer = TRY(make_layer(
        staged, flavor.format, Inflater::recognize(task.compression, input, inflate_threads_),
        task.diff_id, options));
    if (layer.diff_id == task.diff_id) return layer;
    return make_error(
        Kind::corrupt,
        fmt::format("check the unpacked bytes: they have digest '{}', the config says "
                    "'{}'",
                    layer.diff_id.text(), task.diff_id.text()));
  };
  UnpackedLayer layer =
      TRY_CTX(unpacked(), fmt::format("cannot unpack layer '{}'", task.blob.digest.text()));
  if (stream != nullptr) TRY(stream->finish());
  if (options_.scan) {
    TRY(sys::write_file(staged.fd(), facts::kLayerFactsFile, write_layer_facts(scan.take()), 0600));
  }
  return delivery_.publish_layer(
      std::move(staged), {task.diff_id, flavor, layer.entries, layer.bytes, {task.blob.digest}});
}

}  // namespace berth::transfer
