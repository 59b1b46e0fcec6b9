// SPDX-License-Identifier: Apache-2.0
#include "sys/process/shared_buffer.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace berth::sys {

SharedBuffer::SharedBuffer(SharedBuffer&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

SharedBuffer& SharedBuffer::operator=(SharedBuffer&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

SharedBuffer::~SharedBuffer() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

Result<SharedBuffer> SharedBuffer::make(size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    int saved = errno;
    return sys_error(saved, "map shared memory");
  }
  SharedBuffer buffer;
  buffer.bytes_ = {static_cast<std::byte*>(memory), bytes};
  return buffer;
}

}  // namespace berth::sys
