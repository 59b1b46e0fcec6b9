// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/result.hpp"
#include "engine/container/list.hpp"
#include "engine/context/context.hpp"
#include "engine/request/request.hpp"
#include "oci/runtime_spec.hpp"

namespace berth::engine {

/// Gives a running container the GPUs of `wanted`, which is its request with other GPUs. It keeps
/// those GPUs of `wanted` that it has already. After an error nothing has changed. See
/// docs/decisions/0156.
/// Errors: unsupported (a container of an ordinary user; --privileged, which has all devices; a
/// change that needs more than device nodes), busy (another container has the GPUs, or a process in
/// the container uses a GPU that would be removed), those of decide() and of berth-runtime.
Result<void> update_gpus(const Context& context, const ContainerSummary& container,
                         const RunRequest& wanted);

/// `before`, the configuration of a running container, with the devices, variables and processors
/// of `after`. If only `before` names processors, the result has `all`.
/// Errors: unsupported (`after` has a file that `before` lacks). Pure.
Result<oci::Spec> with_devices_of(oci::Spec before, const oci::Spec& after, const oci::Cpu& all);

}  // namespace berth::engine
