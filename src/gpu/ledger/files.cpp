// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/files.hpp"

#include <fcntl.h>

#include <chrono>

#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"

namespace berth::gpu {

Result<sys::Fd> make_record(const sys::Fd& directory, const std::string& name,
                            const std::string& text) {
  std::string temporary = std::string(kNewPrefix) + sys::random_hex(8);
  sys::Fd file =
      TRY(sys::open_at(directory, temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600));
  auto fill = [&]() -> Result<void> {
    // Before other processes can open, and so lock, it.
    TRY(sys::wait_lock(file, sys::LockMode::shared, name));
    TRY(sys::write_all(file, text, name));
    TRY(sys::change_mode(file, 0644, temporary));
    return sys::rename_new(directory, temporary, directory, name);
  };
  auto filled = fill();
  if (filled.ok()) return file;
  ignore(sys::remove_entry(directory, temporary));
  return std::move(filled).error();
}

int64_t nanoseconds_since_1970() {
  auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(since).count();
}

}  // namespace berth::gpu
