// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/step.hpp"

#include <gtest/gtest.h>

namespace berth::engine {
namespace {

SlurmStep named(std::string_view name, bool of_job) {
  SlurmStep step;
  step.job = "12.0";
  step.of_job = of_job;
  EXPECT_TRUE(step.asked.take(slurm::Key::name, name).ok());
  return step;
}

TEST(SlurmStep, images_are_written_as_enroot_has_them) {
  EXPECT_EQ(slurm_reference("debian:12"), "debian:12");
  EXPECT_EQ(slurm_reference("nvcr.io#nvidia/cuda:13"), "nvcr.io/nvidia/cuda:13");
  EXPECT_EQ(slurm_reference("docker://nvcr.io#nvidia/cuda:13"), "nvcr.io/nvidia/cuda:13");
  EXPECT_EQ(slurm_reference("$oauthtoken@nvcr.io#nvidia/cuda:13"), "nvcr.io/nvidia/cuda:13");
  EXPECT_EQ(slurm_reference("debian@sha256:12"), "debian@sha256:12");
}

TEST(SlurmStep, a_container_that_runs_is_joined_unless_its_name_says_otherwise) {
  EXPECT_EQ(joined_by(SlurmStep()), "");
  EXPECT_EQ(joined_by(named("web", false)), "pyxis_web");
  EXPECT_EQ(joined_by(named("web:exec", false)), "pyxis_web");
  EXPECT_EQ(joined_by(named("web", true)), "pyxis_12_web");
  EXPECT_EQ(joined_by(named("web:create", false)), "");
  EXPECT_EQ(joined_by(named("web:no_exec", false)), "");
}

}  // namespace
}  // namespace berth::engine
