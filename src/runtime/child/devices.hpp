// SPDX-License-Identifier: Apache-2.0
// Runs as: the container's first process, before it enters its root. Capabilities: all of its user
// namespace. Hostile: the entries of the image at the paths of the devices.
#pragma once

#include "base/result.hpp"
#include "runtime/child/inside.hpp"

namespace berth::runtime {

// One function per step of plan/plan.hpp. Errors name the device: "cannot make device '/dev/x'".
Result<void> make_node(Inside& inside, const plan::MakeNode& step);
Result<void> bind_node(Inside& inside, const plan::BindNode& step);
Result<void> make_link(Inside& inside, const plan::MakeLink& step);
Result<void> replace_link(Inside& inside, const plan::ReplaceLink& step);

/// Opens a terminal of the container's own devpts, binds it at /dev/console and passes the
/// terminal's master to the parent.
Result<void> make_console(Inside& inside, const plan::MakeConsole& step);

}  // namespace berth::runtime
