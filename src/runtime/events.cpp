// SPDX-License-Identifier: Apache-2.0
#include "runtime/events.hpp"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.hpp"
#include "json/value.hpp"
#include "runtime/cgroup/files.hpp"
#include "runtime/cgroup/stats.hpp"
#include "runtime/state/find.hpp"
#include "sys/fd/notify.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/process/stream.hpp"

namespace berth::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string event(const std::string& type, const std::string& id, json::Object data = {}) {
  json::Object object{{"type", type}, {"id", id}};
  if (!data.empty()) object.emplace_back("data", std::move(data));
  return json::dump(json::Value(std::move(object))) + "\n";
}

/// Notices when the kernel has no memory left for a container.
class OomWatch {
 public:
  static Result<OomWatch> open(CgroupSet cgroups);

  /// The descriptor to poll; -1 if there is nothing to watch.
  int fd() const { return fd_ ? fd_.get() : -1; }
  /// The number of events since the last call.
  uint64_t take();

 private:
  // The file disappears with the container.
  uint64_t kills() const { return oom_kills(cgroups_).value_or(seen_); }

  bool is_v2_ = false;
  sys::Fd fd_;
  sys::Fd file_;  ///< memory.oom_control, for which the counter is registered
  CgroupSet cgroups_;
  uint64_t seen_ = 0;
};

Result<OomWatch> OomWatch::open(CgroupSet cgroups) {
  OomWatch watch;
  watch.cgroups_ = std::move(cgroups);
  watch.is_v2_ = watch.cgroups_.is_v2("memory");
  const sys::Fd* directory = watch.cgroups_.directory("memory");
  if (directory == nullptr) return watch;
  if (watch.is_v2_) {
    auto file = sys::watch_file(sys::fd_path(*directory) + "/memory.events");
    // The controller may not be available to us; then memory is not limited.
    if (!file.ok() && file.error().kind == Kind::not_found) return watch;
    watch.fd_ = TRY(std::move(file));
    watch.seen_ = watch.kills();
    return watch;
  }
  // cgroup-v1/memory.rst "OOM Control"
  watch.file_ = TRY(sys::open_at(*directory, "memory.oom_control", O_RDONLY));
  watch.fd_ = TRY(sys::make_event_counter());
  TRY(write_cgroup_file(*directory, "cgroup.event_control",
                        std::to_string(watch.fd_.get()) + " " + std::to_string(watch.file_.get())));
  return watch;
}

uint64_t OomWatch::take() {
  if (!fd_) return 0;
  alignas(uint64_t) std::array<char, 4096> buffer{};
  auto size = sys::read_some(fd_, buffer, "the events of memory");
  if (is_v2_) {
    uint64_t before = std::exchange(seen_, kills());
    return seen_ - before;
  }
  if (!size.ok() || *size < sizeof(uint64_t)) return 0;
  // The kernel raises the counter also when the cgroup is removed.
  auto there = sys::stat_entry(*cgroups_.directory("memory"), "memory.oom_control");
  return there.ok() && *there ? 1 : 0;
}

Result<Found> find_live(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status == Status::stopped || found.status == Status::creating) {
    return make_error(Kind::usage, "container not running: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  return found;
}

Result<void> report_oom(OomWatch& watch, const std::string& id, const EventSink& sink) {
  for (uint64_t count = watch.take(); count > 0; --count) TRY(sink(event("oom", id)));
  return {};
}

}  // namespace

Result<void> report_stats(const Store& store, const std::string& id, const EventSink& sink) {
  Found found = TRY(find_live(store, id));
  return sink(event("stats", id, stats_of(found.cgroups)));
}

Result<void> follow_events(const Store& store, const std::string& id, milliseconds interval,
                           const EventSink& sink) {
  Found found = TRY(find_live(store, id));
  sys::Process process = TRY(first_process(found.state));
  sys::Fd pidfd = TRY(sys::duplicate(process.pidfd()));
  process.release();  // not our child
  OomWatch watch = TRY(OomWatch::open(std::move(found.cgroups)));
  for (auto due = Clock::now() + interval;;) {
    auto left = std::chrono::ceil<milliseconds>(due - Clock::now());
    std::vector<pollfd> entries{{pidfd.get(), POLLIN, 0}, {watch.fd(), POLLIN, 0}};
    TRY(sys::poll(entries, std::max(left, milliseconds(0))));
    if (entries[1].revents != 0 || entries[0].revents != 0) TRY(report_oom(watch, id, sink));
    if (entries[0].revents != 0) return {};
    if (Clock::now() < due) continue;
    // An update may have moved the container into another hierarchy.
    CgroupSet cgroups = TRY(cgroups_of(found.state));
    TRY(sink(event("stats", id, stats_of(cgroups))));
    if (watch.fd() < 0) watch = TRY(OomWatch::open(std::move(cgroups)));
    due = Clock::now() + interval;
  }
}

Result<milliseconds> read_duration(std::string_view text) {
  auto wrong = [&] {
    return make_error(Kind::usage, "expected a duration such as 5s, got " + quote(text));
  };
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}};
  constexpr double kMost = 1e12;
  double sum = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t number = std::min(rest.find_first_not_of("0123456789."), rest.size());
    size_t unit = std::min(rest.find_first_of("0123456789.", number), rest.size());
    auto value = parse_decimal(rest.substr(0, number));
    std::string_view name = rest.substr(number, unit - number);
    const auto* known =
        std::ranges::find_if(kUnits, [&](const auto& one) { return one.first == name; });
    if (!value || known == std::end(kUnits)) return wrong();
    sum += *value * known->second;
    rest.remove_prefix(unit);
  }
  if (sum < 1 || sum > kMost) return wrong();
  return milliseconds(static_cast<int64_t>(sum));
}

}  // namespace berth::runtime
