// SPDX-License-Identifier: Apache-2.0
#include "runtime/cgroup/stats.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/events.hpp"

namespace berth::runtime {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

std::string text(json::Array array) {
  return json::dump(json::Value(std::move(array)));
}
std::string text(json::Object object) {
  return json::dump(json::Value(std::move(object)));
}

TEST(Stats, counters) {
  EXPECT_THAT(read_counters("cache 12\nodd\nthree words here\nnegative -1\nrss 0\n"),
              ElementsAre(Pair("cache", 12u), Pair("rss", 0u)));
  EXPECT_THAT(read_counters(""), IsEmpty());
}

TEST(Stats, blkio_lines_without_the_sum) {
  EXPECT_EQ(text(read_blkio("8:0 Read 4096\n8:16 12\nTotal 4096\n8:0 Write x\nodd\n")),
            R"([{"major":8,"minor":0,"op":"Read","value":4096},)"
            R"({"major":8,"minor":16,"value":12}])");
}

TEST(Stats, io_stat_as_reads_and_writes) {
  constexpr std::string_view kTable =
      "8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n254:0\nodd rbytes=1\n";
  EXPECT_EQ(text(read_io_stat(kTable, "rbytes", "wbytes")),
            R"([{"major":8,"minor":0,"op":"Read","value":10},)"
            R"({"major":8,"minor":0,"op":"Write","value":20}])");
}

TEST(Stats, pressure) {
  EXPECT_EQ(text(read_pressure("some avg10=1.50 avg60=0.00 avg300=0.00 total=7\nfull\n")),
            R"({"some":{"avg10":1.5,"avg60":0,"avg300":0,"total":7}})");
}

TEST(Stats, without_a_cgroup_nothing_is_known) {
  EXPECT_EQ(text(stats_of({})),
            R"({"cpu":{"throttling":{}},"cpuset":{},"memory":{},"pids":{},"blkio":{},)"
            R"("hugetlb":{},"intel_rdt":{},"network_interfaces":null})");
}

TEST(Events, durations_as_go_writes_them) {
  using std::chrono::milliseconds;
  EXPECT_EQ(*read_duration("5s"), milliseconds(5000));
  EXPECT_EQ(*read_duration("1m30s"), milliseconds(90000));
  EXPECT_EQ(*read_duration("250ms"), milliseconds(250));
  EXPECT_EQ(*read_duration("1.5h"), milliseconds(5400000));
  for (const char* wrong : {"", "5", "0s", "0", "-1s", "5x", "s", "1e9s", "99999999999h", "5s "}) {
    EXPECT_FALSE(read_duration(wrong).ok()) << wrong;
  }
  EXPECT_EQ(to_line(read_duration("5").error()), "expected a duration such as 5s, got '5'");
}

}  // namespace
}  // namespace berth::runtime
