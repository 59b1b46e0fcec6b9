// SPDX-License-Identifier: Apache-2.0
#include "engine/image/transfer.hpp"

#include <array>
#include <cerrno>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/text.hpp"
#include "engine/context/registries.hpp"
#include "engine/context/time.hpp"
#include "engine/image/images.hpp"
#include "engine/state/journal.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/layer.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"
#include "sys/process/stream.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxLine = 2 * oci::kMaxManifestBytes + (size_t{1} << 20);  // a manifest, escaped
constexpr uint64_t kMaxDescriptor = 1'000'000;

/// Copies of descriptors of this process, which the child inherits under the same numbers; the
/// child uses these numbers for no other file.
class PassedStreams {
 public:
  /// Replaces "/dev/fd/N" of this process by the name that the descriptor has in the child.
  Result<void> redirect(std::string& path) {
    constexpr std::string_view kOurDescriptor = "/dev/fd/";
    if (!path.starts_with(kOurDescriptor)) return {};
    auto number = parse_u64(std::string_view(path).substr(kOurDescriptor.size()));
    if (!number || *number > kMaxDescriptor) return {};
    sys::Fd ours(static_cast<int>(*number));
    auto copy = sys::duplicate(ours);
    ours.release();  // stays open: this process owns the descriptor
    if (!copy.ok()) return std::move(copy).error();
    path = kOurDescriptor;
    path += std::to_string(copy->get());
    fds_.push_back(std::move(*copy));
    return {};
  }
  std::vector<int> numbers() const {
    std::vector<int> list;
    for (const sys::Fd& fd : fds_) list.push_back(fd.get());
    return list;
  }

 private:
  std::vector<sys::Fd> fds_;
};

Result<image::LayerFormat> layer_format(const Context& context) {
  if (context.layer_format.empty()) return image::LayerFormat::directory;
  image::LayerFormat format =
      TRY_CTX(parse_enum<image::LayerFormat>(context.layer_format, Kind::usage), "--layer-format");
  if (format == image::LayerFormat::directory) return format;
  auto checked = sys::check_erofs();
  if (!checked.ok()) return std::move(checked).error().with_context("--layer-format erofs");
  return format;
}

// Applies environment variables to every pull, including the pull of `run`.
Result<void> complete_pull(const Environment& environment, image::PullRequest& request) {
  auto keep = environment.get_filled("BERTH_KEEP_BLOBS");
  if (keep && *keep != "0") request.keep_blobs = true;
  auto budget = environment.get_filled("BERTH_MEMORY_BUDGET");
  if (budget && request.memory_budget == 0) {
    request.memory_budget = TRY(parse_memory_budget("BERTH_MEMORY_BUDGET", *budget));
  }
  return {};
}

// Sets the members that all requests need.
Result<void> complete(const Context& context, image::TransferRequest& request,
                      PassedStreams& streams) {
  bool single = context.identity == Identity::single;
  bool root = context.identity == Identity::root;
  return std::visit(
      [&](auto& r) -> Result<void> {
        if constexpr (requires { r.tree; }) TRY(streams.redirect(r.tree));
        if constexpr (requires { r.loader_cache; }) TRY(streams.redirect(r.loader_cache));
        if constexpr (requires { r.top; }) TRY(streams.redirect(r.top));
        if constexpr (requires { r.directory; }) TRY(streams.redirect(r.directory));
        if constexpr (requires { r.root; }) r.root = context.paths.root;
        if constexpr (requires { r.additional_stores; }) {
          r.additional_stores = context.paths.additional_stores;
        }
        if constexpr (requires { r.flavor; }) {
          r.flavor.ownership = single ? image::Ownership::single : image::Ownership::full;
          r.flavor.overlay_xattr = root ? image::OverlayXattr::trusted : image::OverlayXattr::user;
          r.flavor.format = TRY(layer_format(context));
        }
        if constexpr (requires { r.access; }) TRY(add_registries(context, r.access));
        if constexpr (requires { r.memory_budget; }) {
          TRY(complete_pull(context.environment, r));
        }
        if constexpr (requires { r.source_date; }) {
          r.source_date = TRY(source_date(context.environment));
        }
        if constexpr (requires { r.input; }) TRY(streams.redirect(r.input));
        if constexpr (requires { r.output; }) TRY(streams.redirect(r.output));
        if constexpr (requires { r.source; }) TRY(streams.redirect(r.source));
        return {};
      },
      request);
}

/// The child's events, line by line.
class Lines {
 public:
  explicit Lines(const sys::Fd& fd) : fd_(fd) {}

  /// Nothing at the end.  Errors: io, corrupt (a line over 9 MiB).
  Result<std::optional<std::string>> next() {
    while (true) {
      size_t end = buffer_.find('\n', start_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(start_, end - start_);
        start_ = end + 1;
        return std::optional<std::string>(std::move(line));
      }
      buffer_.erase(0, start_);
      start_ = 0;
      if (buffer_.size() > kMaxLine) {
        return make_error(Kind::corrupt, "berth-transfer: a line of more than 9 MiB");
      }
      std::array<char, 16384> chunk;
      size_t count = TRY(sys::read_some(fd_, chunk, "events of berth-transfer"));
      if (count == 0) return std::optional<std::string>();
      buffer_.append(chunk.data(), count);
    }
  }

 private:
  const sys::Fd& fd_;
  std::string buffer_;
  size_t start_ = 0;
};

/// A running child.
struct Call {
  sys::Process child;
  sys::Fd events;
};

Result<Call> start(const Context& context, image::TransferRequest request) {
  PassedStreams streams;
  TRY(complete(context, request, streams));
  sys::Fd input = TRY(sys::memory_file("berth-transfer-request", image::to_json(request)));
  sys::Pipe events = TRY(sys::make_pipe());

  sys::SpawnOptions options;
  options.program = context.paths.libexec + "/berth-transfer";
  options.args = {"berth-transfer"};
  options.env = context.environment.without_loader();
  options.in = &input;
  options.out = &events.write;
  options.keep = streams.numbers();
  Call call;
  call.child = TRY(sys::spawn(options));
  call.events = std::move(events.read);
  return call;
}

Result<image::TransferResult> finish(const Context& context, Call call, const Progress& progress) {
  std::optional<Result<image::TransferResult>> outcome;
  Lines lines(call.events);
  while (auto line = TRY(lines.next())) {
    auto event = TRY(image::parse_event(*line));
    if (auto* result = std::get_if<image::TransferResult>(&event)) {
      outcome = std::move(*result);
    } else if (auto* error = std::get_if<Error>(&event)) {
      outcome = std::move(*error);
    } else if (auto* warning = std::get_if<image::WarningEvent>(&event)) {
      context.log.warn(warning->text);
    } else if (progress) {
      progress(event);
    }
  }
  sys::ExitStatus status = TRY(call.child.wait());
  if (outcome) return std::move(*outcome);
  if (status.signal != 0) {
    return make_error(Kind::interrupted,
                      "berth-transfer was ended by signal " + std::to_string(status.signal));
  }
  std::string known_error = sys::loader_complaint(context.paths.libexec + "/berth-transfer");
  if (!known_error.empty()) {
    return make_error(Kind::unsupported, "start " + known_error,
                      "install the Berth that was built for this system, or build it here");
  }
  return make_error(Kind::bug,
                    "berth-transfer ended without a result, status " + std::to_string(status.code));
}

// As with docker, the events of pull and push name the image by its reference, those of load and
// import by its id.
void emit_transfer(const Context& context, const image::TransferRequest& request,
                   const image::TransferResult& result) {
  auto name_of = [](const std::string& reference) {
    std::string name = familiar(reference);
    return name.substr(0, name.find_first_of(":@", name.rfind('/') + 1));
  };
  const std::string named = familiar(result.reference);
  std::visit(
      [&](const auto& r) {
        using Request = std::remove_cvref_t<decltype(r)>;
        if constexpr (std::is_same_v<Request, image::PullRequest> ||
                      std::is_same_v<Request, image::PushRequest>) {
          emit_image_event(context.paths, r.verb, named, name_of(named));
        } else if constexpr (std::is_same_v<Request, image::SaveRequest>) {
          for (const std::string& reference : r.references) {
            emit_image_event(context.paths, r.verb, reference, reference);
          }
        } else if constexpr (std::is_same_v<Request, image::LoadRequest> ||
                             std::is_same_v<Request, image::ImportRequest>) {
          emit_image_event(context.paths, r.verb, result.image_id, result.image_id);
        }
      },
      request);
}

}  // namespace

Result<uint64_t> parse_memory_budget(std::string_view what, std::string_view text) {
  constexpr uint64_t kLeast = uint64_t{32} << 20;
  auto bytes = parse_bytes(text);
  if (bytes && *bytes >= kLeast) return *bytes;
  return make_error(
      Kind::usage,
      std::string(what) + ": " + quote(text) + (bytes ? " is too small" : " is not a size"),
      "512m; at least 32m");
}

Result<image::TransferResult> transfer(const Context& context, image::TransferRequest request,
                                       const Progress& progress) {
  Call call = TRY(start(context, request));
  image::TransferResult result = TRY(finish(context, std::move(call), progress));
  emit_transfer(context, request, result);
  return result;
}

Result<void> transfer_tree(const Context& context, image::ArchiveRequest from,
                           image::ExtractRequest to) {
  sys::Pipe pipe = TRY(sys::make_pipe());
  from.output = descriptor_name(pipe.write);
  to.input = descriptor_name(pipe.read);
  Call writer = TRY(start(context, std::move(from)));
  pipe.write.reset();
  Call reader = TRY(start(context, std::move(to)));
  pipe.read.reset();
  // The archiving child prints only a few lines, so it never blocks until we read them.
  auto extracted = finish(context, std::move(reader), {});
  auto archived = finish(context, std::move(writer), {});
  // If both children failed, return the error that caused the failure of the other child.
  if (!archived.ok() && (extracted.ok() || archived.error().sys_errno != EPIPE)) {
    return std::move(archived).error();
  }
  if (!extracted.ok()) return std::move(extracted).error();
  return {};
}

std::string descriptor_name(const sys::Fd& fd) {
  return "/dev/fd/" + std::to_string(fd.get());
}

}  // namespace berth::engine
