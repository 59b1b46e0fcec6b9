// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "events/event.hpp"

namespace berth::events {

/// Below the state directory: events from before the last boot are not needed.
inline constexpr const char* kJournalFile = "events";
/// The suffix of a journal that was replaced.
inline constexpr const char* kOlder = ".1";
/// A larger journal is replaced by a new one, in bytes: at most two are kept.
inline constexpr int64_t kMaxJournal = 1 << 20;
/// A larger event loses its attributes, in bytes.
inline constexpr size_t kMaxEvent = size_t{64} << 10;

/// Appends a line to the journal at `file`, absolute, with the present time. Any number of
/// processes may do so at once: a line is one write at the end of the file.
/// Errors: io, not_found (the directory).
Result<void> append(const std::string& file, Event event);

}  // namespace berth::events
