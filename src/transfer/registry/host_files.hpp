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

/// What the site's rules and its directories of certificates say of hosts; any thread may ask.
/// A rule counts for the host of its location and for those of its mirrors. Where it names no
/// files, those of the first directory that has one called HOST:PORT or HOST are taken.
/// Source: containers-certs.d(5), docker's "Verify repository client with certificates".
class HostFiles {
 public:
  explicit HostFiles(const image::RegistryAccess& access) : access_(access) {}

  /// Errors: not_found, denied (a file that is named cannot be read), usage (a certificate without
  /// its key).
  Result<HostOptions> options_of(const Url& url);

 private:
  Result<HostOptions> find(const Url& url) const;

  const image::RegistryAccess access_;
  std::mutex mutex_;
  std::map<std::string, HostOptions> known_;  // by host and port
};

}  // namespace berth::transfer
