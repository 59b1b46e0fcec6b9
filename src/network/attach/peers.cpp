// SPDX-License-Identifier: Apache-2.0
// Runs as: root, or root of the user's namespace. Hostile: the container's /etc/hosts, which its
// root may write.
#include "network/attach/peers.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "network/name_files.hpp"
#include "sys/file/file.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxHosts = size_t{4} << 20;  // at most so many bytes of a hosts file are read

Result<void> rewrite(const std::string& path, const std::string& lines) {
  // Does not follow a link and does not block on a FIFO.
  sys::Fd file = TRY(sys::open_at(sys::cwd(), path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat info = TRY(sys::stat_fd(file, path));
  if (!S_ISREG(info.st_mode)) return make_error(Kind::usage, "rewrite " + path + ": no file");
  std::string before = TRY(sys::read_all(file, path, kMaxHosts));
  std::string after = with_block(before, lines);
  if (after == before) return {};
  TRY(sys::write_at(file, 0, after, path));
  return sys::truncate(file, after.size(), path);
}

}  // namespace

std::set<std::string> networks_of(const Lease& lease) {
  std::set<std::string> networks;
  for (const Endpoint& one : lease.endpoints) {
    if (!one.network.empty()) networks.insert(one.network);
  }
  return networks;
}

void send_to_peers(const std::vector<Lease>& leases, const std::set<std::string>& networks) {
  for (const Lease& lease : leases) {
    bool is_told =
        !lease.hosts_file.empty() && std::ranges::any_of(lease.endpoints, [&](const Endpoint& one) {
          return networks.contains(one.network);
        });
    if (is_told) ignore(rewrite(lease.hosts_file, peer_lines(lease, leases)));
  }
}

void forget_peers(const std::string& hosts_file) {
  if (!hosts_file.empty()) ignore(rewrite(hosts_file, ""));
}

}  // namespace berth::network
