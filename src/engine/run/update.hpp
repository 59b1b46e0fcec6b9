// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/request/limits.hpp"
#include "engine/request/request.hpp"

namespace berth::engine {

/// The changes to a container; a member that is not set stays as it is.
struct Changes {
  Limits limits;
  std::optional<RestartPolicy> restart;
  std::optional<std::string> gpus;  ///< the value of --gpus
};

/// Changes the container for its next start, and at once if it runs. After an error nothing has
/// changed. Errors: not_found, usage (limits that conflict, with docker's message; --restart of a
/// container that removes itself; GPUs and limits of a running container in one call), those of
/// update_gpus() and of berth-runtime, io.
Result<void> update_container(const Context& context, std::string_view reference,
                              const Changes& changes);

}  // namespace berth::engine
