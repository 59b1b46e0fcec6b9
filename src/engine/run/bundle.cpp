// SPDX-License-Identifier: Apache-2.0
#include "engine/run/bundle.hpp"

#include <fcntl.h>

#include <string>

#include "base/text.hpp"
#include "engine/container/rootfs_setup.hpp"
#include "engine/network/network.hpp"
#include "json/fields.hpp"
#include "monitor/protocol.hpp"
#include "oci/config.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxFileOfHost = size_t{64} << 10;

/// The host's file, to copy into a container; a missing file is empty.
Result<std::string> host_file(const char* path) {
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, kMaxFileOfHost));
  return text.value_or("");
}

Result<void> make_source(const Volume& volume) {
  if (!volume.name.empty()) return {};
  if (TRY(sys::open_if_exists(sys::cwd(), volume.source, O_PATH))) return {};
  // Docker would make a directory here, which would keep the daemon of this socket from starting
  // later.
  if (volume.source.ends_with(".sock")) {
    return make_error(
        Kind::not_found,
        "no socket at " + quote(volume.source) + ": Berth has no daemon and no socket",
        "-v with the socket of a daemon that runs");
  }
  return sys::make_directories(sys::cwd(), volume.source, 0755);
}

}  // namespace

static_assert(std::string_view(gpu::kLeaseNote) == monitor::kGpuLeaseNote);

Result<void> write_config(const Decision& decision, const ContainerDirectory& directory) {
  std::string note = std::string(kBundleDirectory) + "/" + gpu::kLeaseNote;
  if (decision.lease) {
    TRY(sys::write_file(directory.files_fd(), note, json::write(decision.lease.note()), 0600));
  } else {
    TRY(sys::remove_entry(directory.files_fd(), note));  // from the previous start
  }
  // Also remove what a killed `berth update` left.
  const std::string next = std::string(kBundleDirectory) + "/" + std::string(kNextConfig);
  TRY(sys::remove_entry(directory.files_fd(), next));
  return sys::write_file(directory.files_fd(), std::string(kBundleDirectory) + "/config.json",
                         oci::write_spec(decision.spec), 0600);
}

Result<void> write_files(const RunRequest& request, const Decision& decision,
                         const ContainerDirectory& directory) {
  TRY(copy_driver_files(decision.driver.files, decision.driver.links, directory));
  for (const Volume& volume : request.volumes) {
    TRY_CTX(make_source(volume), "cannot make the source of volume " + quote(volume.destination));
  }
  bool shared = request.network == Network::host;
  std::string hosts_of_host = shared ? TRY(host_file("/etc/hosts")) : "";
  std::string hosts = TRY(hosts_text(request, decision.hostname, hosts_of_host));
  std::string resolver = resolver_text(request, TRY(host_file("/etc/resolv.conf")));
  if (decision.accounts) {
    TRY(sys::write_file(directory.fd(), std::string(kPasswdFile), decision.accounts->passwd, 0644));
    TRY(sys::write_file(directory.fd(), std::string(kGroupFile), decision.accounts->group, 0644));
  }
  TRY(sys::write_file(directory.fd(), std::string(kHostsFile), hosts, 0644));
  TRY(sys::write_file(directory.fd(), std::string(kHostnameFile), decision.hostname + "\n", 0644));
  TRY(sys::write_file(directory.fd(), std::string(kResolverFile), resolver, 0644));
  return provide_root_copy(request, decision.spec, directory);
}

}  // namespace berth::engine
