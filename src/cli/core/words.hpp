// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace berth::cli {

/// "Less than a second", "About a minute", "3 weeks": docker's phrases for a duration.
std::string human_duration(std::chrono::seconds duration);

/// human_duration() with " ago"; "N/A" for the epoch, which stands for an unknown time.
std::string human_ago(std::chrono::system_clock::time_point then,
                      std::chrono::system_clock::time_point now);

/// "45s", "3m05s", "2h10m": the remaining time of a transfer.
std::string short_duration(std::chrono::seconds duration);

enum class Ids { shortened, whole };
/// The first 12 digits of "sha256:0123456789ab…" or of bare hex digits; with Ids::whole all of it.
std::string shown_id(std::string_view id, Ids ids);

/// "1.5MiB": four digits of a power of 1024, docker's units.BytesSize.
std::string binary_bytes(uint64_t bytes);

}  // namespace berth::cli
