// SPDX-License-Identifier: Apache-2.0
// The names of the ledger's files, and how one is made. Inside this folder only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

namespace berth::gpu {

inline constexpr std::string_view kLeasePrefix = "lease-";
inline constexpr std::string_view kTicketPrefix = "wait-";  ///< and its number
/// A higher one is nobody's who has counted.
inline constexpr uint64_t kHighestNumber = uint64_t{1} << 53;
/// Of a file that has not got its name yet; whoever finds one while he has the ledger's lock may
/// remove it.
inline constexpr std::string_view kNewPrefix = "new-";

/// A file of the ledger whose lock is ours, shared: for as long as it is, or another one's, the
/// record counts. It appears whole. Errors: exists, io.
Result<sys::Fd> make_record(const sys::Fd& directory, const std::string& name,
                            const std::string& text);

int64_t nanoseconds_since_1970();

}  // namespace berth::gpu
