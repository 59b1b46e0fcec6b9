// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "image/store.hpp"
#include "match/run_record.hpp"

namespace berth::engine {

/// How a container of `image` has ended on this machine, as it is published. What is said of the
/// machine is what it is now, so it has to have run since the last boot.
/// Errors: not_found (the container); usage (it is of another image, has not ended, was ended from
/// outside, did not run the image's own command, ran before the last boot); those of this_node().
Result<match::RunRecord> record_of_run(const Context& context, std::string_view container,
                                       const image::Image& image, std::string berth_version);

}  // namespace berth::engine
