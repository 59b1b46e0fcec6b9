// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "image/registry_access.hpp"
#include "transfer/registry/http.hpp"

namespace berth::transfer {

/// Options of hosts from the site's rules and its certificate directories; thread-safe. A rule
/// applies to the host of its location and to those of its mirrors. If it names no files, those of
/// the first directory with a subdirectory HOST:PORT or HOST are used.
/// Source: containers-certs.d(5), docker's "Verify repository client with certificates".
class HostFiles {
 public:
  explicit HostFiles(const image::RegistryAccess& access) : access_(access) {}

  /// Errors: not_found, denied (an unreadable file), usage (a certificate without its key).
  Result<HostOptions> options_of(const Url& url);

 private:
  Result<HostOptions> find(const Url& url) const;

  const image::RegistryAccess access_;
  std::mutex mutex_;
  std::map<std::string, HostOptions> known_;  // by host and port
};

}  // namespace berth::transfer
