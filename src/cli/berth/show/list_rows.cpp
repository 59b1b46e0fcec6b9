// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/list_rows.hpp"

#include "base/text.hpp"
#include "engine/container/list.hpp"

namespace berth::cli {
namespace {

constexpr const char* kNotCounted = "N/A";

std::string volume_count(const std::vector<engine::MountSummary>& mounts) {
  size_t count = 0;
  for (const engine::MountSummary& mount : mounts) count += mount.type == "volume" ? 1 : 0;
  return std::to_string(count);
}

ListRow image_row_of(const engine::ImageSummary& image, Ids ids, std::string containers,
                     std::string shared, std::string unique) {
  const std::string size = human_bytes(image.size);
  return {{std::move(containers), zoned_time(image.created_at), ago(image.created_at),
           image.digest.empty() ? "<none>" : image.digest, shown_id(image.id, ids),
           image.read_only ? "true" : "false", image.repository, std::move(shared), size, image.tag,
           std::move(unique), size}};
}

ListRow volume_row_of(const Session& session, const engine::VolumeRecord& volume, std::string links,
                      std::string size) {
  Labels labels(volume.labels.begin(), volume.labels.end());
  return {{volume.driver, labels_text(labels), std::move(links),
           engine::volume_data(session.context.paths.root, volume.name), volume.name, "local",
           std::move(size)},
          labels};
}

}  // namespace

ListRow container_row(const engine::ListedContainer& container, Text text, Now now) {
  const engine::ContainerSummary& c = container.summary;
  const Ids ids = text == Text::whole ? Ids::whole : Ids::shortened;
  const engine::ContainerDetails& details = container.details;
  Labels labels(details.labels.begin(), details.labels.end());
  const bool runs = engine::is_alive(c.state);
  return {{command_words(c.command, text), zoned_time(c.created_at), container.health,
           shown_id(c.id, ids),
           c.image == c.image_id ? shown_id(c.image, ids) : engine::familiar(c.image),
           labels_text(labels), volume_count(details.mounts), mount_words(details.mounts, text),
           c.name, join(details.networks, ","), runs ? port_words(details.ports) : "",
           ago(c.created_at), container.size ? size_words(*container.size) : "0B",
           std::string(engine::container_state_name(c.state)), status_words(container, now)},
          std::move(labels)};
}

ListRow image_row(const engine::ImageSummary& image, Ids ids) {
  return image_row_of(image, ids, kNotCounted, kNotCounted, kNotCounted);
}

ListRow image_row(const engine::ImageUsage& usage, Ids ids) {
  return image_row_of(usage.image, ids, std::to_string(usage.containers),
                      human_bytes(usage.shared_bytes),
                      human_bytes(usage.image.size - usage.shared_bytes));
}

ListRow volume_row(const Session& session, const engine::VolumeRecord& volume) {
  return volume_row_of(session, volume, kNotCounted, kNotCounted);
}

ListRow volume_row(const Session& session, const engine::VolumeUsage& usage) {
  return volume_row_of(session, usage.volume, std::to_string(usage.containers),
                       human_bytes(usage.bytes));
}

}  // namespace berth::cli
