// SPDX-License-Identifier: Apache-2.0
// Makes entries of tmp/, and removes those with dead owners. Only for this folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "sys/file/file.hpp"

namespace berth::image {

enum class Shape { file, directory };

/// Whether locking may be skipped on a file system without locks, where leases show which processes
/// are alive.
enum class Locks { needed, if_there_are };

/// Waits for the lock.  Errors: those of sys::wait_lock().
Result<void> lock_file(const sys::Fd& fd, sys::LockMode mode, const std::string& path, Locks locks);

/// A new entry of tmp/, locked by this process.
struct StagedEntry {
  sys::Fd fd;
  std::string path;  ///< absolute
};
Result<StagedEntry> stage_in(const std::string& root, std::string_view prefix, Shape shape,
                             Locks locks);

/// Whether the open file is still the one at its path: between our open() and our lock a sweeper
/// may have removed it.
Result<bool> still_there(const sys::Fd& fd, const std::string& path);

/// Locks the entry `name` of tmp/ if its owner is dead. The returned lock keeps other sweepers
/// away.
std::optional<sys::Fd> take_leftover(const sys::Fd& root, const std::string& name);

/// Removes entries of tmp/ that dead processes left: the unlocked ones.
void sweep(const sys::Fd& root);

}  // namespace berth::image
