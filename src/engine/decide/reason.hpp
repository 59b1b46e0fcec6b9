// SPDX-License-Identifier: Apache-2.0
// Why a container ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/context/context.hpp"
#include "engine/request/volume.hpp"
#include "image/store.hpp"
#include "known_error/end.hpp"
#include "record/record.hpp"
#include "sys/fd/fd.hpp"

namespace berth::engine {

/// The reason for `end`; `printed` is the container's last output. Nothing unless the reason is
/// certain. Probes this machine only if there is a reason to report.
std::optional<known_error::Found> reason_of(const known_error::End& end, std::string_view printed);

/// The reason for a command that failed to start, if the image, the container's volumes or the
/// machine caused it.
std::optional<known_error::Found> reason_of_command(const Error& error, const image::Image& image,
                                                    const std::vector<Volume>& volumes);

/// The same for a command of exec, if its interpreter is missing below `root`, the root of a
/// running container.
std::optional<known_error::Found> reason_in_root(const Error& error, const sys::Fd& root);

/// Adds the processor features that the image's files need to the reason for a SIGILL of the
/// image's own command; returns other reasons unchanged.
known_error::Found with_needs(const Context& context, const image::Image& image,
                              known_error::Found reason);

/// The reason for the end of a container that has not been removed, found in the container's log.
std::optional<known_error::Found> reason_of_container(const Context& context, const std::string& id,
                                                      const record::Exit& exit);

}  // namespace berth::engine
