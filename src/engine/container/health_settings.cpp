// SPDX-License-Identifier: Apache-2.0
#include "engine/container/health_settings.hpp"

#include <algorithm>

#include "base/time.hpp"
#include "engine/state/directory.hpp"
#include "monitor/protocol.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxHealthFile = size_t{1} << 20;

/// ["CMD", arguments…], or ["CMD-SHELL", a command line for the image's shell].
std::vector<std::string> command_of(const std::vector<std::string>& test,
                                    const oci::ContainerDefaults& image) {
  if (test.size() < 2) return {};
  if (test[0] == "CMD") return {test.begin() + 1, test.end()};
  if (test[0] != "CMD-SHELL") return {};
  std::vector<std::string> command = image.shell;
  if (command.empty()) command = {"/bin/sh", "-c"};
  command.push_back(test[1]);
  return command;
}

/// Each check starts a program on this machine, so an image's checks have a minimum interval.
constexpr int64_t kLeastOfImage = kNanosecondsPerSecond;

void choose(int64_t& value, int64_t flag, int64_t usual, int64_t least_of_image = 0) {
  if (value <= 0) value = usual;
  value = std::max(value, least_of_image);
  if (flag != 0) value = flag;
}

bool is_too_fast(int64_t value, int64_t flag) {
  return flag == 0 && value > 0 && value < kLeastOfImage;
}

}  // namespace

std::optional<oci::Healthcheck> health_check(const Health& flags,
                                             const oci::ContainerDefaults& image) {
  if (flags.off) return std::nullopt;
  oci::Healthcheck check = image.healthcheck.value_or(oci::Healthcheck());
  if (flags.command) check.test = {"CMD-SHELL", *flags.command};
  check.test = command_of(check.test, image);
  if (check.test.empty()) return std::nullopt;
  choose(check.interval, flags.interval, 30 * kNanosecondsPerSecond, kLeastOfImage);
  choose(check.timeout, flags.timeout, 30 * kNanosecondsPerSecond, kLeastOfImage);
  choose(check.start_period, flags.start_period, 0);
  choose(check.retries, flags.retries, 3);
  return check;
}

std::optional<std::string> slowed_check(const Health& flags, const oci::ContainerDefaults& image) {
  if (!image.healthcheck || !health_check(flags, image)) return std::nullopt;
  bool interval = is_too_fast(image.healthcheck->interval, flags.interval);
  if (!interval && !is_too_fast(image.healthcheck->timeout, flags.timeout)) return std::nullopt;
  return std::string("the image's health check has ") +
         (interval ? "an interval" : "a time limit") +
         " of less than a second, using 1s instead; --health-" +
         (interval ? "interval" : "timeout") + " may be less";
}

std::optional<json::Value> read_health(const Paths& paths, const std::string& id) {
  auto text = sys::read_file_if_exists(
      sys::cwd(), monitor_directory(paths, id) + "/" + monitor::kHealthFile, kMaxHealthFile);
  if (!text.ok() || !*text) return std::nullopt;
  auto value = json::parse(**text, monitor::kHealthFile);
  return value.ok() ? std::optional<json::Value>(std::move(*value)) : std::nullopt;
}

std::string health_status(const Paths& paths, const std::string& id) {
  auto health = read_health(paths, id);
  const json::Value* status = health ? health->find("Status") : nullptr;
  return status != nullptr && status->string() != nullptr ? *status->string() : std::string();
}

}  // namespace berth::engine
