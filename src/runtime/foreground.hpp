// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime in the foreground of a container. Capabilities: the caller's. Hostile: the
// bytes that the container writes to its terminal; they are passed on and never interpreted.
#pragma once

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {

/// Blocks the signals of a foreground run; they arrive at the returned descriptor.
Result<sys::Fd> catch_signals();

/// Stays with a container until its process ends: passes on signals, and copies data between our
/// standard streams and `console` (the master of the container's terminal, or empty). Meanwhile our
/// own terminal is in raw mode, and the container's terminal follows its size.
Result<sys::ExitStatus> stay(sys::Process& process, const sys::Fd& signals, sys::Fd console);

}  // namespace berth::runtime
