// SPDX-License-Identifier: Apache-2.0
#include "gpu/grant/traits.hpp"

#include <gtest/gtest.h>

#include "gpu/grant/request.hpp"
#include "machine.hpp"

namespace berth::gpu {
namespace {

bool has(const Gpu& gpu, std::string_view text) {
  auto trait = parse_trait(text);
  EXPECT_TRUE(trait.ok()) << text << ": " << (trait.ok() ? "" : to_line(trait.error()));
  return trait.ok() && has_trait({&gpu}, *trait);
}

std::string fault(std::string_view text) {
  auto trait = parse_trait(text);
  return trait.ok() ? "" : to_line(trait.error());
}

Gpu h100() {
  Gpu gpu = make_gpu(Vendor::nvidia, 0);
  gpu.model = "NVIDIA H100 80GB HBM3";
  gpu.memory_bytes = uint64_t{81559} << 20;
  gpu.compute_capability = "9.0";
  gpu.numa_node = 1;
  return gpu;
}

TEST(Traits, of_a_model_are_found_in_its_name_whatever_stands_between_letters) {
  EXPECT_TRUE(has(h100(), "model=h100"));
  EXPECT_TRUE(has(h100(), "model=H100-80gb"));
  EXPECT_FALSE(has(h100(), "model=h200"));
  EXPECT_TRUE(has(h100(), "model!=h200"));
}

TEST(Traits, count_memory_as_vendors_name_it) {
  EXPECT_TRUE(has(h100(), "memory>=80G"));
  EXPECT_TRUE(has(h100(), "memory>=80GB"));
  EXPECT_FALSE(has(h100(), "memory>=80Gi"));
  EXPECT_TRUE(has(h100(), "memory<0.1T"));
}

TEST(Traits, compare_capabilities_by_their_numbers) {
  EXPECT_TRUE(has(h100(), "cc>=9.0"));
  EXPECT_TRUE(has(h100(), "cc>8.9"));
  EXPECT_FALSE(has(h100(), "cc>=10.0"));
  EXPECT_TRUE(has(h100(), "cc=9"));
}

TEST(Traits, name_a_numa_node) {
  EXPECT_TRUE(has(h100(), "numa=1"));
  EXPECT_FALSE(has(h100(), "numa=0"));
}

TEST(Traits, that_are_not_known_are_not_there) {
  Gpu unknown = make_gpu(Vendor::nvidia, 0);
  for (const char* text : {"model!=h200", "memory<80G", "cc<9.0", "numa!=0", "profile!=1g.10gb"}) {
    EXPECT_FALSE(has(unknown, text)) << text;
  }
}

TEST(Traits, of_a_slice_are_its_profile_and_its_own_memory) {
  Inventory machine = sliced_machine(1);
  machine.gpus[1].memory_bytes = uint64_t{80} << 30;
  machine.gpus[1].mig[0].profile = "1g.10gb";
  machine.gpus[1].mig[0].memory_bytes = uint64_t{10} << 30;
  Selected slice{&machine.gpus[1], &machine.gpus[1].mig[0]};
  EXPECT_TRUE(has_trait(slice, *parse_trait("profile=1g.10gb")));
  EXPECT_FALSE(has_trait(slice, *parse_trait("profile=2g.20gb")));
  EXPECT_FALSE(has_trait(slice, *parse_trait("memory>=40G")));
}

TEST(Traits, that_mean_nothing_are_refused_with_what_would) {
  EXPECT_EQ(fault("modell=h200"), "GPUs have no property 'modell'; try: did you mean 'model'?");
  EXPECT_EQ(fault("memory=40G"), "expected memory>=SIZE, such as memory>=40G, got 'memory=40G'");
  EXPECT_EQ(fault("memory>=40"), "expected memory>=SIZE, such as memory>=40G, got 'memory>=40'");
  EXPECT_EQ(fault("model>h100"), "expected model=NAME, got 'model>h100'");
  EXPECT_EQ(fault("cc>=new"), "expected a compute capability, such as cc>=9.0, got 'cc>=new'");
  EXPECT_EQ(fault("numa=-1"), "expected a NUMA node, such as numa=0, got 'numa=-1'");
}

TEST(Request, takes_traits_after_a_count) {
  auto request = parse_request("2,model=h200,memory>=40G,cc>=9.0");
  ASSERT_TRUE(request.ok()) << to_line(request.error());
  EXPECT_EQ(request->want, Request::Want::count);
  EXPECT_EQ(request->count, 2u);
  ASSERT_EQ(request->traits.size(), 3u);
  EXPECT_EQ(to_text(request->traits[1]), "memory>=40G");
}

TEST(Request, of_traits_alone_is_for_one) {
  auto request = parse_request("memory>=40G");
  ASSERT_TRUE(request.ok()) << to_line(request.error());
  EXPECT_EQ(request->count, 1u);
}

TEST(Request, of_another_containers_gpus_names_it_alone) {
  auto request = parse_request("from:web,capabilities=utility");
  ASSERT_TRUE(request.ok()) << to_line(request.error());
  EXPECT_EQ(request->want, Request::Want::container);
  EXPECT_EQ(request->from, "web");
  for (const char* text :
       {"from:", "from:a,from:b", "from:a,2", "from:a,device=0", "from:a,cc>=9"}) {
    EXPECT_FALSE(parse_request(text).ok()) << text;
  }
}

TEST(Request, refuses_devices_with_traits_and_parts_of_gpus) {
  EXPECT_FALSE(parse_request("device=0,model=h200").ok());
  auto half = parse_request("1.5");
  ASSERT_FALSE(half.ok());
  EXPECT_EQ(to_line(half.error()),
            "--gpus 1.5: GPUs are given whole, or as a MIG slice that exists; try: --gpus "
            "1,profile=1g.10gb for a MIG slice");
}

}  // namespace
}  // namespace berth::gpu
