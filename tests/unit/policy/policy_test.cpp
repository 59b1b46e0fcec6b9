// SPDX-License-Identifier: Apache-2.0
#include "policy/policy.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "json/fields.hpp"

namespace berth::policy {
namespace {

std::string compiled_text(const Policy& policy) {
  Compiled compiled{
      .format = kFormat, .source = "/etc/berth/policy.toml", .lines = {}, .policy = policy};
  return json::write(compiled, 2);
}

std::string error_of(std::string_view text) {
  auto compiled = parse_compiled(text, "policy.json");
  return compiled.ok() ? "none" : to_line(compiled.error());
}

TEST(Policy, grants_nothing_by_default) {
  Policy policy;
  EXPECT_EQ(policy.gpu.environment, GpuEnvironment::ignore);
  EXPECT_FALSE(policy.gpu.devices_by_volume);
  EXPECT_TRUE(policy.gpu.always.empty());
  EXPECT_TRUE(policy.gpu.requirements);
  EXPECT_EQ(policy.gpu.scheduler, Scheduler::grant);
  EXPECT_TRUE(check(policy).ok());
}

TEST(Policy, comes_back_from_json_as_it_was) {
  Policy policy;
  policy.gpu.environment = GpuEnvironment::privileged;
  policy.gpu.driver_mode = DriverMode::volume;
  policy.gpu.always = {"device=0,1", "nvidia.com/gpu=2"};
  policy.gpu.never = {"GPU-1"};
  policy.gpu.capabilities = {"compute"};
  policy.gpu.driver_root = "/run/nvidia/driver";
  policy.gpu.ledger = "/run/ledger";
  policy.gpu.exclusive = true;
  policy.gpu.requirements = false;
  auto compiled = parse_compiled(compiled_text(policy), "policy.json");
  ASSERT_TRUE(compiled.ok()) << to_line(compiled.error());
  EXPECT_EQ(compiled->policy, policy);
  EXPECT_EQ(compiled->source, "/etc/berth/policy.toml");
}

TEST(Policy, refuses_what_it_does_not_know) {
  EXPECT_EQ(error_of(R"({"format":1,"policy":{"gpu":{"enviroment":"grant"}}})"),
            "policy.json: policy.gpu.enviroment: unknown member; did you mean 'environment'?");
  EXPECT_EQ(
      error_of(R"({"format":1,"policy":{"gpu":{"environment":"yes"}}})"),
      "policy.json: policy.gpu.environment: expected one of ignore, privileged, grant, got 'yes'");
  EXPECT_EQ(error_of(R"({"format":1,"policy":{"gpu":{"driver-mode":3}}})"),
            "policy.json: policy.gpu.driver-mode: expected a string, got a number");
  EXPECT_EQ(error_of(R"({"format":2,"policy":{},"new":1})"),
            "policy.json: written by another version of berth; try: berth policy apply");
  EXPECT_EQ(
      error_of(R"({"format":1,"policy":{"gpu":{"capabilities":["computing"]}}})"),
      "policy.json: gpu.capabilities: unknown capability 'computing'; try: berth policy apply");
}

TEST(Policy, checks_what_types_cannot_say) {
  struct Case {
    void (*set)(Gpu&);
    const char* what;
  };
  const Case cases[] = {
      {[](Gpu& g) { g.ledger = "run"; }, "gpu.ledger: expected an absolute path, got 'run'"},
      {[](Gpu& g) { g.driver_root = "opt"; },
       "gpu.driver-root: expected an absolute path, got 'opt'"},
      {[](Gpu& g) { g.files = {"/a/../b"}; },
       "gpu.files: expected an absolute path, got '/a/../b'"},
      {[](Gpu& g) { g.cdi_directories = {""}; },
       "gpu.cdi-directories: expected an absolute path, got ''"},
      {[](Gpu& g) { g.default_kind = "gpu"; },
       "gpu.default-kind: expected vendor.com/class, got 'gpu'"},
      {[](Gpu& g) { g.always = {" "}; }, "gpu.always: an empty entry"},
      {[](Gpu& g) { g.never = {"a\nb"}; }, "gpu.never: a control character in 'a\\nb'"},
      {[](Gpu& g) { g.default_capabilities = {"computer"}; },
       "gpu.default-capabilities: unknown capability 'computer'"},
  };
  for (const Case& one : cases) {
    Policy policy;
    one.set(policy.gpu);
    auto checked = check(policy);
    ASSERT_FALSE(checked.ok()) << one.what;
    EXPECT_EQ(checked.error().what, one.what);
  }
}

TEST(Policy, takes_networks_that_need_no_other_container_as_the_default) {
  Policy policy;
  for (const char* mode : {"", "bridge", "host", "none"}) {
    policy.network.default_mode = mode;
    EXPECT_TRUE(check(policy).ok()) << mode;
  }
  policy.network.default_mode = "container:web";
  EXPECT_EQ(check(policy).error().what,
            "network.default: expected bridge, host or none, got 'container:web'");
}

class PolicyFile : public testing::Test {
 protected:
  PolicyFile() {
    char name[] = "/tmp/berth-tests-policy-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~PolicyFile() override {
    unlink(path().c_str());
    rmdir(directory_.c_str());
  }
  std::string path() const { return directory_ + "/policy.json"; }
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path()) << text;
    ASSERT_EQ(chmod(path().c_str(), mode), 0);
  }
  std::string directory_;
};

TEST_F(PolicyFile, absent_means_the_defaults) {
  auto compiled = read_compiled(directory_);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->policy, Policy());
  EXPECT_EQ(compiled->source, "");
}

TEST_F(PolicyFile, is_refused_when_others_can_write_to_it) {
  Policy policy;
  policy.gpu.environment = GpuEnvironment::grant;
  write(compiled_text(policy), 0644);
  auto compiled = read_compiled(directory_);
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->policy, policy);
  for (mode_t mode : {0664, 0646}) {
    write(compiled_text(policy), mode);
    auto refused = read_compiled(directory_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, Kind::denied);
    EXPECT_EQ(refused.error().what, "read '" + path() + "': it is writable by others");
  }
}

TEST_F(PolicyFile, is_refused_when_it_is_somebody_elses_or_no_file) {
  ASSERT_EQ(mkfifo(path().c_str(), 0600), 0);
  auto fifo = read_compiled(directory_);
  ASSERT_FALSE(fifo.ok());
  EXPECT_EQ(fifo.error().what, "read '" + path() + "': not a regular file");
  if (geteuid() != 0) return;
  unlink(path().c_str());
  write("{}", 0644);
  ASSERT_EQ(chown(path().c_str(), 12345, 0), 0);
  auto foreign = read_compiled(directory_);
  ASSERT_FALSE(foreign.ok());
  EXPECT_EQ(foreign.error().what, "read '" + path() + "': it belongs to another user");
}

}  // namespace
}  // namespace berth::policy
