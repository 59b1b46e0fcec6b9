// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Gives a running container the GPUs of `wanted`, which is its request but for those; what it has
/// of them already it keeps. After an error all is as before. See docs/decisions/0156.
/// Errors: unsupported (not root's; --privileged, which has all devices; what it would need besides
/// nodes), busy (somebody else has them, or a process inside has open what is to go), those of
/// draft_container() and of berth-runtime.
Result<void> update_gpus(const Context& context, const ContainerSummary& container,
                         const RunRequest& wanted);

/// `before`, the configuration that a container runs by, with the devices, the variables and the
/// places of `after`. `all` is where it may run when `after` names no place and `before` does.
/// Errors: unsupported (`after` has a file that `before` has not). Pure.
Result<oci::Spec> with_devices_of(oci::Spec before, const oci::Spec& after, const oci::Cpu& all);

}  // namespace berth::engine
