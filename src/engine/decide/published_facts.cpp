// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/published_facts.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "base/time.hpp"
#include "engine/container/list.hpp"
#include "engine/context/time.hpp"
#include "engine/decide/explain.hpp"
#include "engine/gpu/list.hpp"
#include "engine/gpu/use.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/store.hpp"
#include "engine/image/transfer.hpp"
#include "engine/node/match.hpp"
#include "engine/state/directory.hpp"
#include "gpu/inventory/driver_root.hpp"
#include "image/store.hpp"
#include "known_error/end.hpp"
#include "match/run_record.hpp"
#include "node/gather/gather.hpp"
#include "policy/policy.hpp"
#include "sys/file/file.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxStat = size_t{1} << 20;

Error no_record(const ContainerSummary& container, const std::string& why, std::string hint = {}) {
  return make_error(Kind::usage, "publish how " + quote(container.name) + " ran: " + why,
                    std::move(hint));
}

/// The boot time of this machine, in seconds since 1970.  Source: proc(5), /proc/stat.
std::optional<int64_t> boot_time() {
  auto text = sys::read_file(sys::cwd(), "/proc/stat", kMaxStat);
  if (!text.ok()) return std::nullopt;
  for (std::string_view line : split(*text, '\n')) {
    if (line.starts_with("btime ")) return parse_i64(line.substr(6));
  }
  return std::nullopt;
}

/// For a container without a monitor no boot is recorded, only the time of its creation.
bool is_of_this_boot(const ContainerSummary& container, const ContainerFiles& files) {
  if (files.start) {
    auto boot = sys::boot_id();
    return boot.ok() && *boot == files.start->boot_id;
  }
  auto booted = boot_time();
  return booted && container.created_at >= *booted;
}

Result<void> check_image(const ContainerSummary& container, const image::Image& image) {
  if (container.image_id == image.id.text()) return {};
  return no_record(container, "it is a container of " + quote(container.image) +
                                  ", which is another image here");
}

Result<void> check_end(const ContainerSummary& container, const ContainerFiles& files) {
  if (is_alive(container.state)) {
    return no_record(container, "it has not ended",
                     "berth wait " + escape_controls(container.name));
  }
  if (!container.exit_code) {
    bool never = container.state == ContainerState::created;
    return no_record(container, never ? "it was never started" : "its end was not observed");
  }
  if (!container.error.empty()) {
    return no_record(container, "it was not started: " + escape_controls(container.error));
  }
  known_error::End end{*container.exit_code, files.exit && files.exit->stopped,
                       container.oom_killed};
  if (end.status != 0 && !known_error::is_own_failure(end)) {
    return no_record(container, "it was ended from outside, which says nothing about this machine");
  }
  if (!is_of_this_boot(container, files)) {
    return no_record(container,
                     "it ran before the last boot, and what the machine was then is not known",
                     "run it again");
  }
  return {};
}

Result<void> check_command(const ContainerSummary& container, const image::Image& image) {
  std::vector<std::string> own = image.config.config.entrypoint;
  own.insert(own.end(), image.config.config.cmd.begin(), image.config.config.cmd.end());
  if (container.command == own) return {};
  return no_record(container, "it did not run the image's own command",
                   "berth run it without a command and without --entrypoint");
}

Result<void> check_architecture(const ContainerSummary& container, const image::Image& image,
                                const node::Profile& node) {
  const std::string& theirs = image.config.architecture;
  if (theirs.empty() || theirs == node.architecture) return {};
  return no_record(container,
                   "the image is for " + escape_controls(theirs) + ", so an emulator ran it");
}

/// This machine, with only the GPUs that the container had.
Result<node::Profile> node_of_run(const Context& context, const ContainerSummary& container) {
  gpu::Inventory inventory = TRY(list_gpus(context, gpu::Refresh::if_stale));
  std::set<std::string> nodes = nodes_given(context, container);
  std::erase_if(inventory.gpus,
                [&](const gpu::Gpu& gpu) { return !nodes.contains(gpu.node.path); });
  auto root = TRY(gpu::DriverRoot::open(inventory.driver_root));
  return node::gather(root, inventory);
}

/// The origin of the container's user-land driver: as its explanation says, else as the policy says
/// now.
Result<match::UserLand> user_land_of_run(const Context& context,
                                         const ContainerSummary& container) {
  Explained explained = TRY(explain_container(context, container.id));
  for (const gpu::Reason& item : explained.explanation.items) {
    if (item.kind != "driver-mode") continue;
    return user_land_of(TRY(parse_enum<policy::DriverMode>(item.object)));
  }
  return usual_user_land(context);
}

std::vector<match::RunGpu> kinds_of(const std::vector<node::NodeGpu>& gpus) {
  std::vector<match::RunGpu> kinds;
  for (const node::NodeGpu& gpu : gpus) {
    kinds.push_back({gpu.vendor, gpu.model, gpu.compute_capability, gpu.architecture});
  }
  std::ranges::sort(kinds);
  kinds.erase(std::unique(kinds.begin(), kinds.end()), kinds.end());
  return kinds;
}

std::optional<match::RunDriver> driver_of(const node::Profile& node) {
  if (!node.driver.module_version.empty()) {
    return match::RunDriver{"nvidia", node.driver.module_version};
  }
  if (!node.rocm.empty()) return match::RunDriver{"rocm", node.rocm};
  return std::nullopt;
}

/// The run record of a container of `image` that ended on this machine, in the form that is
/// published. It describes the machine as it is now, so the container must have run since the last
/// boot.
/// Errors: not_found (the container); usage (it is of another image, has not ended, was ended from
/// outside, did not run the image's own command, or ran before the last boot); those of
/// this_node().
Result<match::RunRecord> record_of_run(const Context& context, std::string_view reference,
                                       const image::Image& image, std::string berth_version) {
  ContainerSummary container = TRY(get_container(context, reference));
  TRY(check_image(container, image));
  ContainerFiles files = TRY(read_container(context.paths, container.id));
  TRY(check_end(container, files));
  TRY(check_command(container, image));
  node::Profile node = TRY(node_of_run(context, container));
  TRY(check_architecture(container, image, node));

  match::RunRecord record;
  record.time = format_time(container.finished_ns.value_or(0) / kNanosecondsPerSecond);
  record.exit = static_cast<uint32_t>(*container.exit_code);
  record.user_land = TRY(user_land_of_run(context, container));
  record.gpus = kinds_of(node.gpus);
  record.architecture = node.architecture;
  record.cpu = {node.cpu.microarchitecture, node.cpu.level};
  record.kernel = match::plain_release(node.kernel.release);
  record.driver = driver_of(node);
  record.synthetic = node.synthetic;
  record.berth = std::move(berth_version);
  // Do not publish a record that another Berth would refuse.
  TRY_CTX(match::check(record), "cannot describe this machine");
  return record;
}

}  // namespace

Result<image::PublishedImage> findings_of(const Context& context, const image::Image& image) {
  const oci::ImageConfig& config = image.config;
  image::PublishedImage published;
  published.image = image.manifest_digest;
  published.platform = {config.architecture, config.os, {}, {}, config.variant};
  published.config = image::declaring_part(config.config);
  published.found = TRY(facts_of_image(context, image));
  return published;
}

Result<image::TransferResult> attach_facts(const Context& context,
                                           const AttachFactsRequest& request) {
  image::PublishFactsRequest publish;
  publish.access = request.access;
  if (request.sign_key) {
    publish.sign_key = TRY(read_key_file(*request.sign_key));
    publish.trusted_keys = TRY(facts_trust(context)).keys;
  }
  image::Store store = TRY(open_store(context));
  image::Image image = TRY(store.get_image(request.reference));
  if (image.references.empty()) {
    return make_error(Kind::usage,
                      "publish facts of " + quote(request.reference) + ": it has no name",
                      "berth tag it with the name that it has at the registry");
  }
  publish.reference = image.references.front().canonical();
  for (const image::Reference& one : image.references) {
    if (one.canonical() == request.reference || one.familiar() == request.reference) {
      publish.reference = one.canonical();
    }
  }
  std::optional<match::RunRecord> run;
  if (request.container) {
    run = TRY(record_of_run(context, *request.container, image, request.berth_version));
  }
  publish.images.push_back(
      TRY_CTX(findings_of(context, image), "cannot scan image " + quote(request.reference)));
  if (run) publish.images.back().runs.push_back(std::move(*run));
  return transfer(context, std::move(publish), {});
}

}  // namespace berth::engine
