// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network.hpp"

#include <gtest/gtest.h>

#include "engine/container/launch.hpp"
#include "engine/network/choose_helper.hpp"
#include "json/fields.hpp"

namespace berth::engine {
namespace {

struct Quiet : Log {
  void debug(const std::string&) override {}
  void warn(const std::string&) override {}
};

/// What `flags` mean on a machine without a policy.
Result<RunRequest> read(const NetworkFlags& flags, std::vector<std::string> environment = {}) {
  Quiet log;
  Paths paths;
  paths.config = "/nonexistent";
  Context context{paths, Identity::root, Environment(std::move(environment)), log};
  RunRequest request;
  TRY(apply_network_flags(context, flags, request));
  return request;
}

TEST(ApplyNetworkFlags, takes_the_flag_then_the_variable_then_the_jobs_then_dockers) {
  EXPECT_EQ(read({})->network, Network::bridge);
  EXPECT_EQ(read({}, {"SLURM_JOB_ID=7"})->network, Network::host);
  EXPECT_EQ(read({}, {"PBS_JOBID=7"})->network, Network::host);
  EXPECT_EQ(read({}, {"BERTH_NETWORK=none", "SLURM_JOB_ID=7"})->network, Network::none);
  EXPECT_EQ(read({}, {"BERTH_NETWORK="})->network, Network::bridge);
  EXPECT_EQ(read({"host"}, {"BERTH_NETWORK=bridge"})->network, Network::host);
}

TEST(ChooseHelper, knows_a_new_pasta_by_its_options) {
  EXPECT_TRUE(
      is_new_pasta("  --map-host-loopback ADDR\n  --map-guest-addr ADDR\tTranslate ADDR\n"));
  EXPECT_FALSE(is_new_pasta("  --no-map-gw\t\tDon't map gateway address to host\n"));
  EXPECT_FALSE(is_new_pasta(""));
}

TEST(ApplyNetworkFlags, publishes_ports_whatever_the_default) {
  for (const char* usual : {"BERTH_NETWORK=none", "BERTH_NETWORK=host", "SLURM_JOB_ID=7"}) {
    EXPECT_EQ(read({"", {"80"}}, {usual})->network, Network::bridge) << usual;
    EXPECT_EQ(read({"", {}, true}, {usual})->network, Network::bridge) << usual;
    EXPECT_EQ(read({"none", {"80"}}, {usual})->network, Network::none) << usual;
  }
  EXPECT_EQ(read({"", {"80"}}, {"BERTH_NETWORK=pasta"})->network, Network::pasta);
}

TEST(ApplyNetworkFlags, keeps_a_mac_address_where_there_is_an_interface_for_it) {
  NetworkFlags flags;
  flags.mac = "02:42:ac:11:00:09";
  EXPECT_EQ(read(flags)->mac_address, flags.mac);
  EXPECT_TRUE(read(flags)->networks.empty());
  flags.mode = "none";
  EXPECT_EQ(read(flags)->mac_address, flags.mac);
  for (const char* others : {"host", "container:web"}) {
    flags.mode = others;
    EXPECT_EQ(read(flags).error().what, "conflicting options: mac-address and the network mode");
  }
  EXPECT_EQ(read({"name=bridge,mac-address=0242.AC11.0009"})->mac_address, "02:42:ac:11:00:09");
  EXPECT_FALSE(read({"name=bridge,mac-address=x"}).ok());
}

TEST(ApplyNetworkFlags, of_the_default_network_has_no_names_and_no_addresses) {
  for (const char* text : {"name=bridge,alias=web", "name=bridge,ip=10.0.0.9"}) {
    EXPECT_EQ(read({text}).error().kind, Kind::usage) << text;
  }
}

TEST(ApplyNetworkFlags, tells_what_the_user_has_said_from_a_default) {
  EXPECT_FALSE(read({})->network_asked);
  EXPECT_FALSE(read({}, {"SLURM_JOB_ID=7"})->network_asked);
  EXPECT_TRUE(read({}, {"BERTH_NETWORK=bridge"})->network_asked);
  EXPECT_TRUE(read({"bridge"})->network_asked);
  EXPECT_TRUE(read({"", {"80"}})->network_asked);
}

TEST(ApplyNetworkFlags, knows_the_words_of_docker_and_podman) {
  for (const char* word : {"bridge", "default", "podman", "private"}) {
    EXPECT_EQ(read({word})->network, Network::bridge) << word;
  }
  EXPECT_EQ(read({"pasta"})->network, Network::pasta);
  EXPECT_EQ(read({"slirp4netns"})->network, Network::slirp4netns);
  auto joined = read({"container:web"});
  EXPECT_EQ(joined->network, Network::container);
  EXPECT_EQ(joined->network_container, "web");
  EXPECT_EQ(read({"container:"}).error().kind, Kind::usage);
  for (const char* name : {"Bridge", "macvlan", "none "}) {  // of networks that are not there
    EXPECT_EQ(read({name}).error().kind, Kind::not_found) << name;
  }
}

TEST(ApplyNetworkFlags, publishes_no_ports_of_another_container) {
  EXPECT_EQ(read({"container:web", {"80"}}).error().what,
            "conflicting options: port publishing and the container type network mode");
  EXPECT_EQ(read({"", {"80x"}}).error().kind, Kind::usage);
}

TEST(ApplyNetworkFlags, is_kept_with_the_request) {
  auto request = read({"", {"127.0.0.1:8080-8081:80-81/udp"}, true});
  ASSERT_TRUE(request.ok());
  auto again = parse_run_request(json::write(*request));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *request);
}

TEST(NetworkError, is_what_berth_network_has_said) {
  Error hook =
      make_error(Kind::denied,
                 "the createRuntime hook failed with exit code 1: '/usr/bin/berth-network': " +
                     network::write_failure(make_error(Kind::busy, "bind 'x'", "another")))
          .with_context("cannot run the createRuntime hook");
  Error told = network_error(hook);
  EXPECT_EQ(told.what, "bind 'x'");
  EXPECT_EQ(told.kind, Kind::busy);
  EXPECT_TRUE(told.context.empty());
  for (const char* other :
       {"the createRuntime hook failed with exit code 1: '/usr/bin/berth-network': Killed",
        "run '/usr/bin/other': exit status 1: {}", ""}) {
    EXPECT_EQ(network_error(make_error(Kind::denied, other)).what, other);
  }
}

TEST(Hosts, leave_the_way_to_the_host_to_berth_network) {
  RunRequest request;
  request.add_host = {"host.docker.internal:host-gateway"};
  EXPECT_EQ(hosts_text(request, "tug", "").error().kind, Kind::unsupported);
  request.network = Network::bridge;
  auto text = hosts_text(request, "tug", "");
  ASSERT_TRUE(text.ok());
  EXPECT_TRUE(text->ends_with("127.0.1.1\ttug\nhost-gateway\thost.docker.internal\n")) << *text;
}

}  // namespace
}  // namespace berth::engine
