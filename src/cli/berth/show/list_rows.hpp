// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/berth/common.hpp"
#include "cli/berth/show/container_words.hpp"
#include "cli/template/listing.hpp"
#include "engine/system/disk.hpp"

/// Rows of `ps`, `images`, `volume ls` and `system df`, with docker's fields.
namespace berth::cli {

inline constexpr ListField kContainerFields[] = {
    {"Command", "COMMAND"},
    {"CreatedAt", "CREATED AT"},
    {"HealthStatus", "HEALTH STATUS"},
    {"ID", "CONTAINER ID"},
    {"Image", "IMAGE"},
    {"Labels", "LABELS"},
    {"LocalVolumes", "LOCAL VOLUMES"},
    {"Mounts", "MOUNTS"},
    {"Names", "NAMES"},
    {"Networks", "NETWORKS"},
    {"Ports", "PORTS"},
    {"RunningFor", "CREATED"},
    {"Size", "SIZE"},
    {"State", "STATE"},
    {"Status", "STATUS"},
};
ListRow container_row(const engine::ListedContainer& container, Text text, Now now);

inline constexpr ListField kImageFields[] = {
    {"Containers", "CONTAINERS"},
    {"CreatedAt", "CREATED AT"},
    {"CreatedSince", "CREATED"},
    {"Digest", "DIGEST"},
    {"ID", "IMAGE ID"},
    {"ReadOnly", "R/O"},
    {"Repository", "REPOSITORY"},
    {"SharedSize", "SHARED SIZE"},
    {"Size", "SIZE"},
    {"Tag", "TAG"},
    {"UniqueSize", "UNIQUE SIZE"},
    {"VirtualSize", "SIZE"},
};
/// The space that images share is not computed for a list: docker prints "N/A" too.
ListRow image_row(const engine::ImageSummary& image, Ids ids);
ListRow image_row(const engine::ImageUsage& usage, Ids ids);

inline constexpr ListField kVolumeFields[] = {
    {"Driver", "DRIVER"},    {"Labels", "LABELS"}, {"Links", "LINKS"}, {"Mountpoint", "MOUNTPOINT"},
    {"Name", "VOLUME NAME"}, {"Scope", "SCOPE"},   {"Size", "SIZE"},
};
/// The row of a VolumeRecord has "N/A" as the size of the volume and the number of its containers.
ListRow volume_row(const Session& session, const engine::VolumeRecord& volume);
ListRow volume_row(const Session& session, const engine::VolumeUsage& usage);

}  // namespace berth::cli
