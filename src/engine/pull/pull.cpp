// SPDX-License-Identifier: Apache-2.0
#include "engine/pull/pull.hpp"

#include <optional>
#include <utility>

#include "base/text.hpp"
#include "engine/container/list.hpp"
#include "engine/image/file.hpp"
#include "engine/image/rootfs.hpp"
#include "engine/image/store.hpp"
#include "engine/request/volume.hpp"
#include "engine/site/rules.hpp"

namespace berth::engine {
namespace {

Result<void> check_rules(const Context& context, const PullWish& wish) {
  if (wish.container != nullptr) return check_registry(context, *wish.container, nullptr);
  return check_registry(context, wish.request.reference, nullptr);
}

/// Judges the image by its files, now that the store has them.
Result<void> judge_files(const Context& context, const PullWish& wish,
                         const std::string& reference) {
  image::Store store = TRY(open_store(context));
  // A local image may have been named by its id.
  auto image = TRY(wish.request.local ? store.find_image(wish.request.reference)
                                      : store.find_image_named(reference));
  if (!image) return {};  // another process has removed it
  if (wish.request.strict) return judge_present(context, wish.gpus, *image, true);
  bool starts = wish.container != nullptr;
  return judge_unpacked(context, wish.gpus, *image, starts ? Remarks::refuse : Remarks::warn);
}

Error no_such_image(const std::string& name) {
  return make_error(Kind::not_found, "no such image: " + name, "berth pull " + name);
}

/// Adds a hint if `reference` is a container: udocker and enroot run containers by their names.
Error no_such_registry_image(const Context& context, const std::string& reference, Error error) {
  auto container = get_container(context, reference);
  if (!container.ok() || container->name != reference) return error;
  error.hint = quote(reference) + " is a container here: berth start -a " + reference +
               ", or berth exec " + reference + " COMMAND";
  return error;
}

GpuWish wish_of(const RunRequest& request) {
  return {.driver_mode = request.gpu_driver,
          .needs_gpus = request.gpus && *request.gpus != "none",
          .other_command = request.entrypoint || !request.command.empty()};
}

PullWish pull_of(const RunRequest& request, const RunCall& call) {
  PullWish wish;
  wish.gpus = wish_of(request);
  wish.container = &request;
  wish.request.reference = request.image;
  wish.request.force = call.force;
  wish.request.strict = call.strict;
  wish.request.platform = call.platform;
  wish.request.access = call.registry;
  wish.request.quiet = call.quiet;
  return wish;
}

oci::Platform platform_of(const image::Image& image) {
  const oci::ImageConfig& config = image.config;
  std::string os = config.os.empty() ? "linux" : config.os;
  oci::Platform platform{config.architecture, os, {}, {}, config.variant};
  auto named = oci::parse_platform(os + "/" + config.architecture);  // "aarch64" is arm64
  if (named.ok()) platform.architecture = named->architecture;
  return platform;
}

/// Drops `found` if it is for another platform than requested, so that it is pulled, as docker
/// does. Errors: not_found, if nothing may be pulled. Returns the mismatch as text, or "".
Result<std::string> drop_other_platform(const RunCall& call, const std::string& reference,
                                        std::optional<image::Image>& found) {
  if (!call.platform) return std::string();
  oci::Platform wish = TRY(oci::parse_platform(*call.platform));
  if (!found) return std::string();
  oci::Platform here = platform_of(*found);
  bool fits = here.os == wish.os && here.architecture == wish.architecture &&
              (wish.variant.empty() || here.variant.empty() || here.variant == wish.variant);
  if (fits) return std::string();
  // An id belongs to one platform, and no registry can look it up.
  std::string id = found->id.text();
  bool by_id = id.starts_with(reference) || id.substr(id.find(':') + 1).starts_with(reference);
  found.reset();
  std::string wrong = "image " + quote(reference) + " is here for " +
                      escape_controls(oci::platform_text(here)) + ", not for " +
                      oci::platform_text(wish);
  if (call.pull != PullPolicy::never && !by_id) return wrong;
  return make_error(Kind::not_found, std::move(wrong), "--pull missing");
}

/// Warns, as docker does at each start, of an image of the store that is for another platform than
/// this machine, unless --platform requested it: an emulator may run it (binfmt_misc).
/// Errors: unsupported (with --strict).
Result<void> note_other_platform(const Context& context, const RunCall& call,
                                 const image::Image& found) {
  oci::Platform of_image = platform_of(found), here = oci::host_platform();
  bool fits = of_image.os == here.os && of_image.architecture == here.architecture;
  if (fits || call.platform || call.force) return {};
  std::string text = "the image is for " + escape_controls(oci::platform_text(of_image)) +
                     ", this machine is " + oci::platform_text(here);
  if (call.strict) {
    return make_error(Kind::unsupported, std::move(text), "without --strict it starts");
  }
  context.log.warn(text + ", ignoring");
  return {};
}

/// Pulls the missing images of image mounts. Whether they can run on this machine does not matter:
/// they are only read.
Result<void> pull_image_mounts(const Context& context, const image::Store& store,
                               const RunRequest& request, const RunCall& call,
                               const Progress& progress) {
  RunCall loose = call;
  loose.force = true;
  loose.strict = false;
  for (const ImageMount& mount : request.image_mounts) {
    if (mount.is_file) continue;
    RunRequest other;
    other.image = mount.source;
    TRY_CTX(have_image(context, store, other, loose, progress), cannot_mount(mount));
  }
  return {};
}

}  // namespace

Result<Pulled> pull(const Context& context, PullWish wish, const Progress& progress) {
  // For an image in the store, the rules were checked when it was pulled.
  if (!wish.request.local) {
    TRY(check_rules(context, wish));
    judge_by_this_node(context, wish.gpus, wish.request);
  }
  image::TransferResult result = TRY(transfer(context, wish.request, progress));
  if (!wish.request.force) TRY(judge_files(context, wish, result.reference));
  bool downloaded = result.status == "downloaded";
  return Pulled{std::move(result.reference), std::move(result.digest), downloaded};
}

Result<image::Image> have_image(const Context& context, const image::Store& store,
                                const RunRequest& request, const RunCall& call,
                                const Progress& progress) {
  const std::string& reference = request.image;
  std::optional<image::Image> found;
  std::string other_platform;  // set if the local image is for another platform
  if (is_of_store(request)) {
    if (call.pull != PullPolicy::always) {
      found = TRY(find_present_image(store, reference));
      if (!found) TRY(check_no_image_file(reference));
    }
    other_platform = TRY(drop_other_platform(call, reference, found));
    TRY(check_registry(context, request, found ? &*found : nullptr));
  }
  TRY(pull_image_mounts(context, store, request, call, progress));
  if (request.rootfs) return no_image();
  if (request.image_file) return describe_image_file(request.image);
  if (found && found->unpacked()) {
    TRY(note_other_platform(context, call, *found));
    if (!call.force) TRY(judge_present(context, wish_of(request), *found, call.strict));
    return std::move(*found);
  }
  if (!found && call.pull == PullPolicy::never) return no_such_image(reference);
  PullWish wish = pull_of(request, call);
  wish.request.local = found.has_value();
  auto pulled = pull(context, std::move(wish), progress);
  if (!pulled.ok()) {
    Error error = no_such_registry_image(context, reference, std::move(pulled).error());
    if (!other_platform.empty()) return std::move(error).with_context(std::move(other_platform));
    return error;
  }
  return store.get_image(reference);
}

Result<image::Image> image_of(const Context& context, const record::Container& record,
                              const RunRequest& request) {
  if (request.image_file) return describe_image_file(request.image);
  image::Store store = TRY(open_store(context));
  if (request.rootfs) return no_image();
  image::Image image = TRY(store.get_image(record.image_id));
  store.note_used(image.manifest_digest);
  return image;
}

}  // namespace berth::engine
