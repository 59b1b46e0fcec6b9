// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "facts/layer_scan.hpp"
#include "image/store.hpp"
#include "image/upkeep.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/process/stream.hpp"
#include "sys/thread/thread.hpp"
#include "transfer/layer/layers.hpp"
#include "transfer/layer/links.hpp"
#include "transfer/layer/tree_record.hpp"
#include "transfer/layer/tree_tar.hpp"
#include "transfer/layer/unpack_options.hpp"
#include "transfer/store/store.hpp"
#include "transfer/work/event.hpp"

namespace berth::transfer {

using image::LayerPhase;

namespace {

constexpr size_t kPipe = size_t{1} << 20;
constexpr int kEnterTree = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
constexpr const char* kTar = "the layer's tar";

std::string parent_of_file(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

/// The name of the layer in layers/.
std::string layer_name(const image::Layer& layer) {
  std::string directory = parent_of_file(layer.directory);
  return directory.substr(directory.rfind('/') + 1);
}

class PipeSink final : public ByteSink {
 public:
  explicit PipeSink(const sys::Fd& fd) : fd_(fd) {}
  Result<void> write(std::string_view bytes) override { return sys::write_all(fd_, bytes, kTar); }

 private:
  const sys::Fd& fd_;
};

Inflater::Input pipe_input(const sys::Fd& fd) {
  return [&fd, buffer = std::string(kPipe, '\0')]() mutable -> Result<std::string_view> {
    size_t count = TRY(sys::read_some(fd, buffer, kTar));
    return std::string_view(buffer).substr(0, count);
  };
}

/// Content that was accepted once is accepted again.
UnpackLimits no_limits() {
  UnpackLimits limits;
  limits.entries = limits.bytes = limits.ratio = limits.tree_bytes =
      std::numeric_limits<uint64_t>::max() / 4;
  return limits;
}

class Conversion {
 public:
  Conversion(image::Store& store, const image::ConvertRequest& request, Events& events,
             Cancel& cancel)
      : store_(store), request_(request), events_(events), cancel_(cancel) {}

  Result<image::ConvertReport> run() {
    image::Delivery delivery = TRY(image::Delivery::begin(store_));
    delivery_ = &delivery;
    // Waits while another process links identical files, as that changes times for a short while.
    auto stopped = [this] { return cancel_.requested(); };
    image::Claim upkeep = TRY(delivery.claim_upkeep(stopped));
    std::vector<image::Layer> layers = TRY(find_layers());
    for (const image::Layer& layer : layers) TRY(check_idle(layer));
    for (const image::Layer& layer : layers) {
      events_.layer(layer.diff_id.short_hex(), LayerPhase::waiting, 0, layer.bytes);
    }
    for (const image::Layer& layer : layers) {
      std::string id = layer.diff_id.short_hex();
      bool made = TRY_CTX(convert(layer), "cannot convert layer " + quote(layer.diff_id.text()));
      events_.layer(id, made ? LayerPhase::done : LayerPhase::exists, layer.bytes, layer.bytes);
    }
    TRY(name_sharers());
    return std::move(report_);
  }

 private:
  /// Each layer once, including layers that have the new form already.
  Result<std::vector<image::Layer>> find_layers() {
    std::vector<image::Layer> layers;
    std::set<Digest> seen;
    for (const std::string& name : request_.images) {
      image::Image image = TRY(store_.get_image(name));
      asked_.insert(image.manifest_digest);
      if (!image.unpacked()) {
        return make_error(Kind::not_found,
                          "convert image " + quote(name) + ": not all of it is unpacked",
                          "berth pull " + name);
      }
      for (image::Layer& layer : image.layers) {
        if (seen.insert(layer.diff_id).second) layers.push_back(std::move(layer));
      }
    }
    return layers;
  }

  Result<image::LayerRecord> record_of(const image::Layer& layer) {
    std::string directory = parent_of_file(layer.directory);
    sys::Fd fd = TRY(sys::open_at(sys::cwd(), directory, kEnterTree));
    return image::read_layer_record_at(fd, directory);
  }

  Error in_use(const image::Layer& layer, const std::string& container) {
    if (container == image::kBusyDelivery) {
      return make_error(
          Kind::busy,
          "convert layer " + layer.diff_id.short_hex() + ": " + container + " needs it that runs",
          "try again");
    }
    std::string id = container.substr(0, 12);
    return make_error(
        Kind::busy, "convert layer " + layer.diff_id.short_hex() + ": container " + id + " uses it",
        "berth rm -f " + id);
  }

  /// An early check; replace_layer() decides.
  Result<void> check_idle(const image::Layer& layer) {
    if (TRY(record_of(layer)).flavor.format == request_.flavor.format) return {};
    if (request_.flavor.ownership == image::Ownership::single &&
        request_.flavor.format == image::LayerFormat::erofs) {
      return make_error(
          Kind::unsupported,
          "make EROFS images of directories without subordinate ids: they lack the files' owners",
          "berth rmi, and berth --layer-format erofs pull");
    }
    auto look = [] { return Result<void>(); };
    std::string user = TRY(image::with_idle_layer(store_, layer_name(layer), look, delivery_));
    if (!user.empty()) return in_use(layer, user);
    return {};
  }

  /// Returns false if the layer has the new form already.
  Result<bool> convert(const image::Layer& layer) {
    TRY(cancel_.check());
    auto stopped = [this] { return cancel_.requested(); };
    image::Claim claim = TRY(delivery_->claim_layer(layer.diff_id, stopped));
    if (!TRY(delivery_->keep_layer(layer.diff_id))) {
      return make_error(Kind::not_found, "it has been removed");
    }
    image::LayerRecord record = TRY(record_of(layer));
    if (record.flavor.format == request_.flavor.format) {
      ++report_.present;
      return false;
    }
    const std::string& path = layer.directory;
    TRY(mend_times(layer));
    auto left_out = TRY(check_content(path, record.flavor.format));
    image::Staged staged = TRY(delivery_->stage_layer(request_.flavor.format));
    TRY(unpack(layer, std::move(left_out), staged));
    TRY(copy_facts(path, staged));
    std::string user =
        TRY(image::replace_layer(store_, *delivery_, layer_name(layer), std::move(staged),
                                 {record.diff_id, flavor_of_new_layers(store_), record.entries,
                                  record.bytes, record.blobs}));
    if (!user.empty()) return in_use(layer, user);
    report_.layers.push_back(layer.diff_id);
    return true;
  }

  /// Resets times that a process has left when it was killed while linking files.
  Result<void> mend_times(const image::Layer& layer) {
    std::string mark = parent_of_file(layer.directory) + "/" + image::kLinkingFile;
    if (!TRY(sys::stat_entry(sys::cwd(), mark))) return {};
    sys::Fd root = TRY(sys::open_at(sys::cwd(), store_.root(), kEnterTree));
    image::Staged none;
    return LayerLinks(store_, root, none, delivery_).mend(layer_name(layer));
  }

  /// Compares the layer with its record, as the new record must not contain damage. Returns the
  /// devices that could not be made.
  Result<std::vector<LeftOutDevice>> check_content(const std::string& path,
                                                   image::LayerFormat format) {
    constexpr int kRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
    auto record =
        TRY(sys::open_if_exists(sys::cwd(), parent_of_file(path) + "/" + kTreeFile, kRead));
    if (!record) return std::vector<LeftOutDevice>();  // made by a version without records
    auto stop = [this] { return cancel_.requested(); };
    TreeDifferences found;
    if (format == image::LayerFormat::erofs) {
      sys::Fd image = TRY(sys::open_at(sys::cwd(), path, kRead));
      found = TRY(compare_extents(image, *record, stop));
    } else {
      sys::Fd tree = TRY(sys::open_at(sys::cwd(), path, kEnterTree));
      found = TRY(compare_tree(tree, *record, Depth::all, stop));
    }
    if (found.count == 0) return std::move(found.left_out);
    return make_error(Kind::corrupt,
                      "it is not what was unpacked: " + join(found.texts, ", ").substr(0, 200),
                      "berth system check --repair");
  }

  Result<void> unpack(const image::Layer& layer, std::vector<LeftOutDevice> left_out,
                      const image::Staged& staged) {
    sys::Layer source = TRY(sys::open_layer(layer.directory));
    TreeTarOptions tar;
    tar.name = ".";  // so that the attributes of the root are included
    tar.marks = Marks::layer;
    tar.detail = Detail::all;
    tar.left_out = std::move(left_out);
    tar.overlay = store_.flavor().overlay_xattr;
    tar.holes = source.detached ? Holes::found : Holes::kept;
    UnpackOptions options;
    options.ownership = flavor_of_new_layers(store_).ownership;
    options.overlay_xattr = flavor_of_new_layers(store_).overlay_xattr;
    options.limits = no_limits();
    options.cancel = &cancel_;
    std::string id = layer.diff_id.short_hex();
    options.on_progress = [&](uint64_t bytes) {
      events_.layer(id, LayerPhase::unpacking, std::min(bytes, layer.bytes), layer.bytes);
    };
    options.on_warning = [&](const std::string& text) {
      events_.warn("layer " + id + ": " + text);
    };

    sys::Pipe pipe = TRY(sys::make_pipe());
    sys::widen_pipe(pipe, kPipe);
    Result<void> written;
    Result<UnpackedLayer> made = make_error(Kind::bug, "nothing was unpacked");
    {
      auto writer = sys::start_thread([&] {
        PipeSink sink(pipe.write);
        written = write_tree_tar(source.root, tar, sink);
        pipe.write.reset();
      });
      if (!writer) return make_error(Kind::busy, "start a thread: the limit is reached");
      made = make_layer(staged, request_.flavor.format,
                        Inflater::make(oci::Compression::none, pipe_input(pipe.read)),
                        layer.diff_id, options);
      pipe.read.reset();  // a writer that is not done gets EPIPE
    }
    // If there are two errors, EPIPE of the writer is only a consequence of the reader's error.
    bool gone = !written.ok() && written.error().sys_errno == EPIPE;
    if (!written.ok() && !gone) return written;
    if (!made.ok()) return std::move(made).error();
    return {};
  }

  /// Copies the facts about the files, which are still true.
  Result<void> copy_facts(const std::string& path, const image::Staged& staged) {
    auto text = TRY(sys::read_file_if_exists(
        sys::cwd(), parent_of_file(path) + "/" + facts::kLayerFactsFile, facts::kMaxLayerFacts));
    if (!text) return {};
    return sys::write_file(staged.fd(), facts::kLayerFactsFile, *text, 0600);
  }

  /// Finds other images with one of these layers.
  Result<void> name_sharers() {
    std::set<Digest> made(report_.layers.begin(), report_.layers.end());
    std::vector<std::string> damaged;
    for (const image::Image& image : TRY(store_.list(&damaged))) {
      if (asked_.contains(image.manifest_digest)) continue;
      bool shares = std::ranges::any_of(
          image.layers, [&](const image::Layer& layer) { return made.contains(layer.diff_id); });
      if (!shares) continue;
      report_.shared.push_back(image.references.empty() ? image.id.text()
                                                        : image.references.front().familiar());
    }
    return {};
  }

  image::Store& store_;
  const image::ConvertRequest& request_;
  Events& events_;
  Cancel& cancel_;
  image::Delivery* delivery_ = nullptr;
  std::set<Digest> asked_;  ///< manifests
  image::ConvertReport report_;
};

}  // namespace

Result<image::TransferResult> convert(const image::ConvertRequest& request, const EventSink& sink,
                                      Cancel& cancel) {
  image::Store store = TRY(image::Store::open(request.root, request.flavor));
  Events events(sink, Events::Layers::shown);
  Conversion conversion(store, request, events, cancel);
  image::TransferResult result;
  result.convert = TRY(conversion.run());
  return result;
}

}  // namespace berth::transfer
