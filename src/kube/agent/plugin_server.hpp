// SPDX-License-Identifier: Apache-2.0
// A device plugin for one resource name: a gRPC server at a socket of its own in the kubelet's
// directory.
// https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
#pragma once

#include <memory>
#include <string>

#include "base/log.hpp"
#include "base/result.hpp"
#include "kube/agent/wake.hpp"
#include "kube/plugin/cards.hpp"

namespace berth::kube {

/// How a container gets what was given.
struct HandOver {
  bool cdi_devices = true;  ///< the field cdi_devices, for runtimes that read CDI files
  bool annotations = true;  ///< annotations cdi.k8s.io/…, which berth-runtime resolves itself
};

class PluginServer {
 public:
  /// Serves `resource` at `directory`/`socket`. `cards` and the others must outlive it.
  /// Errors: io (the socket cannot be made: the path is too long, the directory is missing).
  static Result<std::unique_ptr<PluginServer>> start(const std::string& directory,
                                                     const std::string& socket,
                                                     const std::string& resource, HandOver how,
                                                     Cards& cards, Wake& wake, Log& log);
  virtual ~PluginServer() = default;

  /// Registers at the kubelet's socket in the same directory.  Errors: unsupported (the kubelet
  /// refuses), io.
  virtual Result<void> register_at(const std::string& kubelet_socket) = 0;
};

/// The devices of all pods, from the kubelet.  Errors: io, unsupported (a kubelet older than 1.20).
Result<std::vector<PodDevices>> list_pod_devices(const std::string& kubelet_socket);

}  // namespace berth::kube
