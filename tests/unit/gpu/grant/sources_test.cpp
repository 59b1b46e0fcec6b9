// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/sources.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/grant/select.hpp"
#include "unit/gpu/grant/machine.hpp"

namespace berth::gpu {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using Want = Request::Want;

policy::Gpu with_environment(policy::GpuEnvironment environment) {
  policy::Gpu policy;
  policy.environment = environment;
  return policy;
}

const policy::Gpu kIgnore;
const policy::Gpu kGrant = with_environment(policy::GpuEnvironment::grant);
const policy::Gpu kPrivileged = with_environment(policy::GpuEnvironment::privileged);

Choice chosen(const Sources& sources, const policy::Gpu& policy = kIgnore) {
  auto choice = choose(sources, policy);
  EXPECT_TRUE(choice.ok()) << to_line(choice.error());
  return choice.ok() ? std::move(*choice) : Choice{};
}

std::string line(const Sources& sources, const policy::Gpu& policy = kIgnore) {
  auto choice = choose(sources, policy);
  return choice.ok() ? "chosen" : to_line(choice.error());
}

Sources image(std::vector<std::string> variables) {
  Sources sources;
  sources.image = std::move(variables);
  return sources;
}

Sources flags(const std::string& gpus) {
  Sources sources;
  sources.gpus = gpus;
  return sources;
}

auto verdict(const std::string& source, bool used, const std::string& why) {
  return Contains(AllOf(Field(&Verdict::source, source), Field(&Verdict::used, used),
                        Field(&Verdict::why, why)));
}

TEST(Sources, nothing_asks_and_nothing_is_granted) {
  Choice choice = chosen({});
  EXPECT_FALSE(choice.grants());
  EXPECT_THAT(choice.verdicts, IsEmpty());
}

TEST(Sources, an_image_grants_nothing_by_default) {
  for (const char* variable : {"NVIDIA_VISIBLE_DEVICES=all",
                               "NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0", "CUDA_VERSION=8.0.61"}) {
    Choice choice = chosen(image({variable}));
    EXPECT_FALSE(choice.grants()) << variable;
    ASSERT_EQ(choice.verdicts.size(), 1U) << variable;
    EXPECT_FALSE(choice.verdicts[0].used);
    EXPECT_EQ(choice.verdicts[0].why, "a variable grants nothing unless policy says so");
    EXPECT_THAT(choice.warnings, IsEmpty());
  }
  Sources labelled;
  labelled.labels = {{"com.nvidia.volumes.needed", "nvidia_driver"}};
  EXPECT_FALSE(chosen(labelled).grants());
}

TEST(Sources, a_typed_variable_that_grants_nothing_is_a_warning) {
  Sources sources;
  sources.typed = {"NVIDIA_VISIBLE_DEVICES=0"};
  Choice choice = chosen(sources);
  EXPECT_FALSE(choice.grants());
  EXPECT_THAT(choice.warnings,
              ElementsAre("NVIDIA_VISIBLE_DEVICES=0: no GPUs are given for a variable here; try: "
                          "--gpus all"));
  sources.typed = {"NVIDIA_VISIBLE_DEVICES=void"};
  EXPECT_THAT(chosen(sources).warnings, IsEmpty());
  sources.typed = {"NVIDIA_VISIBLE_DEVICES=0"};
  sources.gpus = "all";
  EXPECT_THAT(chosen(sources).warnings, IsEmpty());
}

TEST(Sources, flags_win_over_every_variable) {
  Sources sources = flags("device=1");
  sources.image = {"NVIDIA_VISIBLE_DEVICES=all"};
  sources.volumes = {"0"};
  Choice choice = chosen(sources, kGrant);
  EXPECT_THAT(choice.request.devices, ElementsAre("1"));
  EXPECT_THAT(choice.verdicts,
              verdict("NVIDIA_VISIBLE_DEVICES of the image", false, "--gpus comes before it"));
  sources.gpus = "none";
  EXPECT_FALSE(chosen(sources, kGrant).grants());
}

TEST(Sources, flag_and_device_add_up) {
  Sources sources = flags("device=1");
  sources.devices = {"nvidia.com/gpu=0", "vendor.com/net=a", "nvidia.com/gpu=0"};
  Choice choice = chosen(sources);
  EXPECT_THAT(choice.request.devices, ElementsAre("1"));
  EXPECT_THAT(choice.cdi_names, ElementsAre("nvidia.com/gpu=0", "vendor.com/net=a"));
}

struct EnvironmentCase {
  const policy::Gpu& policy;
  bool privileged;
  bool grants;
};

TEST(Sources, the_policy_says_whose_variables_grant) {
  const EnvironmentCase cases[] = {{kIgnore, false, false},     {kIgnore, true, false},
                                   {kPrivileged, false, false}, {kPrivileged, true, true},
                                   {kGrant, false, true},       {kGrant, true, true}};
  for (const EnvironmentCase& one : cases) {
    Sources sources = image({"NVIDIA_VISIBLE_DEVICES=0,2"});
    sources.privileged = one.privileged;
    Choice choice = chosen(sources, one.policy);
    EXPECT_EQ(choice.grants(), one.grants);
    if (one.grants) {
      EXPECT_THAT(choice.request.devices, ElementsAre("0", "2"));
    }
    EXPECT_THAT(choice.warnings, IsEmpty());
  }
}

TEST(Sources, with_policy_every_form_of_the_variable_counts) {
  EXPECT_EQ(chosen(image({"NVIDIA_VISIBLE_DEVICES=all"}), kGrant).request.want, Want::all);
  EXPECT_EQ(chosen(image({"NVIDIA_VISIBLE_DEVICES=none"}), kGrant).request.want,
            Want::driver_files);
  EXPECT_FALSE(chosen(image({"NVIDIA_VISIBLE_DEVICES=void"}), kGrant).grants());
  EXPECT_FALSE(chosen(image({"NVIDIA_VISIBLE_DEVICES="}), kGrant).grants());
  EXPECT_THAT(chosen(image({"NVIDIA_VISIBLE_DEVICES=nvidia.com/gpu=0"}), kGrant).cdi_names,
              ElementsAre("nvidia.com/gpu=0"));
  Sources typed = image({"NVIDIA_VISIBLE_DEVICES=all"});
  typed.typed = {"NVIDIA_VISIBLE_DEVICES=1"};
  EXPECT_THAT(chosen(typed, kGrant).request.devices, ElementsAre("1"));
}

TEST(Sources, an_old_image_stands_for_all_gpus_where_variables_grant) {
  Choice choice = chosen(image({"CUDA_VERSION=8.0.61"}), kGrant);
  EXPECT_EQ(choice.request.want, Want::all);
  Sources labelled;
  labelled.labels = {{"com.nvidia.volumes.needed", "nvidia_driver"}};
  EXPECT_EQ(chosen(labelled, kGrant).request.want, Want::all);
  labelled.labels = {{"com.nvidia.volumes.needed", "other"}};
  EXPECT_FALSE(chosen(labelled, kGrant).grants());
}

TEST(Sources, swarm_resources_come_before_visible_devices) {
  policy::Gpu policy = kGrant;
  policy.swarm_resource = {"DOCKER_RESOURCE_GPU"};
  auto sources = image({"NVIDIA_VISIBLE_DEVICES=all", "DOCKER_RESOURCE_GPU=GPU-1"});
  EXPECT_THAT(chosen(sources, policy).request.devices, ElementsAre("GPU-1"));
  EXPECT_EQ(chosen(sources, kGrant).request.want, Want::all);
}

TEST(Sources, volumes_ask_where_the_policy_lets_them_and_come_before_variables) {
  Sources sources = image({"NVIDIA_VISIBLE_DEVICES=all"});
  sources.volumes = {"1", "imex/4", "cdi/nvidia.com/gpu/0"};
  EXPECT_FALSE(chosen(sources).grants());
  policy::Gpu policy = kGrant;
  policy.devices_by_volume = true;
  Choice choice = chosen(sources, policy);
  EXPECT_THAT(choice.request.devices, ElementsAre("1"));
  EXPECT_THAT(choice.cdi_names, ElementsAre("nvidia.com/gpu=0"));
  EXPECT_THAT(choice.request.features.imex_channels, ElementsAre(4U));
  sources.annotations = {"nvidia.com/gpu=3"};
  EXPECT_THAT(chosen(sources, policy).cdi_names, ElementsAre("nvidia.com/gpu=3"));
}

TEST(Sources, the_site_gives_where_nobody_asks) {
  policy::Gpu policy;
  policy.always = {"device=0,1", "vendor.com/net=a"};
  Choice choice = chosen({}, policy);
  EXPECT_THAT(choice.request.devices, ElementsAre("0", "1"));
  EXPECT_THAT(choice.cdi_names, ElementsAre("vendor.com/net=a"));
  EXPECT_FALSE(chosen(flags("none"), policy).grants());
  EXPECT_THAT(chosen(flags("device=3"), policy).request.devices, ElementsAre("3"));
  policy.always = {"1", "all"};
  EXPECT_EQ(chosen({}, policy).request.want, Want::all);
  policy.always = {"devcie=0"};
  EXPECT_EQ(line({}, policy),
            "cannot read gpu.always of the policy: --gpus devcie=0: unknown key "
            "'devcie'; try: did you mean 'device'?");
}

TEST(Sources, the_policy_withholds_gpus) {
  Inventory machine = gpu_machine(4);
  Request request = chosen(flags("all")).request;
  request.never = keys_of({"1", "GPU-b3", "0000:99:00.0", "vendor.com/a=b"}, machine);
  auto all = select(request, machine);
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->size(), 2U);
  request = chosen(flags("device=1")).request;
  request.never = keys_of({"1"}, machine);
  EXPECT_EQ(
      to_line(select(request, machine).error()),
      "--gpus device=1: the policy of this machine does not allow this GPU; try: berth policy "
      "show");
  request = chosen(flags("all")).request;
  request.never = keys_of({"0", "1", "2", "3"}, machine);
  EXPECT_EQ(to_line(select(request, machine).error()),
            "--gpus all: the policy of this machine allows no GPU; try: berth policy show");
}

TEST(Sources, a_withheld_gpu_withholds_its_slices) {
  Inventory machine = sliced_machine(2);
  Request request = chosen(flags("device=1:0")).request;
  for (const char* name : {"1", "GPU-aa1", "0000:11:00.0", "MIG-c0", "1:0"}) {
    request.never = keys_of({name}, machine);
    auto refused = select(request, machine);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().kind, Kind::denied);
  }
  request.never = keys_of({"1:1"}, machine);
  EXPECT_TRUE(select(request, machine).ok());
}

// ---- capabilities ------------------------------------------------------------------------------

std::vector<std::string> capabilities(Sources sources, const policy::Gpu& policy = kIgnore) {
  if (!sources.gpus) sources.gpus = "all";
  return chosen(sources, policy).request.capabilities;
}

TEST(SourceCapabilities, flags_then_variables_then_the_default) {
  EXPECT_THAT(capabilities({}), ElementsAre("compute", "utility"));
  EXPECT_THAT(capabilities(image({"NVIDIA_DRIVER_CAPABILITIES=graphics,video"})),
              ElementsAre("graphics", "video"));
  Sources sources = image({"NVIDIA_DRIVER_CAPABILITIES=graphics"});
  sources.typed = {"NVIDIA_DRIVER_CAPABILITIES=utility"};
  EXPECT_THAT(capabilities(sources), ElementsAre("utility"));
  sources.gpus = "all,capabilities=video";
  EXPECT_THAT(capabilities(sources), ElementsAre("video"));
}

TEST(SourceCapabilities, all_is_all_that_there_are) {
  EXPECT_EQ(capabilities(image({"NVIDIA_DRIVER_CAPABILITIES=all"})).size(), 7U);
  EXPECT_EQ(capabilities(flags("all,capabilities=all")).size(), 7U);
}

TEST(SourceCapabilities, unknown_words_grant_nothing) {
  Sources sources = image({"NVIDIA_DRIVER_CAPABILITIES=computing,unheard"});
  sources.gpus = "all";
  Choice choice = chosen(sources);
  EXPECT_THAT(choice.request.capabilities, ElementsAre("compute", "utility"));
  EXPECT_THAT(choice.verdicts, verdict("NVIDIA_DRIVER_CAPABILITIES of the image", false,
                                       "there is no such capability"));
}

TEST(SourceCapabilities, an_old_image_gets_all) {
  EXPECT_EQ(capabilities(image({"CUDA_VERSION=8.0.61"})).size(), 7U);
  EXPECT_THAT(capabilities(image({"CUDA_VERSION=12.0", "NVIDIA_REQUIRE_CUDA=cuda>=12.0"})),
              ElementsAre("compute", "utility"));
  EXPECT_THAT(capabilities(image({"CUDA_VERSION=8.0.61", "NVIDIA_DRIVER_CAPABILITIES=utility"})),
              ElementsAre("utility"));
}

TEST(SourceCapabilities, the_policy_says_what_is_allowed_and_what_is_usual) {
  policy::Gpu policy;
  policy.capabilities = {"compute", "utility", "video"};
  policy.default_capabilities = {"utility"};
  EXPECT_THAT(capabilities({}, policy), ElementsAre("utility"));
  EXPECT_THAT(capabilities(image({"NVIDIA_DRIVER_CAPABILITIES=all"}), policy),
              ElementsAre("compute", "utility", "video"));
  EXPECT_THAT(capabilities(image({"NVIDIA_DRIVER_CAPABILITIES=video,graphics"}), policy),
              ElementsAre("video"));
  EXPECT_EQ(line(flags("all,capabilities=graphics"), policy),
            "capability 'graphics': the policy of this machine does not allow it; try: berth "
            "policy show");
  EXPECT_THAT(capabilities(flags("all,capabilities=all"), policy),
              ElementsAre("compute", "utility", "video"));
}

// ---- requirements ------------------------------------------------------------------------------

std::vector<std::string> requirements(Sources sources, const policy::Gpu& policy = kIgnore) {
  sources.gpus = "all";
  std::vector<std::string> out;
  for (const NamedRequirement& one : chosen(sources, policy).request.requirements) {
    out.push_back(one.name + ": " + one.text);
  }
  return out;
}

TEST(SourceRequirements, all_are_taken_but_jetpacks) {
  EXPECT_THAT(requirements(image({"NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla",
                                  "NVIDIA_REQUIRE_DRIVER=driver>=470", "NVIDIA_REQUIRE_EMPTY=",
                                  "NVIDIA_REQUIRE_JETPACK=csv-mounts=all"})),
              ElementsAre("NVIDIA_REQUIRE_CUDA: cuda>=12.4 brand=tesla",
                          "NVIDIA_REQUIRE_DRIVER: driver>=470"));
}

TEST(SourceRequirements, can_be_switched_off) {
  std::vector<std::string> wants = {"NVIDIA_REQUIRE_CUDA=cuda>=99"};
  for (const char* off : {"1", "true", "T"}) {
    Sources sources = image(wants);
    sources.typed = {std::string("NVIDIA_DISABLE_REQUIRE=") + off};
    EXPECT_THAT(requirements(sources), IsEmpty());
  }
  Sources sources = image(wants);
  sources.typed = {"NVIDIA_DISABLE_REQUIRE=no"};
  EXPECT_EQ(requirements(sources).size(), 1U);
  sources.typed = {"NVIDIA_REQUIRE_CUDA="};
  EXPECT_THAT(requirements(sources), IsEmpty());
  policy::Gpu policy;
  policy.requirements = false;
  EXPECT_THAT(requirements(image(wants), policy), IsEmpty());
}

TEST(SourceRequirements, an_old_image_has_the_one_of_its_version) {
  EXPECT_THAT(requirements(image({"CUDA_VERSION=8.0.61"})), ElementsAre("CUDA_VERSION: cuda>=8.0"));
  EXPECT_THAT(requirements(image({"CUDA_VERSION=new"})), IsEmpty());
}

// ---- features ----------------------------------------------------------------------------------

Features features(Sources sources, const policy::Gpu& policy) {
  sources.gpus = "all";
  return chosen(sources, policy).request.features;
}

TEST(SourceFeatures, open_devices_only_where_variables_grant_or_the_user_typed_them) {
  const std::vector<std::string> all = {"NVIDIA_GDS=enabled", "NVIDIA_MOFED=enabled",
                                        "NVIDIA_GDRCOPY=enabled", "NVIDIA_NVSWITCH=enabled",
                                        "NVIDIA_IMEX_CHANNELS=0,5"};
  EXPECT_EQ(features(image(all), kIgnore), Features{});
  Features expected;
  expected.gds = expected.mofed = expected.gdrcopy = expected.nvswitch = true;
  expected.imex_channels = {0, 5};
  EXPECT_EQ(features(image(all), kGrant), expected);
  Sources typed;
  typed.typed = all;
  EXPECT_EQ(features(typed, kIgnore), expected);
  typed.gpus = "all";
  EXPECT_EQ(chosen(typed, kIgnore).request.demanded.size(), all.size());
  Sources of_image = image(all);
  of_image.gpus = "all";
  EXPECT_THAT(chosen(of_image, kGrant).request.demanded, IsEmpty());
  EXPECT_EQ(features(image({"NVIDIA_GDS=1", "NVIDIA_MOFED=true"}), kGrant), Features{});
}

TEST(SourceFeatures, imex_takes_numbers_and_the_policy_can_refuse) {
  EXPECT_THAT(features(image({"NVIDIA_IMEX_CHANNELS=all"}), kGrant).imex_channels, IsEmpty());
  EXPECT_THAT(features(image({"NVIDIA_IMEX_CHANNELS=1,x"}), kGrant).imex_channels, ElementsAre(1U));
  policy::Gpu policy = kGrant;
  policy.imex_channels = false;
  EXPECT_THAT(features(image({"NVIDIA_IMEX_CHANNELS=1"}), policy).imex_channels, IsEmpty());
}

TEST(SourceFeatures, mig_rights_are_for_privileged_containers) {
  Sources sources = image({"NVIDIA_MIG_CONFIG_DEVICES=all", "NVIDIA_MIG_MONITOR_DEVICES=all"});
  sources.gpus = "all";
  EXPECT_EQ(line(sources, kGrant),
            "NVIDIA_MIG_CONFIG_DEVICES=all is for containers with "
            "CAP_SYS_ADMIN; try: leave NVIDIA_MIG_CONFIG_DEVICES out");
  EXPECT_FALSE(chosen(sources, kIgnore).request.features.mig_config);
  sources.privileged = true;
  Features got = chosen(sources, kGrant).request.features;
  EXPECT_TRUE(got.mig_config && got.mig_monitor);
  sources.image = {"NVIDIA_MIG_CONFIG_DEVICES=0"};
  EXPECT_FALSE(chosen(sources, kGrant).request.features.mig_config);
}

// ---- names -------------------------------------------------------------------------------------

TEST(ProgramName, is_the_last_part_of_argv0) {
  EXPECT_EQ(program_of("nvidia-docker"), Program::nvidia_docker);
  EXPECT_EQ(program_of("/usr/local/bin/nvidia-docker"), Program::nvidia_docker);
  EXPECT_EQ(program_of("./docker"), Program::docker);
  for (const char* name : {"berth", "", "/nvidia-docker/berth", "nvidia-docker2", "podman"}) {
    EXPECT_EQ(program_of(name), Program::berth) << name;
  }
}

Sources called_nvidia_docker(Sources sources) {
  sources.program = Program::nvidia_docker;
  return sources;
}

TEST(NvidiaDocker, has_asked_for_what_the_image_says) {
  EXPECT_EQ(chosen(called_nvidia_docker(image({"NVIDIA_VISIBLE_DEVICES=all"}))).request.want,
            Want::all);
  EXPECT_EQ(chosen(called_nvidia_docker(image({"CUDA_VERSION=8.0"}))).request.want, Want::all);
  Sources labelled;
  labelled.labels = {{"com.nvidia.volumes.needed", "nvidia_driver"}};
  EXPECT_EQ(chosen(called_nvidia_docker(labelled)).request.want, Want::all);
  EXPECT_FALSE(chosen(called_nvidia_docker({})).grants());
  EXPECT_FALSE(chosen(called_nvidia_docker(image({"NVIDIA_VISIBLE_DEVICES=void"}))).grants());
  labelled.program = Program::docker;
  EXPECT_FALSE(chosen(labelled).grants());
}

TEST(NvidiaDocker, nv_gpu_narrows) {
  Inventory machine = gpu_machine(4);
  Sources sources = called_nvidia_docker(image({"NVIDIA_VISIBLE_DEVICES=all"}));
  const std::pair<const char*, std::vector<uint32_t>> cases[] = {
      {"0,1", {0, 1}}, {"3 1", {3, 1}}, {"GPU-b2, 0", {2, 0}}, {" ", {0, 1, 2, 3}}};
  for (const auto& [value, indices] : cases) {
    sources.caller = {std::string("NV_GPU=") + value};
    auto many = select(chosen(sources).request, machine);
    ASSERT_TRUE(many.ok()) << value;
    std::vector<uint32_t> got;
    for (const Selected& one : *many) got.push_back(one.gpu->index);
    EXPECT_EQ(got, indices) << value;
  }
  sources.caller = {"NV_GPU=7"};
  EXPECT_EQ(to_line(select(chosen(sources).request, machine).error()),
            "NV_GPU=7: '7': no such GPU, this machine has 4 GPUs; try: berth gpu list");
  sources.caller = {"NV_GPU=0"};
  sources.gpus = "device=2";
  EXPECT_TRUE(select(chosen(sources).request, machine).ok());
}

TEST(NvidiaDocker, nobody_else_reads_nv_gpu) {
  Sources sources = flags("all");
  sources.caller = {"NV_GPU=0"};
  Choice choice = chosen(sources);
  EXPECT_THAT(choice.request.limits, IsEmpty());
  EXPECT_THAT(choice.verdicts, verdict("NV_GPU", false, "only nvidia-docker reads it"));
}

// ---- the scheduler -----------------------------------------------------------------------------

TEST(SourceJob, narrows_and_grants_as_the_policy_says) {
  Sources sources;
  sources.caller = {"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=2,3"};
  Choice choice = chosen(sources);
  EXPECT_EQ(choice.request.want, Want::all);
  EXPECT_TRUE(choice.by_scheduler_alone);
  ASSERT_EQ(choice.request.limits.size(), 1U);
  EXPECT_THAT(choice.request.translate, ElementsAre("CUDA_VISIBLE_DEVICES"));

  policy::Gpu policy;
  policy.scheduler = policy::Scheduler::limit;
  EXPECT_FALSE(chosen(sources, policy).grants());
  sources.gpus = "all";
  EXPECT_EQ(chosen(sources, policy).request.limits.size(), 1U);

  policy.scheduler = policy::Scheduler::ignore;
  choice = chosen(sources, policy);
  EXPECT_THAT(choice.request.limits, IsEmpty());
  EXPECT_THAT(choice.request.translate, IsEmpty());
  EXPECT_THAT(choice.verdicts, verdict("CUDA_VISIBLE_DEVICES of the Slurm job", false,
                                       "policy: gpu.scheduler is ignore"));
}

TEST(SourceJob, is_needed_for_the_callers_variable_to_mean_anything) {
  Sources sources = flags("all");
  sources.caller = {"CUDA_VISIBLE_DEVICES=2"};
  Choice choice = chosen(sources);
  EXPECT_THAT(choice.request.limits, IsEmpty());
  EXPECT_THAT(choice.request.translate, IsEmpty());
  EXPECT_THAT(choice.request.typed, IsEmpty());
}

TEST(SourceJob, none_opts_out_and_a_job_without_gpus_asks_for_nothing) {
  Sources sources = flags("none");
  sources.caller = {"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=2,3"};
  EXPECT_FALSE(chosen(sources).grants());
  sources.gpus.reset();
  sources.caller = {"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=NoDevFiles"};
  EXPECT_FALSE(chosen(sources).grants());
  sources.caller = {"SLURM_JOB_ID=1"};
  EXPECT_FALSE(chosen(sources).grants());
}

TEST(SourceJob, a_typed_value_stays_and_a_typed_name_is_translated) {
  Sources sources = flags("all");
  sources.caller = {"SLURM_JOB_ID=1", "CUDA_VISIBLE_DEVICES=2,3"};
  sources.typed = {"CUDA_VISIBLE_DEVICES=1"};
  Choice choice = chosen(sources);
  EXPECT_THAT(choice.request.translate, IsEmpty());
  EXPECT_THAT(choice.request.typed, ElementsAre("CUDA_VISIBLE_DEVICES=1"));
  EXPECT_THAT(choice.withdrawn, IsEmpty());
  sources.typed = {"CUDA_VISIBLE_DEVICES"};
  sources.inherited = {"CUDA_VISIBLE_DEVICES=2,3"};
  choice = chosen(sources);
  EXPECT_THAT(choice.request.translate, ElementsAre("CUDA_VISIBLE_DEVICES"));
  EXPECT_THAT(choice.request.typed, IsEmpty());
  EXPECT_THAT(choice.withdrawn, ElementsAre("CUDA_VISIBLE_DEVICES"));
}

TEST(Sources, a_name_stands_for_what_was_inherited_and_not_for_what_the_caller_has_now) {
  Sources sources = image({});
  sources.typed = {"NVIDIA_VISIBLE_DEVICES"};
  sources.caller = {"NVIDIA_VISIBLE_DEVICES=0"};
  EXPECT_FALSE(chosen(sources, kGrant).grants());
  sources.inherited = {"NVIDIA_VISIBLE_DEVICES=1"};
  EXPECT_THAT(chosen(sources, kGrant).request.devices, ElementsAre("1"));
}

TEST(SourceJob, an_images_own_selection_is_looked_at_only_beside_gpus) {
  Sources sources = image({"CUDA_VISIBLE_DEVICES=5"});
  EXPECT_THAT(chosen(sources).request.typed, IsEmpty());
  sources.gpus = "all";
  EXPECT_THAT(chosen(sources).request.typed, ElementsAre("CUDA_VISIBLE_DEVICES=5"));
}

TEST(Messages, name_who_asked) {
  Inventory machine = gpu_machine(2);
  EXPECT_EQ(
      to_line(
          select(chosen(image({"NVIDIA_VISIBLE_DEVICES=0,9"}), kGrant).request, machine).error()),
      "NVIDIA_VISIBLE_DEVICES=0,9: '9': no such GPU, this machine has 2 GPUs; try: berth gpu "
      "list");
}

TEST(Vendors, the_first_there_is_unless_the_request_names_one) {
  Inventory machine = gpu_machine(2);
  machine.gpus.push_back(make_gpu(Vendor::amd, 0));
  machine.gpus.back().uuid = "GPU-99";
  machine.gpus.back().pci_address = "0000:41:00.0";
  auto vendors = [&](const std::string& wish) {
    auto many = select(chosen(flags(wish)).request, machine);
    std::string out;
    if (!many.ok()) return to_line(many.error());
    for (const Selected& one : *many) out += std::string(vendor_name(one.gpu->vendor)) + " ";
    return out;
  };
  EXPECT_EQ(vendors("all"), "NVIDIA NVIDIA ");
  EXPECT_EQ(vendors("all,driver=amd"), "AMD ");
  EXPECT_EQ(vendors("device=GPU-99"), "AMD ");
  EXPECT_EQ(vendors("device=0000:41:00.0"), "AMD ");
  EXPECT_EQ(vendors("device=0000:11:00.0"), "NVIDIA ");
  EXPECT_EQ(vendors("all,driver=intel"), "this machine has no Intel GPU; try: berth gpu list");
  EXPECT_EQ(vendors("device=1,driver=amd"),
            "--gpus device=1: no such GPU, this machine has 1 GPU; try: berth gpu list");
}

}  // namespace
}  // namespace berth::gpu
