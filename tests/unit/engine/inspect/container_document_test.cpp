// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/container_document.hpp"

#include <gtest/gtest.h>

#include <algorithm>

using namespace berth;
using namespace berth::engine;

namespace {

/// The part of a document at "HostConfig.Memory", as JSON; "absent" where there is none.
std::string at(const json::Value& document, std::string_view path) {
  const json::Value* value = &document;
  while (value != nullptr && !path.empty()) {
    size_t point = std::min(path.find('.'), path.size());
    value = value->find(path.substr(0, point));
    path.remove_prefix(std::min(point + 1, path.size()));
  }
  return value == nullptr ? "absent" : json::dump(*value);
}

ContainerFacts facts() {
  ContainerFacts f;
  f.id = std::string(64, 'a');
  f.name = "tug";
  f.image = "boat:1";
  f.command = {"sh", "-c", "true"};
  f.state = "running";
  f.created = 1'700'000'000'000'000'250;
  f.started = 1'700'000'001'000'000'000;
  f.pid = 42;
  return f;
}

TEST(ContainerDocument, tells_the_state_in_dockers_words) {
  json::Value running = container_document(facts());
  EXPECT_EQ(at(running, "Created"), "\"2023-11-14T22:13:20.000000250Z\"");
  EXPECT_EQ(at(running, "State"),
            R"({"Status":"running","Running":true,"Paused":false,"Restarting":false,)"
            R"("OOMKilled":false,"Dead":false,"Pid":42,"ExitCode":0,"Error":"",)"
            R"("StartedAt":"2023-11-14T22:13:21.000000000Z","FinishedAt":"0001-01-01T00:00:00Z"})");
  EXPECT_EQ(at(running, "Path") + at(running, "Args"), R"("sh"["-c","true"])");
  ContainerFacts paused = facts();
  paused.state = "paused";
  EXPECT_EQ(at(container_document(paused), "State.Running"), "true");
  EXPECT_EQ(at(container_document(paused), "State.Paused"), "true");
}

TEST(ContainerDocument, has_no_exit_code_that_nobody_saw) {
  ContainerFacts dead = facts();
  dead.state = "dead";
  EXPECT_EQ(at(container_document(dead), "State.ExitCode"), "null");
  ContainerFacts exited = facts();
  exited.state = "exited";
  exited.exit_code = 137;
  EXPECT_EQ(at(container_document(exited), "State.ExitCode"), "137");
  EXPECT_EQ(at(container_document(exited), "State.Health"), "absent");
}

TEST(ContainerDocument, what_nobody_asked_for_is_as_docker_leaves_it) {
  json::Value document = container_document(facts());
  EXPECT_EQ(at(document, "HostConfig.Binds"), "null");
  EXPECT_EQ(at(document, "HostConfig.RestartPolicy"), R"({"Name":"no","MaximumRetryCount":0})");
  EXPECT_EQ(at(document, "HostConfig.ShmSize"), "67108864");
  EXPECT_EQ(at(document, "HostConfig.PidsLimit"), "null");
  EXPECT_EQ(at(document, "HostConfig.Dns"), "[]");
  EXPECT_EQ(at(document, "HostConfig.Sysctls"), "absent");
  EXPECT_EQ(at(document, "Config.Hostname"), "\"aaaaaaaaaaaa\"");
  EXPECT_EQ(at(document, "Mounts"), "[]");
}

TEST(ContainerDocument, shows_what_was_asked_for_in_dockers_names) {
  ContainerFacts f = facts();
  f.request.limits.memory_bytes = 64 << 20;
  f.request.limits.cpu_millis = 1500;
  f.request.limits.device_read_bps = {{"/dev/sda", 1000}};
  f.request.security.cap_add = {"NET_ADMIN"};
  f.request.security.no_new_privileges = true;
  f.request.restart = {Restart::on_failure, 3};
  f.request.gpus = "device=0,1";
  f.request.devices = {"nvidia.com/gpu=0"};
  f.request.host_devices = {{"/dev/fuse", "/dev/fuse", "rw"}};
  f.request.tmpfs = {{"/scratch", {"size=1m", "mode=700"}}};
  f.request.sysctl = {{"net.core.somaxconn", "10"}};
  f.request.hostname = "pier";
  json::Value document = container_document(f);
  EXPECT_EQ(at(document, "HostConfig.Memory"), "67108864");
  EXPECT_EQ(at(document, "HostConfig.NanoCpus"), "1500000000");
  EXPECT_EQ(at(document, "HostConfig.BlkioDeviceReadBps"), R"([{"Path":"/dev/sda","Rate":1000}])");
  EXPECT_EQ(at(document, "HostConfig.CapAdd"), R"(["NET_ADMIN"])");
  EXPECT_EQ(at(document, "HostConfig.SecurityOpt"), R"(["no-new-privileges"])");
  EXPECT_EQ(at(document, "HostConfig.RestartPolicy"),
            R"({"Name":"on-failure","MaximumRetryCount":3})");
  EXPECT_EQ(
      at(document, "HostConfig.DeviceRequests"),
      R"([{"Driver":"","Count":0,"DeviceIDs":["0","1"],"Capabilities":[["gpu"]],"Options":{}},)"
      R"({"Driver":"cdi","Count":0,"DeviceIDs":["nvidia.com/gpu=0"],"Capabilities":null,)"
      R"("Options":null}])");
  EXPECT_EQ(
      at(document, "HostConfig.Devices"),
      R"([{"PathOnHost":"/dev/fuse","PathInContainer":"/dev/fuse","CgroupPermissions":"rw"}])");
  EXPECT_EQ(at(document, "HostConfig.Tmpfs"), R"({"/scratch":"size=1m,mode=700"})");
  EXPECT_EQ(at(document, "HostConfig.Sysctls"), R"({"net.core.somaxconn":"10"})");
  EXPECT_EQ(at(document, "Config.Hostname"), "\"pier\"");
}

TEST(ContainerDocument, gpus_are_dockers_device_requests) {
  auto request = [](const char* text) {
    ContainerFacts f = facts();
    f.request.gpus = text;
    return at(container_document(f), "HostConfig.DeviceRequests");
  };
  EXPECT_EQ(request("none"), "null");
  EXPECT_EQ(request("all"), R"([{"Driver":"","Count":-1,"DeviceIDs":null,)"
                            R"("Capabilities":[["gpu"]],"Options":{}}])");
  EXPECT_EQ(request("2"), R"([{"Driver":"","Count":2,"DeviceIDs":null,)"
                          R"("Capabilities":[["gpu"]],"Options":{}}])");
  EXPECT_EQ(request("all,\"capabilities=utility,compute\",driver=nvidia"),
            R"([{"Driver":"nvidia","Count":-1,"DeviceIDs":null,)"
            R"("Capabilities":[["gpu","utility","compute"]],"Options":{}}])");
}

TEST(ContainerDocument, mounts_and_binds_are_told_twice) {
  ContainerFacts f = facts();
  Volume bind;
  bind.source = "/srv";
  bind.destination = "/data";
  bind.read_only = true;
  Volume named;
  named.name = "cargo";
  named.destination = "/hold";
  f.request.volumes = {bind, named};
  f.root = "/store";
  json::Value document = container_document(f);
  EXPECT_EQ(at(document, "HostConfig.Binds"), R"(["/srv:/data:ro","cargo:/hold"])");
  EXPECT_EQ(
      at(document, "Mounts"),
      R"([{"Type":"bind","Source":"/srv","Destination":"/data","Mode":"ro","RW":false,)"
      R"("Propagation":"rprivate"},{"Type":"volume","Name":"cargo","Source":"/store/volumes/cargo/_data",)"
      R"("Destination":"/hold","Driver":"local","Mode":"","RW":true,"Propagation":""}])");
}

TEST(ContainerDocument, adds_what_was_asked_to_what_the_image_says) {
  ContainerFacts f = facts();
  f.image_config.emplace();
  f.image_config->config.env = {"PATH=/bin", "A=1"};
  f.image_config->config.entrypoint = {"sh"};
  f.image_config->config.labels = {{"kind", "boat"}, {"crew", "1"}};
  f.request.environment = {"A=2", "HOME", "GONE", "B="};
  f.request.inherited = {"HOME=/root"};
  f.request.labels = {{"crew", "2"}};
  json::Value document = container_document(f);
  EXPECT_EQ(at(document, "Config.Env"), R"(["A=2","HOME=/root","B=","PATH=/bin"])");
  EXPECT_EQ(at(document, "Config.Labels"), R"({"crew":"2","kind":"boat"})");
  EXPECT_EQ(at(document, "Config.Entrypoint"), R"(["sh"])");
  EXPECT_EQ(at(document, "Config.Cmd"), R"(["-c","true"])");
}

TEST(ContainerDocument, ports_are_told_as_they_were_asked_for) {
  ContainerFacts f = facts();
  f.request.network = Network::bridge;
  f.request.expose = {"90-91", "53/udp"};
  f.request.publish = {{"", 8080, 8080, 80, 1, "tcp"},
                       {"127.0.0.1", 0, 0, 80, 1, "tcp"},
                       {"", 8000, 8010, 443, 1, "tcp"},
                       {"", 7000, 7001, 70, 2, "udp"}};
  json::Value document = container_document(f);
  EXPECT_EQ(at(document, "HostConfig.PortBindings"),
            R"({"443/tcp":[{"HostIp":"","HostPort":"8000-8010"}],)"
            R"("70/udp":[{"HostIp":"","HostPort":"7000"}],)"
            R"("71/udp":[{"HostIp":"","HostPort":"7001"}],)"
            R"("80/tcp":[{"HostIp":"","HostPort":"8080"},{"HostIp":"127.0.0.1","HostPort":""}]})");
  EXPECT_EQ(at(document, "Config.ExposedPorts"),
            R"({"443/tcp":{},"53/udp":{},"70/udp":{},"71/udp":{},"80/tcp":{},"90/tcp":{},)"
            R"("91/tcp":{}})");
  EXPECT_EQ(at(document, "NetworkSettings.Networks.bridge.IPAddress"), "\"\"");
}

TEST(ContainerDocument, the_network_is_what_there_is_of_it_now) {
  ContainerFacts f = facts();
  f.request.network = Network::bridge;
  f.lease.emplace();
  f.lease->address = "10.88.0.2";
  f.lease->prefix_length = 16;
  f.lease->gateway = "10.88.0.1";
  f.lease->mac = "02:be:0a:58:00:02";
  json::Value document = container_document(f);
  for (const char* where : {"NetworkSettings.", "NetworkSettings.Networks.bridge."}) {
    EXPECT_EQ(at(document, std::string(where) + "IPAddress"), "\"10.88.0.2\"");
    EXPECT_EQ(at(document, std::string(where) + "IPPrefixLen"), "16");
    EXPECT_EQ(at(document, std::string(where) + "Gateway"), "\"10.88.0.1\"");
    EXPECT_EQ(at(document, std::string(where) + "MacAddress"), "\"02:be:0a:58:00:02\"");
  }
  f.state = "exited";
  EXPECT_EQ(at(container_document(f), "NetworkSettings.IPAddress"), "\"\"");
}

TEST(ContainerDocument, the_stop_signal_is_what_was_typed) {
  ContainerFacts f = facts();
  EXPECT_EQ(at(container_document(f), "Config.StopSignal"), "absent");
  f.request.stop_signal = "sigusr1";
  EXPECT_EQ(at(container_document(f), "Config.StopSignal"), "\"sigusr1\"");
}

TEST(PortsOf, are_those_of_the_lease_and_those_that_are_exposed_besides) {
  RunRequest request;
  request.network = Network::bridge;
  request.expose = {"80", "90-91/udp"};
  oci::ContainerDefaults image;
  for (const char* text : {"80/tcp", "53/udp", "nonsense"}) image.exposed_ports[text];
  network::Lease lease;
  lease.ports = {{"0.0.0.0", 8080, 80, "tcp"}, {"127.0.0.1", 8081, 80, "tcp"}};
  auto text = [](const std::vector<PortSummary>& ports) {
    std::string all;
    for (const PortSummary& port : ports) {
      all += port.host_ip + ":" + std::to_string(port.host_port) + ">" +
             std::to_string(port.container_port) + "/" + port.protocol + " ";
    }
    return all;
  };
  EXPECT_EQ(text(ports_of(request, image, &lease)),
            "0.0.0.0:8080>80/tcp 127.0.0.1:8081>80/tcp :0>90/udp :0>91/udp :0>53/udp ");
  EXPECT_EQ(text(ports_of(request, image, nullptr)), ":0>80/tcp :0>90/udp :0>91/udp :0>53/udp ");
  request.network = Network::host;
  EXPECT_EQ(text(ports_of(request, image, nullptr)), "");
}

TEST(ContainerDocument, ports_are_told_while_it_runs) {
  ContainerFacts f = facts();
  f.ports = {{"0.0.0.0", 8080, 80, "tcp"}, {"::", 8080, 80, "tcp"}, {"", 0, 53, "udp"}};
  EXPECT_EQ(
      at(container_document(f), "NetworkSettings.Ports"),
      R"({"53/udp":null,)"
      R"("80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"},{"HostIp":"::","HostPort":"8080"}]})");
  f.state = "exited";
  EXPECT_EQ(at(container_document(f), "NetworkSettings.Ports"), "{}");
}

}  // namespace
