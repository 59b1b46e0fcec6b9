// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Want = Request::Want;

Request good(std::string_view text) {
  auto request = parse_request(text);
  EXPECT_TRUE(request.ok()) << to_line(request.error());
  return request.ok() ? *request : Request{};
}

std::string line(std::string_view text) {
  auto request = parse_request(text);
  return request.ok() ? "accepted" : to_line(request.error());
}

TEST(GpuRequest, takes_all_none_and_a_count) {
  EXPECT_EQ(good("all").want, Want::all);
  EXPECT_EQ(good("-1").want, Want::all);
  EXPECT_EQ(good("none").want, Want::none);
  EXPECT_EQ(good("0").want, Want::none);
  EXPECT_EQ(good("2").want, Want::count);
  EXPECT_EQ(good("2").count, 2U);
  EXPECT_EQ(good("count=3").count, 3U);
  EXPECT_EQ(good("count=all").want, Want::all);
}

TEST(GpuRequest, takes_devices_with_dockers_quotes_and_without) {
  EXPECT_THAT(good("device=0").devices, ElementsAre("0"));
  EXPECT_THAT(good("\"device=0,2\"").devices, ElementsAre("0", "2"));
  EXPECT_THAT(good("device=0,2").devices, ElementsAre("0", "2"));
  EXPECT_THAT(good("device=GPU-8f2b,MIG-11").devices, ElementsAre("GPU-8f2b", "MIG-11"));
  EXPECT_THAT(good("\"device=0,0\"").devices, ElementsAre("0"));
  EXPECT_EQ(good("device=all").want, Want::all);
  EXPECT_EQ(good("device=none").want, Want::none);
}

TEST(GpuRequest, takes_capabilities_with_dockers_quotes_and_without) {
  EXPECT_THAT(good("all").capabilities, IsEmpty());
  EXPECT_THAT(good("all,capabilities=utility").capabilities, ElementsAre("utility"));
  EXPECT_THAT(good("all,\"capabilities=compute,utility\"").capabilities,
              ElementsAre("compute", "utility"));
  auto request = good("\"device=1,2\",\"capabilities=compute,gpu\",driver=nvidia");
  EXPECT_THAT(request.devices, ElementsAre("1", "2"));
  EXPECT_THAT(request.capabilities, ElementsAre("compute"));
  EXPECT_THAT(good("device=1,2,capabilities=compute,video").capabilities,
              ElementsAre("compute", "video"));
}

TEST(GpuRequest, quotes_around_all_of_it_say_nothing) {
  auto request = good("\"all,capabilities=compute,utility\"");
  EXPECT_EQ(request.want, Want::all);
  EXPECT_THAT(request.capabilities, ElementsAre("compute", "utility"));
  EXPECT_EQ(good("\"count=2,driver=nvidia\"").count, 2U);
  EXPECT_THAT(good("\"device=0,1\"").devices, ElementsAre("0", "1"));
}

TEST(GpuRequest, the_driver_names_the_vendor) {
  EXPECT_EQ(good("all").vendor, std::nullopt);
  EXPECT_EQ(good("all,driver=nvidia").vendor, Vendor::nvidia);
  EXPECT_EQ(good("device=0,driver=amd").vendor, Vendor::amd);
  EXPECT_EQ(good("2,driver=intel").vendor, Vendor::intel);
}

TEST(GpuRequest, capabilities_alone_ask_for_one_gpu_as_docker_does) {
  EXPECT_EQ(good("capabilities=compute").want, Want::count);
  EXPECT_EQ(good("capabilities=compute").count, 1U);
}

TEST(GpuRequest, says_what_is_wrong) {
  EXPECT_EQ(line(""), "--gpus '': empty; try: --gpus all, --gpus 2, --gpus device=0,1");
  EXPECT_EQ(line("devcie=0"), "--gpus devcie=0: unknown key 'devcie'; try: did you mean 'device'?");
  EXPECT_EQ(line("all,capabilities=comptue"),
            "--gpus all,capabilities=comptue: unknown capability 'comptue'; try: did you mean "
            "'compute'?");
  EXPECT_EQ(line("2,device=0"), "--gpus 2,device=0: give a count or devices, not both");
  EXPECT_EQ(line("device=0,device=1"), "--gpus device=0,device=1: 'device' is given twice");
  EXPECT_EQ(line("1,2"), "--gpus 1,2: the count is given twice; try: --gpus device=1,2");
  EXPECT_EQ(line("2,all"), "--gpus 2,all: the count is given twice");
  EXPECT_EQ(line("all,utility"),
            "--gpus all,utility: unknown word 'utility'; try: --gpus all, --gpus 2, --gpus "
            "device=0,1");
  EXPECT_EQ(line("device="), "--gpus device=: an empty device");
  EXPECT_EQ(line("\"device=0"), "--gpus \"device=0: a quote is not closed");
  EXPECT_EQ(line("\"device=0\"x"), "--gpus \"device=0\"x: text after a closing quote");
  EXPECT_EQ(
      line("-2"),
      "--gpus -2: expected all, none, a number or device=…, got '-2'; try: --gpus all, --gpus 2, "
      "--gpus device=0,1");
  EXPECT_EQ(
      line("GPU-12"),
      "--gpus GPU-12: expected all, none, a number or device=…, got 'GPU-12'; try: did you mean "
      "'device=GPU-12'?");
  EXPECT_EQ(line("all,driver=matrox"),
            "--gpus all,driver=matrox: no driver 'matrox'; try: drivers are nvidia, amd and intel");
  EXPECT_EQ(line("all,options=x"),
            "--gpus all,options=x: options are not supported; try: leave 'options=' out");
}

}  // namespace
}  // namespace berth::gpu
