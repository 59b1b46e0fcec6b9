// SPDX-License-Identifier: Apache-2.0
#include "gpu/ledger/outside.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "../driver_tree.hpp"
#include "gpu/ledger/chooser.hpp"
#include "sys/machine/host.hpp"
#include "unit/gpu/grant/machine.hpp"
#include "unit/gpu/ledger/seen.hpp"

namespace berth::gpu {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Computing computing(std::string key, int64_t pid) {
  return {std::move(key), pid, static_cast<uint64_t>(pid) * 10};
}

KnownLease with_keys(KnownLease lease, std::vector<std::string> keys) {
  lease.lease.keys = std::move(keys);
  return lease;
}

std::vector<std::string> texts(const std::vector<Holding>& held) {
  std::vector<std::string> out;
  for (const Holding& one : held) out.push_back(one.key + " " + one.holder);
  return out;
}

Processes machine_with_one_container() {
  Processes all;
  all.add(50, 1, 0, {"/"});      // a container's first process
  all.add(51, 50, 0, {"/"});     // what computes in it
  all.add(60, 1, kUser, {"/"});  // nobody's container
  return all;
}

TEST(Outside, is_what_computes_in_no_container_that_has_the_gpu) {
  Processes all = machine_with_one_container();
  Outside outside({computing(kZero, 51), computing(kZero, 60), computing(kOne, 60)}, all.view());
  const std::string stranger = " process 60 'python3' of user 1000, which has no lease";
  EXPECT_THAT(texts(outside.holdings({with_keys(known_lease("one", 50), {kZero})})),
              ElementsAre(kZero + stranger, kOne + stranger));
}

TEST(Outside, is_also_a_container_that_computes_where_it_has_no_lease) {
  Processes all = machine_with_one_container();
  Outside outside({computing(kOne, 51)}, all.view());
  EXPECT_THAT(texts(outside.holdings({with_keys(known_lease("one", 50), {kZero})})),
              ElementsAre(std::string(kOne) + " process 51 'python3' of root, which has no lease"));
}

TEST(Outside, counts_nobody_who_has_ended) {
  Processes all = machine_with_one_container();
  Computing before = computing(kZero, 60);
  before.start_time = 7;  // the number is another's by now
  Outside outside({before, computing(kZero, 99)}, all.view());
  EXPECT_THAT(outside.holdings({}), IsEmpty());
}

TEST(Outside, counts_those_who_are_hidden_from_us) {
  Outside outside({{kZero, 99, 0}}, Processes().view());
  EXPECT_THAT(texts(outside.holdings({})),
              ElementsAre(std::string(kZero) + " process 99, which has no lease"));
}

Inventory amd_machine(const testing::DriverTree& tree) {
  Inventory inventory = gpu_machine(2, Vendor::amd);
  inventory.driver_root = tree.root();
  inventory.gpus[0].pci_address = "0000:29:00.0";
  inventory.gpus[1].pci_address = "0000:2c:00.0";
  return inventory;
}

void compute_by_rocm(const testing::DriverTree& tree, const std::string& pid,
                     const std::string& node) {
  testing::write_text(tree.root() + "/sys/class/kfd/kfd/proc/" + pid + "/queues/0/gpuid", node);
}

std::vector<std::string> amd_computing(const Inventory& inventory, const Processes& all) {
  std::vector<Computing> found;
  add_amd_computing(inventory, all.view().see, found);
  std::vector<std::string> out;
  for (const Computing& one : found) {
    EXPECT_EQ(one.start_time, static_cast<uint64_t>(one.pid) * 10);
    out.push_back(one.key + " " + std::to_string(one.pid));
  }
  return out;
}

TEST(AmdComputing, is_of_gpus_of_the_inventory_and_of_processes_that_are_there) {
  testing::DriverTree tree("amd");
  Processes all = machine_with_one_container();
  Inventory inventory = amd_machine(tree);
  compute_by_rocm(tree, "60", "4002");
  compute_by_rocm(tree, "51", "4003");                           // on a GPU that is not ours
  compute_by_rocm(tree, std::to_string((1 << 22) + 7), "4001");  // of another pid namespace
  EXPECT_THAT(amd_computing(inventory, all), ElementsAre("0000:2c:00.0 60"));
  for (Gpu& gpu : inventory.gpus) gpu.vendor = Vendor::intel;
  EXPECT_THAT(amd_computing(inventory, all), IsEmpty());
}

TEST(AmdComputing, is_of_a_partition_where_that_is_known) {
  testing::DriverTree tree("amd", "--partitions 2");
  Processes all = machine_with_one_container();
  Inventory inventory = amd_machine(tree);
  inventory.gpus[0].partitions = {{1, {}}};  // the other is hidden
  compute_by_rocm(tree, "60", "4001");
  EXPECT_THAT(amd_computing(inventory, all), IsEmpty());
  compute_by_rocm(tree, "60", "4002");
  EXPECT_THAT(amd_computing(inventory, all), ElementsAre("0000:29:00.0/1 60"));
}

struct Given {
  Outside outside;
  bool exclusive = false;
  Holders holders = {};

  Result<std::vector<std::string>> keys(uint64_t count) const {
    Inventory inventory = gpu_machine(2);
    Request request;
    request.want = Request::Want::count;
    request.count = count;
    request.exclusive = exclusive;
    Chooser chooser(std::move(request), inventory, {});
    chooser.count(outside);
    Lease lease;
    lease.group = "g";
    TRY(chooser.choose(holders, lease));
    return lease.keys;
  }
};

TEST(Outside, gpus_are_chosen_after_those_that_nobody_has) {
  Processes all = machine_with_one_container();
  Given given{Outside({computing(kZero, 60)}, all.view())};
  EXPECT_EQ(given.keys(1).value(), (std::vector<std::string>{kOne}));
  EXPECT_EQ(given.keys(2).value().size(), 2u);
}

TEST(Outside, gpus_come_after_those_that_many_share) {
  Processes all = machine_with_one_container();
  Holders holders;
  for (const char* name : {"one", "two"}) {
    holders.leases.push_back(with_keys(known_lease(name, 50), {kOne}));
    holders.leases.back().lease.group = name;
  }
  Given given{Outside({computing(kZero, 60)}, all.view())};
  given.holders = holders;
  EXPECT_EQ(given.keys(1).value(), (std::vector<std::string>{kOne}));
}

TEST(Outside, gpus_are_nobodys_own) {
  Processes all = machine_with_one_container();
  Given given{Outside({computing(kZero, 60)}, all.view()), true};
  EXPECT_EQ(given.keys(1).value(), (std::vector<std::string>{kOne}));
  auto refused = given.keys(2);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().what,
            "--gpus 2: 1 of 2 GPUs free: GPU 0 is held by process 60 'python3' of user 1000, "
            "which has no lease");
  EXPECT_EQ(refused.error().hint, "--wait-gpus, or berth gpu top");
}

TEST(Outside, does_not_matter_to_who_shares_and_has_no_choice) {
  Inventory inventory = gpu_machine(2);
  auto minds = [&](Request::Want want, uint64_t count, bool exclusive) {
    Request request;
    request.want = want;
    request.count = count;
    request.exclusive = exclusive;
    Chooser chooser(std::move(request), inventory, {});
    return chooser.minds_others(chooser.wanted().value());
  };
  EXPECT_FALSE(minds(Request::Want::all, 0, false));
  EXPECT_FALSE(minds(Request::Want::count, 2, false));
  EXPECT_FALSE(minds(Request::Want::none, 0, true));
  EXPECT_TRUE(minds(Request::Want::count, 1, false));
  EXPECT_TRUE(minds(Request::Want::all, 0, true));
  inventory = gpu_machine(2, Vendor::amd);
  EXPECT_TRUE(minds(Request::Want::count, 1, false));
  inventory = gpu_machine(2, Vendor::intel);
  EXPECT_FALSE(minds(Request::Want::count, 1, false)) << "nobody tells";
}

class ComputingFile : public ::testing::Test {
 protected:
  std::string state() const { return scratch_.path() + "/state"; }
  std::string file() const { return state() + "/gpu/computing.json"; }
  /// As if the driver had told it then.
  void set_time(std::chrono::nanoseconds told) const {
    std::ifstream in(file());
    std::string text{std::istreambuf_iterator<char>(in), {}};
    std::regex number("\"told\": *[0-9]+");
    ASSERT_TRUE(std::regex_search(text, number));
    std::ofstream(file()) << std::regex_replace(text, number,
                                                "\"told\":" + std::to_string(told.count()));
  }

  testing::Scratch scratch_;
  const Asked asked_{"/", 7, {kZero, kOne}};
  const std::vector<Computing> processes_ = {computing(kZero, 60)};
};

TEST_F(ComputingFile, is_believed_for_its_driver_and_its_gpus) {
  EXPECT_EQ(read_computing(state(), asked_), std::nullopt);
  ASSERT_TRUE(write_computing(state(), asked_, processes_).ok());
  EXPECT_EQ(read_computing(state(), asked_), processes_);
  Asked other = asked_;
  other.driver_root = "/other";
  EXPECT_EQ(read_computing(state(), other), std::nullopt);
  other = asked_;
  other.pid_space = 8;
  EXPECT_EQ(read_computing(state(), other), std::nullopt);
  other = asked_;
  other.gpus = {kOne};
  EXPECT_EQ(read_computing(state(), other), processes_);
  other.gpus = {kOne, "0000:12:00.0"};
  EXPECT_EQ(read_computing(state(), other), std::nullopt) << "another job's";
}

TEST_F(ComputingFile, is_not_believed_when_old_or_of_the_future) {
  ASSERT_TRUE(write_computing(state(), asked_, processes_).ok());
  set_time(sys::since_boot() - 1s);
  EXPECT_EQ(read_computing(state(), asked_), processes_);
  for (auto age : {6s, -1s}) {
    set_time(sys::since_boot() - age);
    EXPECT_EQ(read_computing(state(), asked_), std::nullopt);
  }
}

TEST_F(ComputingFile, is_not_believed_where_others_could_write_it) {
  ASSERT_TRUE(write_computing(state(), asked_, processes_).ok());
  std::filesystem::permissions(file(), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  EXPECT_EQ(read_computing(state(), asked_), std::nullopt);
}

}  // namespace
}  // namespace berth::gpu
