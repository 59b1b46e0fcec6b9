// SPDX-License-Identifier: Apache-2.0
// Runs as: berth-runtime in the foreground of a container. Capabilities: the caller's. Hostile: the
// bytes that the container writes to its terminal; they are passed on and never read.
#pragma once

#include "base/result.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::runtime {

/// The signals of a foreground run, blocked from here on and received by the descriptor.
Result<sys::Fd> catch_signals();

/// Stays with a container until its process ends: passes signals on, and between our standard
/// input, output and `console` (its terminal's master, or empty) what is typed and printed. Our own
/// terminal is raw meanwhile and follows in size.
Result<sys::ExitStatus> stay(sys::Process& process, const sys::Fd& signals, sys::Fd console);

}  // namespace berth::runtime
