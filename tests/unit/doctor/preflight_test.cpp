// SPDX-License-Identifier: Apache-2.0
#include "doctor/preflight.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace berth::doctor {
namespace {

using ::testing::HasSubstr;

Finding ask(std::string_view id, const PreflightFacts& facts) {
  for (const Answer& answer : judge_preflight(facts)) {
    if (answer.id == id) return answer.finding;
  }
  ADD_FAILURE() << "no check " << id;
  return {};
}

/// A node of a cluster on which nothing is wrong.
PreflightFacts good() {
  PreflightFacts facts;
  facts.fabric = {"infiniband"};
  facts.gpus = true;
  facts.memlock = ~uint64_t{0};
  facts.shm_bytes = uint64_t{64} << 30;
  facts.verbs = {"/dev/infiniband/uverbs0", "/dev/infiniband/uverbs1"};
  facts.gdr_module = facts.gdr_node = true;
  facts.slurm = true;
  facts.pmix = {"/usr/lib64/slurm/mpi_pmix.so"};
  return facts;
}

TEST(Preflight, finds_nothing_wrong_with_a_good_node) {
  for (const Answer& answer : judge_preflight(good())) {
    EXPECT_TRUE(answer.finding.status == Status::ok ||
                answer.finding.status == Status::not_applicable)
        << answer.id << ": " << answer.finding.cause;
  }
}

TEST(Preflight, asks_for_locked_memory_where_there_is_rdma) {
  PreflightFacts facts = good();
  facts.memlock = 8 << 20;
  EXPECT_EQ(ask("node.memlock", facts).status, Status::warning);
  EXPECT_THAT(ask("node.memlock", facts).cause, HasSubstr("may be locked"));
  facts.fabric.clear();
  facts.verbs.clear();
  EXPECT_EQ(ask("node.memlock", facts).status, Status::not_applicable);
}

TEST(Preflight, names_devices_that_are_missing_or_closed) {
  PreflightFacts facts = good();
  facts.closed = {"/dev/infiniband/uverbs1"};
  EXPECT_EQ(ask("node.rdma-devices", facts).cause,
            "this user may not open '/dev/infiniband/uverbs1'");
  facts.verbs.clear();
  facts.closed.clear();
  EXPECT_EQ(ask("node.rdma-devices", facts).cause,
            "/sys has infiniband, /dev/infiniband has no device: NCCL and MPI fall back to TCP");
}

TEST(Preflight, asks_for_a_plugin_where_nccl_knows_no_way) {
  PreflightFacts facts = good();
  EXPECT_EQ(ask("node.network-plugin", facts).status, Status::not_applicable);
  facts.fabric = {"efa"};
  EXPECT_EQ(ask("node.network-plugin", facts).status, Status::warning);
  facts.plugins = {"/opt/amazon/ofi-nccl/lib/libnccl-net.so"};
  EXPECT_EQ(ask("node.network-plugin", facts).status, Status::ok);
}

TEST(Preflight, tells_of_what_is_small_or_absent) {
  PreflightFacts facts = good();
  facts.shm_bytes = 64 << 20;
  facts.topology = "/etc/topology.xml";
  facts.xpmem_module = true;
  facts.gdr_module = facts.gdr_node = false;
  facts.pmix.clear();
  for (const char* id :
       {"node.shared-memory", "node.topology-file", "node.xpmem", "node.gdrcopy", "node.pmix"}) {
    EXPECT_EQ(ask(id, facts).status, Status::warning) << id;
    EXPECT_FALSE(ask(id, facts).remedy.empty()) << id;
  }
  facts.shm_bytes.reset();
  EXPECT_EQ(ask("node.shared-memory", facts).status, Status::warning);
}

TEST(Memlock, is_the_soft_limit) {
  const std::string head = "Limit                     Soft Limit           Hard Limit\n";
  EXPECT_EQ(
      parse_memlock(head + "Max locked memory         8388608              unlimited bytes\n"),
      uint64_t{8388608});
  EXPECT_EQ(parse_memlock("Max locked memory         unlimited            unlimited  bytes\n"),
            ~uint64_t{0});
  EXPECT_EQ(parse_memlock(head), std::nullopt);
  EXPECT_EQ(parse_memlock("Max locked memory"), std::nullopt);
}

}  // namespace
}  // namespace berth::doctor
