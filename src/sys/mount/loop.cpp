// SPDX-License-Identifier: Apache-2.0
#include "sys/mount/loop.hpp"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <string>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::sys {
namespace {

constexpr int kMaxLoopTries = 64;  // another process may take the free device

}  // namespace

Result<Fd> make_loop(const Fd& image, const Extent& part, uint32_t block_size) {
  Fd control = TRY(open_at(cwd(), "/dev/loop-control", O_RDWR));
  for (int attempt = 0; attempt < kMaxLoopTries; ++attempt) {
    int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return errno_now().error("find a free loop device");
    std::string path = "/dev/loop" + std::to_string(number);
    Fd device = TRY(open_at(cwd(), path, O_RDONLY));
    struct loop_config config = {};
    config.fd = static_cast<uint32_t>(image.get());
    config.block_size = block_size;
    config.info.lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR;
    config.info.lo_offset = part.offset;
    config.info.lo_sizelimit = part.size;
    if (::ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return device;
    if (errno != EBUSY) return errno_now().error("put an image behind " + quote(path));
  }
  return make_error(Kind::busy, "find a free loop device");
}

}  // namespace berth::sys
