// SPDX-License-Identifier: Apache-2.0
// Why a container has ended as it did.
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

/// The reason for an end of which `printed` is known, the last that the container has written;
/// nothing where nothing is sure. Reads what this machine is only where something is to be said.
std::optional<known_error::Found> reason_of(const known_error::End& end, std::string_view printed);

/// The reason for a command that could not be started, where the image, the volumes of the
/// container and the machine are it.
std::optional<known_error::Found> reason_of_command(const Error& error, const image::Image& image,
                                                    const std::vector<Volume>& volumes);

/// The same for a command of exec, where the interpreter that it names is not below `root`, that of
/// a running container.
std::optional<known_error::Found> reason_in_root(const Error& error, const sys::Fd& root);

/// A SIGILL of an image's own command, told with what its files are known to need of a processor;
/// any other reason as it is.
known_error::Found with_needs(const Context& context, const image::Image& image,
                              known_error::Found reason);

/// The reason for the end of a container that stays, by its log.
std::optional<known_error::Found> reason_of_container(const Context& context, const std::string& id,
                                                      const record::Exit& exit);

}  // namespace berth::engine
