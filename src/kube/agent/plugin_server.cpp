// SPDX-License-Identifier: Apache-2.0
#include "kube/agent/plugin_server.hpp"

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/fnv.hpp"
#include "base/text.hpp"
#include "kube/api/device_plugin.grpc.pb.h"
#include "kube/api/pod_resources.grpc.pb.h"
#include "sys/file/file.hpp"

namespace berth::kube {
namespace {

using namespace std::chrono_literals;

constexpr size_t kLongestSocket = 107;  // unix(7): sun_path
constexpr auto kKubeletPatience = 5s;
/// How long a container that has a GPU may need to end before the next pod gets it.
constexpr auto kEndPatience = 2s;
constexpr auto kStreamLook = 1s;
constexpr int kLargestMessage = 16 << 20;

grpc::Status refusal(const Error& error) {
  auto code = error.kind == Kind::not_found ? grpc::StatusCode::NOT_FOUND
              : error.kind == Kind::busy    ? grpc::StatusCode::RESOURCE_EXHAUSTED
                                            : grpc::StatusCode::INTERNAL;
  return {code, to_line(error)};
}

std::shared_ptr<grpc::Channel> channel_to(const std::string& socket) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

Error failure(const grpc::Status& status, const std::string& what) {
  Kind kind = status.error_code() == grpc::StatusCode::UNIMPLEMENTED ? Kind::unsupported : Kind::io;
  return make_error(kind, what + ": " + escape_controls(status.error_message()));
}

class Server final : public PluginServer, v1beta1::DevicePlugin::Service {
 public:
  Server(std::string socket, std::string resource, HandOver how, Cards& cards, Wake& wake, Log& log)
      : socket_(std::move(socket)),
        resource_(std::move(resource)),
        how_(how),
        cards_(cards),
        wake_(wake),
        log_(log) {}

  ~Server() override {
    stopped_ = true;
    wake_.change();
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
  }

  Result<void> listen(const std::string& directory) {
    const std::string path = directory + "/" + socket_;
    if (path.size() > kLongestSocket) {
      return make_error(Kind::usage, quote(path) + ": longer than a socket's path may be",
                        "--kubelet-dir with a shorter path");
    }
    ignore(sys::remove_entry(sys::cwd(), path));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    builder.SetMaxReceiveMessageSize(kLargestMessage);
    // A stream of each kubelet keeps a thread.
    builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
    builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
    server_ = builder.BuildAndStart();
    if (!server_) return make_error(Kind::io, "cannot listen at " + quote(path));
    return {};
  }

  Result<void> register_at(const std::string& kubelet_socket) override {
    auto stub = v1beta1::Registration::NewStub(channel_to(kubelet_socket));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kKubeletPatience);
    v1beta1::RegisterRequest request;
    request.set_version("v1beta1");
    request.set_endpoint(socket_);
    request.set_resource_name(resource_);
    request.mutable_options()->set_get_preferred_allocation_available(true);
    v1beta1::Empty answer;
    grpc::Status status = stub->Register(&context, request, &answer);
    if (!status.ok()) return failure(status, "register " + quote(resource_) + " with the kubelet");
    return {};
  }

 private:
  grpc::Status GetDevicePluginOptions(grpc::ServerContext*, const v1beta1::Empty*,
                                      v1beta1::DevicePluginOptions* options) override {
    options->set_get_preferred_allocation_available(true);
    return grpc::Status::OK;
  }

  grpc::Status ListAndWatch(grpc::ServerContext* context, const v1beta1::Empty*,
                            grpc::ServerWriter<v1beta1::ListAndWatchResponse>* writer) override {
    std::optional<std::vector<Device>> told;
    while (!stopped_ && !context->IsCancelled()) {
      uint64_t seen = wake_.version();
      std::vector<Device> devices = cards_.devices(resource_);
      if (devices != told) {
        if (!writer->Write(message_of(devices))) break;
        told = std::move(devices);
      }
      wake_.wait(seen, kStreamLook);
    }
    return grpc::Status::OK;
  }

  static v1beta1::ListAndWatchResponse message_of(const std::vector<Device>& devices) {
    v1beta1::ListAndWatchResponse message;
    for (const Device& device : devices) {
      auto* one = message.add_devices();
      one->set_id(device.id);
      one->set_health(device.trouble.empty() ? "Healthy" : "Unhealthy");
      if (device.numa_node) one->mutable_topology()->add_nodes()->set_id(*device.numa_node);
    }
    return message;
  }

  grpc::Status GetPreferredAllocation(grpc::ServerContext*,
                                      const v1beta1::PreferredAllocationRequest* request,
                                      v1beta1::PreferredAllocationResponse* response) override {
    for (const auto& one : request->container_requests()) {
      std::vector<std::string> available(one.available_deviceids().begin(),
                                         one.available_deviceids().end());
      std::vector<std::string> required(one.must_include_deviceids().begin(),
                                        one.must_include_deviceids().end());
      auto count = static_cast<size_t>(std::max(one.allocation_size(), 0));
      auto* answer = response->add_container_responses();
      for (std::string& id : cards_.prefer(resource_, available, required, count)) {
        answer->add_deviceids(std::move(id));
      }
    }
    return grpc::Status::OK;
  }

  grpc::Status Allocate(grpc::ServerContext*, const v1beta1::AllocateRequest* request,
                        v1beta1::AllocateResponse* response) override {
    for (const auto& one : request->container_requests()) {
      std::vector<std::string> ids(one.devices_ids().begin(), one.devices_ids().end());
      auto given = cards_.allocate(resource_, ids, kEndPatience);
      if (!given.ok()) {
        log_.warn("refused to a pod: " + to_line(given.error()));
        return refusal(given.error());
      }
      hand_over(*given, *response->add_container_responses());
    }
    // The kubelet hears at once that these GPUs are taken under their other names.
    ignore(cards_.look());
    wake_.change();
    return grpc::Status::OK;
  }

  void hand_over(const Given& given, v1beta1::ContainerAllocateResponse& answer) const {
    if (how_.annotations) {
      // A container may have devices of several resources, each with an annotation of its own.
      std::string key = fmt::format("cdi.k8s.io/berth-{:016x}", fnv1a(resource_));
      (*answer.mutable_annotations())[key] = join(given.cdi_names, ",");
    }
    if (how_.cdi_devices) {
      for (const std::string& name : given.cdi_names) answer.add_cdi_devices()->set_name(name);
    }
  }

  grpc::Status PreStartContainer(grpc::ServerContext*, const v1beta1::PreStartContainerRequest*,
                                 v1beta1::PreStartContainerResponse*) override {
    return grpc::Status::OK;
  }

  const std::string socket_;
  const std::string resource_;
  const HandOver how_;
  Cards& cards_;
  Wake& wake_;
  Log& log_;
  std::atomic<bool> stopped_ = false;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

Result<std::unique_ptr<PluginServer>> PluginServer::start(const std::string& directory,
                                                          const std::string& socket,
                                                          const std::string& resource, HandOver how,
                                                          Cards& cards, Wake& wake, Log& log) {
  auto server = std::make_unique<Server>(socket, resource, how, cards, wake, log);
  TRY(server->listen(directory));
  return std::unique_ptr<PluginServer>(std::move(server));
}

Result<std::vector<PodDevices>> list_pod_devices(const std::string& kubelet_socket) {
  auto stub = v1::PodResourcesLister::NewStub(channel_to(kubelet_socket));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kKubeletPatience);
  v1::ListPodResourcesResponse list;
  grpc::Status status = stub->List(&context, v1::ListPodResourcesRequest(), &list);
  if (!status.ok()) return failure(status, "ask the kubelet for its pods' devices");
  std::vector<PodDevices> all;
  for (const auto& pod : list.pod_resources()) {
    for (const auto& container : pod.containers()) {
      for (const auto& devices : container.devices()) {
        all.push_back({escape_controls(pod.namespace_() + "/" + pod.name()),
                       devices.resource_name(),
                       {devices.device_ids().begin(), devices.device_ids().end()}});
      }
    }
  }
  return all;
}

}  // namespace berth::kube
