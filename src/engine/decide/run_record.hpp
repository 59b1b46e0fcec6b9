// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/store.hpp"
#include "match/run_record.hpp"

namespace berth::engine {

/// The run record of a container of `image` that ended on this machine, in the form that is
/// published. It describes the machine as it is now, so the container must have run since the last
/// boot.
/// Errors: not_found (the container); usage (of another image, not ended, ended from outside, did
/// not run the image's own command, ran before the last boot); those of this_node().
Result<match::RunRecord> record_of_run(const Context& context, std::string_view container,
                                       const image::Image& image, std::string berth_version);

}  // namespace berth::engine
