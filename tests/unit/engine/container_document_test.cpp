// SPDX-License-Identifier: Apache-2.0
#include "engine/container_document.hpp"

#include <gtest/gtest.h>

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
  json::Value document = container_document(f);
  EXPECT_EQ(at(document, "HostConfig.Binds"), R"(["/srv:/data:ro","cargo:/hold"])");
  EXPECT_EQ(at(document, "Mounts"),
            R"([{"Type":"bind","Source":"/srv","Destination":"/data","Mode":"ro","RW":false,)"
            R"("Propagation":"rprivate"},{"Type":"volume","Name":"cargo","Source":"",)"
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

TEST(ContainerDocument, ports_are_told_while_it_runs) {
  ContainerFacts f = facts();
  f.ports = {{"0.0.0.0", 8080, 80, "tcp"}, {"::", 8080, 80, "tcp"}, {"", 0, 53, "udp"}};
  EXPECT_EQ(
      at(container_document(f), "NetworkSettings.Ports"),
      R"({"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"},{"HostIp":"::","HostPort":"8080"}],)"
      R"("53/udp":null})");
  f.state = "exited";
  EXPECT_EQ(at(container_document(f), "NetworkSettings.Ports"), "{}");
}

}  // namespace
