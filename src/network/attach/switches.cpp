// SPDX-License-Identifier: Apache-2.0
#include "network/attach/switches.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"

namespace berth::network {

std::string switch_path(const char* family, const std::string& interface, const char* name) {
  return std::string("/proc/sys/net/") + family + "/conf/" + interface + "/" + name;
}

Result<void> set_switch(const std::string& path, const std::string& value) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_WRONLY));
  return sys::write_all(file, value, path);
}

bool is_off(const std::string& path) {
  auto text = sys::read_file_if_exists(sys::cwd(), path, 64);
  return text.ok() && *text && trim(**text) == "0";
}

}  // namespace berth::network
