// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Gives a running container the GPUs of `wanted`, its request with other GPUs; it keeps those that
/// it has already. After an error nothing has changed. See docs/decisions/0156.
/// Errors: unsupported (not root's; --privileged, which has all devices; it would need more than
/// nodes), busy (another container has them, or a process inside uses one that would go), those of
/// draft_container() and of berth-runtime.
Result<void> update_gpus(const Context& context, const ContainerSummary& container,
                         const RunRequest& wanted);

/// `before`, the configuration of a running container, with the devices, variables and processors
/// of `after`. If only `before` names processors, the result has `all`.
/// Errors: unsupported (`after` has a file that `before` lacks). Pure.
Result<oci::Spec> with_devices_of(oci::Spec before, const oci::Spec& after, const oci::Cpu& all);

}  // namespace berth::engine
