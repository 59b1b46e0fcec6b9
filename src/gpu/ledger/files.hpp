// SPDX-License-Identifier: Apache-2.0
// The names of the ledger's files, and how they are made. Only for this folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

inline constexpr std::string_view kLeasePrefix = "lease-";
inline constexpr std::string_view kTicketPrefix = "wait-";  ///< and its number
/// A higher number was not assigned by counting.
inline constexpr uint64_t kHighestNumber = uint64_t{1} << 53;
/// Prefix of a file before it gets its final name; a process that finds one while holding the
/// ledger's lock may remove it.
inline constexpr std::string_view kNewPrefix = "new-";

/// Makes a file of the ledger and holds a shared lock on it: the record counts while any process
/// holds one. It appears atomically. Errors: exists, io.
Result<sys::Fd> make_record(const sys::Fd& directory, const std::string& name,
                            const std::string& text);

int64_t nanoseconds_since_1970();

}  // namespace berth::gpu
