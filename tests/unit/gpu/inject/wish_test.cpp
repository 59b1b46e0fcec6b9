// SPDX-License-Identifier: Apache-2.0
#include "gpu/inject/wish.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::gpu {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Strings = std::vector<std::string>;

constexpr const char* kDockersHook = "/usr/bin/nvidia-container-runtime-hook";

oci::Spec spec_with(Strings env) {
  oci::Spec spec;
  spec.process.emplace();
  spec.process->env = std::move(env);
  return spec;
}

oci::Spec of_docker(Strings env) {
  oci::Spec spec = spec_with(std::move(env));
  spec.hooks.prestart = {{kDockersHook, {"nvidia-container-runtime-hook", "prestart"}, {}, {}},
                         {"/proc/7/exe", {"libnetwork-setkey"}, {}, {}}};
  return spec;
}

Wish take(oci::Spec spec, const policy::Gpu& policy = {}) {
  auto wish = take_wish(spec, policy);
  EXPECT_TRUE(wish.ok()) << to_line(wish.error());
  return wish.ok() ? std::move(*wish) : Wish{};
}

/// What dockerd's variables come down to, through the reader of --gpus.
std::string flag_of(Strings env) {
  Wish wish = take(of_docker(std::move(env)));
  if (!wish.sources.gpus) return "none";
  auto request = parse_request(*wish.sources.gpus);
  if (!request.ok()) return to_line(request.error());
  std::string out = request->want == Request::Want::all ? "all" : "";
  for (const auto& device : request->devices) out += device + ";";
  for (const auto& word : request->capabilities) out += " " + word;
  return out;
}

TEST(GpuInjectWish, reads_what_dockerd_makes_of_its_flag_at_the_end_of_the_variables) {
  EXPECT_EQ(flag_of({"PATH=/bin", "NVIDIA_VISIBLE_DEVICES=all"}), "all");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=7", "NVIDIA_VISIBLE_DEVICES=0,1"}), "0;1;");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=0", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"}),
            "0; compute utility");
}

TEST(GpuInjectWish, takes_no_variable_of_the_image_for_dockers_flag) {
  // "--gpus 0": the hook is there, and dockerd has appended nothing.
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=all", "A=b"}), "none");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=all", "A=b"}),
            "none");
  EXPECT_EQ(flag_of({}), "none");
  EXPECT_EQ(flag_of({"NVIDIA_DRIVER_CAPABILITIES=all"}), "none");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES="}), "none");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=void"}), "none");
}

TEST(GpuInjectWish, a_quote_or_a_path_in_dockers_flag_stays_the_name_of_a_device) {
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=\",count=8"}), "\";count=8;");
  EXPECT_EQ(flag_of({"NVIDIA_VISIBLE_DEVICES=../../x"}), "../../x;");
}

TEST(GpuInjectWish, takes_nvidias_hook_out_and_leaves_the_others) {
  oci::Spec spec = of_docker({"NVIDIA_VISIBLE_DEVICES=all"});
  spec.hooks.create_runtime = {{"/usr/bin/nvidia-container-toolkit", {}, {}, {}},
                               {"/usr/bin/not-nvidia-container-runtime-hook", {}, {}, {}}};
  ASSERT_TRUE(take_wish(spec, {}).ok());
  ASSERT_EQ(spec.hooks.prestart.size(), 1u);
  EXPECT_EQ(spec.hooks.prestart[0].path, "/proc/7/exe");
  ASSERT_EQ(spec.hooks.create_runtime.size(), 1u);
}

TEST(GpuInjectWish, podmans_hook_is_nobodys_word) {
  oci::Spec spec = of_docker({"NVIDIA_VISIBLE_DEVICES=all"});
  spec.annotations["io.container.manager"] = "docker";  // an image may have chosen the value
  Wish wish = take(std::move(spec));
  EXPECT_FALSE(wish.sources.gpus);
  ASSERT_EQ(wish.warnings.size(), 1u);
  EXPECT_THAT(wish.warnings[0], HasSubstr("NVIDIA's hook is not run"));
}

TEST(GpuInjectWish, variables_without_the_hook_are_left_to_the_policy) {
  Wish wish = take(spec_with({"NVIDIA_VISIBLE_DEVICES=all"}));
  EXPECT_FALSE(wish.sources.gpus);
  EXPECT_THAT(wish.sources.image, ElementsAre("NVIDIA_VISIBLE_DEVICES=all"));
  auto choice = choose(wish.sources, {});
  ASSERT_TRUE(choice.ok());
  EXPECT_FALSE(choice->grants());
  policy::Gpu grants;
  grants.environment = policy::GpuEnvironment::grant;
  choice = choose(wish.sources, grants);
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->grants());
}

TEST(GpuInjectWish, reads_annotations_of_the_policys_prefixes) {
  oci::Spec spec = spec_with({});
  spec.annotations = {{"cdi.k8s.io/x", "nvidia.com/gpu=0, nvidia.com/gpu=1,"},
                      {"cdi.example/y", "v.com/c=d"},
                      {"other", "v.com/c=e"}};
  EXPECT_THAT(take(spec).sources.annotations, ElementsAre("nvidia.com/gpu=0", "nvidia.com/gpu=1"));
  policy::Gpu policy;
  policy.annotation_prefixes = {"cdi.example/"};
  EXPECT_THAT(take(spec, policy).sources.annotations, ElementsAre("v.com/c=d"));
}

TEST(GpuInjectWish, an_annotation_that_an_image_can_write_counts_as_its_variables_do) {
  oci::Spec spec = spec_with({});
  spec.annotations = {{"cdi.k8s.io/x", "nvidia.com/gpu=all"}, {"io.container.manager", "libpod"}};
  Wish wish = take(spec);
  EXPECT_THAT(wish.sources.annotations, IsEmpty());
  ASSERT_EQ(wish.warnings.size(), 1u);
  EXPECT_THAT(wish.warnings[0], HasSubstr("'cdi.k8s.io/x' may be the image's"));

  policy::Gpu policy;
  policy.environment = policy::GpuEnvironment::privileged;
  EXPECT_THAT(take(spec, policy).sources.annotations, IsEmpty());
  spec.process->capabilities.emplace();
  spec.process->capabilities->bounding = {"CAP_SYS_ADMIN"};
  EXPECT_THAT(take(spec, policy).sources.annotations, ElementsAre("nvidia.com/gpu=all"));
}

TEST(GpuInjectWish, reads_mounts_of_dev_null_and_no_others) {
  oci::Spec spec = spec_with({});
  const std::string below = "/var/run/nvidia-container-devices/";
  for (const auto& [source, name] : std::vector<std::pair<std::string, std::string>>{
           {"/dev/null", "GPU-1"}, {"/var/lib/docker/volumes/v/_data", "all"}}) {
    oci::Mount mount;
    mount.type = "bind";
    mount.source = source;
    mount.destination = below + name;
    spec.mounts.push_back(mount);
  }
  EXPECT_THAT(take(spec).sources.volumes, ElementsAre("GPU-1"));
}

TEST(GpuInjectWish, refuses_giant_lists_that_count_and_passes_over_others) {
  std::string giant = "NVIDIA_VISIBLE_DEVICES=" + std::string(kLongestWish, ',') + "0";
  oci::Spec spec = spec_with({giant});
  EXPECT_TRUE(take_wish(spec, {}).ok());
  policy::Gpu policy;
  policy.environment = policy::GpuEnvironment::grant;
  auto wish = take_wish(spec, policy);
  ASSERT_FALSE(wish.ok());
  EXPECT_EQ(to_line(wish.error()),
            "config.json: 'NVIDIA_VISIBLE_DEVICES': longer than 16384 bytes");
  oci::Spec docker = of_docker({giant});
  EXPECT_FALSE(take_wish(docker, {}).ok());
  oci::Spec annotated = spec_with({});
  annotated.annotations = {{"cdi.k8s.io/x", std::string(kLongestWish + 1, 'x')}};
  EXPECT_FALSE(take_wish(annotated, {}).ok());
}

TEST(GpuInjectWish, a_job_takes_away_and_grants_nothing) {
  const Strings job = {"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=3,1"};
  policy::Gpu policy;
  auto chosen = [&](Strings env, std::optional<std::string> gpus) {
    Sources sources;
    sources.image = std::move(env);
    sources.gpus = std::move(gpus);
    policy.scheduler = policy::Scheduler::grant;
    take_job(job, sources, policy);
    return choose(sources, policy);
  };
  auto none = chosen({}, std::nullopt);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->grants());
  auto some = chosen({"CUDA_VISIBLE_DEVICES=3,1"}, "all");
  ASSERT_TRUE(some.ok());
  ASSERT_EQ(some->request.limits.size(), 1U);
  EXPECT_THAT(some->request.limits[0].ids, ElementsAre("3", "1"));
  EXPECT_THAT(some->request.translate, ElementsAre("CUDA_VISIBLE_DEVICES"));
  auto own = chosen({"CUDA_VISIBLE_DEVICES=0"}, "all");
  ASSERT_TRUE(own.ok());
  EXPECT_THAT(own->request.translate, IsEmpty());
}

TEST(GpuInjectWish, of_several_values_the_last_stays) {
  Strings env = {"NVIDIA_VISIBLE_DEVICES=7", "A=b", "NVIDIA_VISIBLE_DEVICES=all", "A=c"};
  keep_last(env);
  EXPECT_THAT(env, ElementsAre("A=b", "NVIDIA_VISIBLE_DEVICES=all", "A=c"));
}

}  // namespace
}  // namespace berth::gpu
