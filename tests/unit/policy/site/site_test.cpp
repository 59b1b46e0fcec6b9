// SPDX-License-Identifier: Apache-2.0
#include "policy/site/site.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "json/fields.hpp"
#include "policy/site/toml.hpp"
#include "policy/site/toolkit.hpp"

namespace berth::policy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> faults(std::string_view text) {
  auto file = read_site(text, "policy.toml");
  if (!file.ok()) return {to_line(file.error())};
  std::vector<std::string> out;
  for (const Error& fault : file->faults) {
    EXPECT_EQ(fault.kind, Kind::usage);
    out.push_back(fault.what);
  }
  return out;
}

TEST(SitePolicy, takes_what_people_write) {
  auto compiled = compile(R"(# our machines
[gpu]
environment = "privileged"
always = ["device=0", "vendor.com/net=a"]
capabilities = ["compute", "utility"]
requirements = false
driver-mode = "volume"
)",
                          "/etc/berth/policy.toml");
  ASSERT_TRUE(compiled.ok()) << to_line(compiled.error());
  const Gpu& gpu = compiled->policy.gpu;
  EXPECT_EQ(gpu.environment, GpuEnvironment::privileged);
  EXPECT_THAT(gpu.always, ElementsAre("device=0", "vendor.com/net=a"));
  EXPECT_FALSE(gpu.requirements);
  EXPECT_EQ(gpu.driver_mode, DriverMode::volume);
  EXPECT_EQ(gpu.scheduler, Scheduler::grant);  // as it was
  EXPECT_EQ(compiled->source, "/etc/berth/policy.toml");
  EXPECT_EQ(compiled->lines.at("gpu.environment"), 3U);
  EXPECT_EQ(compiled->lines.at("gpu.driver-mode"), 7U);
  EXPECT_EQ(compiled->lines.size(), 5U);
}

TEST(SitePolicy, an_empty_file_is_the_default) {
  auto compiled = compile("", "policy.toml");
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->policy, Policy());
}

TEST(SitePolicy, every_fault_has_its_line_and_hides_no_other) {
  EXPECT_THAT(
      faults(R"([gpu]
enviroment = "grant"
devices-by-volume = "yes"
driver-mode = "bin"

always = [1]
[gpus]
x = 1
[networks]
)"),
      ElementsAre(
          "policy.toml:2: gpu.enviroment: unknown key; did you mean 'environment'?",
          "policy.toml:3: gpu.devices-by-volume: expected true or false, got a string",
          "policy.toml:4: gpu.driver-mode: expected one of bind, volume, copy, image, none, "
          "got 'bin'",
          "policy.toml:6: gpu.always[0]: expected a string, got a number",
          "policy.toml:8: gpus: unknown key; did you mean 'gpu'?",
          "policy.toml:9: networks: unknown key; did you mean 'network'?"));
}

TEST(SitePolicy, values_are_checked_with_their_line) {
  EXPECT_THAT(faults("[gpu]\n\ncapabilities = [\"computing\"]\n"),
              ElementsAre("policy.toml:3: gpu.capabilities: unknown capability 'computing'"));
  EXPECT_THAT(faults("gpu.driver-root = \"opt\"\n"),
              ElementsAre("policy.toml:1: gpu.driver-root: expected an absolute path, got 'opt'"));
}

TEST(SitePolicy, what_is_no_toml_is_one_line) {
  EXPECT_THAT(faults("[gpu]\nenvironment = grant\n").at(0), HasSubstr("policy.toml:2: "));
  EXPECT_THAT(faults("gpu = 1\ngpu = 2\n").at(0), HasSubstr("policy.toml:"));
  EXPECT_THAT(faults("[gpu]\nalways = 1979-05-27\n").at(0),
              HasSubstr("policy.toml:2: dates and times are not allowed"));
  EXPECT_THAT(faults("a = " + std::string(3000, '[')).at(0), HasSubstr("policy.toml"));
  EXPECT_THAT(faults("a = " + std::string(30, '[') + std::string(30, ']')).at(0),
              HasSubstr("nested too deep"));
  EXPECT_THAT(faults(std::string((1 << 20) + 1, '#')).at(0), HasSubstr("longer than 1 MiB"));
  EXPECT_THAT(faults(std::string("\xff\xfe")).at(0), HasSubstr("policy.toml"));
}

// Found by the fuzzer: toml++ asserts on such keys instead of refusing them.
TEST(SitePolicy, broken_keys_are_refused_and_never_abort) {
  for (const char* text : {"a.=1", "a.\n", ".", "{", "[gpu].", "'.'.", "a={.", "a={b.=1}", "a. ,",
                           "[a.]", "[[a].", "a.#", "a.{", "a.'", "a.\""}) {
    EXPECT_FALSE(read_site(text, "policy.toml").ok()) << text;
  }
}

// Found by the fuzzer: toml++ calls unreachable what letters of most languages reach.
TEST(SitePolicy, letters_of_every_language_are_refused_outside_of_texts_and_taken_inside) {
  for (const char* text : {"\xc3\xa4 = 1", "a = 1 \xd0\xb6", "\xe3\x81\xb0", "\xef\xbb\xb7"}) {
    EXPECT_FALSE(read_site(text, "policy.toml").ok()) << text;
  }
  auto entries = parse_toml("x = \"\"\"a\\\n \xc3\xa4\"\"\"", "x.toml");
  ASSERT_TRUE(entries.ok()) << to_line(entries.error());
  EXPECT_EQ(*entries->at(0).value.string(), "a\xc3\xa4");
  auto line = [](std::string_view text) { return to_line(parse_toml(text, "x.toml").error()); };
  EXPECT_EQ(line("# \xc3\xa4\ny = '\xc3\xa4'\n\xc3\xa4 = 1"),
            "x.toml:3: a letter that is not ASCII is outside of quotes");
  EXPECT_EQ(line("y = \"\"\"\n\\\xc3\xa4\"\"\""),
            "x.toml:2: a letter that is not ASCII is behind a backslash");
}

TEST(SitePolicy, texts_in_quotes_end_where_toml_ends_them) {
  auto first = [](std::string_view text) {
    auto entries = parse_toml(text, "x.toml");
    return entries.ok() ? *entries->at(0).value.string() : to_line(entries.error());
  };
  EXPECT_EQ(first("x = \"\"\"\xc3\xa4\"\"\"\"\"\ny = '\xc3\xa4'"), "\xc3\xa4\"\"");
  EXPECT_EQ(first("x = ''\'\n\\\n\xc3\xa4''\'"), "\\\n\xc3\xa4");
  EXPECT_EQ(first("x = \"\\\"\xc3\xa4\""), "\"\xc3\xa4");
  EXPECT_EQ(first("\xef\xbb\xbfx = \"\xc3\xa4#\"# \xc3\xa4"), "\xc3\xa4#");
  EXPECT_EQ(first("x = \"\"\"a\\ \n\t\n \xf0\x9f\x8d\xb5\"\"\""), "a\xf0\x9f\x8d\xb5");
}

TEST(SitePolicy, keys_of_any_depth_are_refused_and_never_abort) {
  std::string dots;
  for (int i = 0; i < 400000; ++i) dots += "a.";
  std::string nested = "a = [\n";
  for (int i = 0; i < 200; ++i) nested += "{" + dots.substr(0, 2000) + "a = [\n";
  for (const std::string& text :
       {dots + "x = 1", "\n[" + dots + "x]", "[[" + dots + "x]]", nested}) {
    EXPECT_THAT(faults(text), ElementsAre(HasSubstr(": nested too deep")));
  }
  EXPECT_THAT(faults("# " + dots + "\n[gpu]\n"), IsEmpty());
}

TEST(TomlString, comes_back_as_it_was) {
  std::string odd = "a\"b\\c\nd\x01\x7f'\xc3\xa9";
  auto entries = parse_toml("x = " + toml_string(odd), "x.toml");
  ASSERT_TRUE(entries.ok()) << to_line(entries.error());
  EXPECT_EQ(*entries->at(0).value.string(), odd);
}

// ---- import ------------------------------------------------------------------------------------

std::string imported(std::string_view text) {
  auto toml = import_toolkit(text, "config.toml");
  if (!toml.ok()) return to_line(toml.error());
  EXPECT_THAT(faults(*toml), IsEmpty()) << *toml;
  return *toml;
}

// The file that the toolkit's packages install, all keys written out.
constexpr std::string_view kWhole = R"(disable-require = true
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
swarm-resource = "DOCKER_RESOURCE_GPU, OTHER"
accept-nvidia-visible-devices-envvar-when-unprivileged = false
accept-nvidia-visible-devices-as-volume-mounts = true

[nvidia-container-cli]
debug = "/var/log/nvidia-container-toolkit.log"
environment = []
ldcache = "/etc/ld.so.cache"
ldconfig = "@/sbin/ldconfig"
load-kmods = true
no-cgroups = false
path = "/usr/bin/nvidia-container-cli"
root = "/run/nvidia/driver"
user = "root:video"

[nvidia-container-runtime]
debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
mode = "auto"
runtimes = ["runc", "crun"]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/", "example.com/"]
default-kind = "nvidia.com/gpu"
spec-dirs = ["/etc/cdi", "/var/run/cdi"]

[nvidia-container-runtime.modes.csv]
mount-spec-path = "/etc/nvidia-container-runtime/host-files-for-container.d"

[nvidia-container-runtime.modes.jit-cdi]
load-kernel-modules = ["nvidia"]

[nvidia-container-runtime.modes.legacy]
cuda-compat-mode = "disabled"

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = false

[nvidia-ctk]
path = "nvidia-ctk"

[features]
allow-cuda-compat-libs-from-container = false
allow-ldconfig-from-container = false
allow-unknown-oci-spec-fields = false
disable-cuda-compat-lib-hook = false
disable-imex-channel-creation = false
ignore-imex-channel-requests = true
no-additional-gids-for-device-nodes = true
)";

TEST(ToolkitImport, every_key_becomes_a_line_or_a_reason) {
  std::string toml = imported(kWhole);
  auto compiled = compile(toml, "policy.toml");
  ASSERT_TRUE(compiled.ok()) << to_line(compiled.error());
  const Gpu& gpu = compiled->policy.gpu;
  EXPECT_FALSE(gpu.requirements);
  EXPECT_EQ(gpu.capabilities.size(), 7U);
  EXPECT_THAT(gpu.swarm_resource, ElementsAre("DOCKER_RESOURCE_GPU", "OTHER"));
  EXPECT_EQ(gpu.environment, GpuEnvironment::privileged);
  EXPECT_TRUE(gpu.devices_by_volume);
  EXPECT_EQ(gpu.driver_root, "/run/nvidia/driver");
  EXPECT_THAT(gpu.annotation_prefixes, ElementsAre("cdi.k8s.io/", "example.com/"));
  EXPECT_THAT(gpu.cdi_directories, ElementsAre("/etc/cdi", "/var/run/cdi"));
  EXPECT_FALSE(gpu.forward_compatibility);
  EXPECT_FALSE(gpu.imex_channels);
  EXPECT_FALSE(gpu.additional_gids);
  auto entries = parse_toml(kWhole, "config.toml");
  ASSERT_TRUE(entries.ok());
  for (const char* key : {"nvidia-container-cli.debug",
                          "nvidia-container-cli.environment",
                          "nvidia-container-cli.ldcache",
                          "nvidia-container-cli.ldconfig",
                          "nvidia-container-cli.load-kmods",
                          "nvidia-container-cli.no-cgroups",
                          "nvidia-container-cli.path",
                          "nvidia-container-cli.user",
                          "nvidia-container-runtime.debug",
                          "nvidia-container-runtime.log-level",
                          "nvidia-container-runtime.mode",
                          "nvidia-container-runtime.runtimes",
                          "nvidia-container-runtime.modes.csv.mount-spec-path",
                          "nvidia-container-runtime.modes.jit-cdi.load-kernel-modules",
                          "nvidia-container-runtime-hook.path",
                          "nvidia-container-runtime-hook.skip-mode-detection",
                          "nvidia-ctk.path",
                          "features.allow-cuda-compat-libs-from-container",
                          "features.allow-ldconfig-from-container",
                          "features.allow-unknown-oci-spec-fields",
                          "features.disable-imex-channel-creation"}) {
    EXPECT_THAT(toml, HasSubstr("# " + std::string(key) + ": ")) << key;
  }
  EXPECT_THAT(toml, Not(HasSubstr("not a key that is known")));
}

TEST(ToolkitImport, an_empty_file_still_lets_images_ask) {
  auto compiled = compile(imported(""), "policy.toml");
  ASSERT_TRUE(compiled.ok());
  EXPECT_EQ(compiled->policy.gpu.environment, GpuEnvironment::grant);
}

TEST(ToolkitImport, a_foreign_key_cannot_leave_its_comment) {
  std::string toml = imported("\"x\\nenvironment = 1\" = 2\n");
  EXPECT_THAT(toml, HasSubstr("# x\\nenvironment = 1: not a key that is known to Berth"));
}

TEST(ToolkitImport, a_wrong_type_is_one_line) {
  EXPECT_EQ(imported("disable-require = 3\n"),
            "config.toml:1: disable-require: expected true or false, got a number");
}

}  // namespace
}  // namespace berth::policy
