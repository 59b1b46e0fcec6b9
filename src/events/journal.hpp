// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.hpp"
#include "events/event.hpp"

namespace berth::events {

/// Below the state directory: what happened before the machine was started again nobody asks.
inline constexpr const char* kJournalFile = "events";
/// What comes after a journal's name when another has taken its place.
inline constexpr const char* kOlder = ".1";
/// A journal of more bytes makes place for a new one: two of them is all that is kept.
inline constexpr int64_t kMaxJournal = 1 << 20;
/// An event of more bytes loses its attributes.
inline constexpr size_t kMaxEvent = size_t{64} << 10;

/// Adds a line to the journal at `file`, absolute, with the time of now. Any number of processes
/// may do so at once: a line is one write at the end of the file.
/// Errors: io, not_found (the directory).
Result<void> append(const std::string& file, Event event);

}  // namespace berth::events
