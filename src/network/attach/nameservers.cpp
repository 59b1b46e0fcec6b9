// SPDX-License-Identifier: Apache-2.0
#include "network/attach/nameservers.hpp"

#include <algorithm>
#include <string_view>

#include "network/address.hpp"
#include "network/name_files.hpp"
#include "sys/file/file.hpp"

namespace berth::network {
namespace {

constexpr const char* kResolver = "/etc/resolv.conf";
constexpr const char* kRealResolver = "/run/systemd/resolve/resolv.conf";
constexpr size_t kMaxResolver = size_t{64} << 10;

Result<std::vector<std::string>> nameservers_in(const char* file) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), file, kMaxResolver));
  return nameservers_of(text.value_or(""));
}

}  // namespace

Result<std::vector<std::string>> nameservers_of_bridge() {
  for (const char* file : {kResolver, kRealResolver}) {
    auto found = reachable(TRY(nameservers_in(file)));
    if (!found.empty()) return found;
  }
  return fallback_nameservers();
}

Result<std::vector<std::string>> nameservers_of_pasta(const std::string& four,
                                                      const std::string& six) {
  std::vector<std::string> of_host = TRY(nameservers_in(kResolver));
  auto is_six = [](const std::string& one) { return is_ipv6(one); };
  bool any_six = std::ranges::any_of(of_host, is_six);
  bool any_four = !std::ranges::all_of(of_host, is_six);
  if (!four.empty() && (any_four || !any_six)) return std::vector{four};
  auto real =
      any_six ? std::vector<std::string>() : reachable_by_ipv6(TRY(nameservers_in(kRealResolver)));
  return real.empty() ? std::vector{six} : std::move(real);
}

}  // namespace berth::network
