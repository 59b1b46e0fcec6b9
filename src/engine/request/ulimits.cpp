// SPDX-License-Identifier: Apache-2.0
#include "engine/request/ulimits.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/user/credentials.hpp"

namespace berth::engine {
namespace {

constexpr std::array<std::pair<std::string_view, int>, 16> kResources = {
    {{"as", RLIMIT_AS},
     {"core", RLIMIT_CORE},
     {"cpu", RLIMIT_CPU},
     {"data", RLIMIT_DATA},
     {"fsize", RLIMIT_FSIZE},
     {"locks", RLIMIT_LOCKS},
     {"memlock", RLIMIT_MEMLOCK},
     {"msgqueue", RLIMIT_MSGQUEUE},
     {"nice", RLIMIT_NICE},
     {"nofile", RLIMIT_NOFILE},
     {"nproc", RLIMIT_NPROC},
     {"rss", RLIMIT_RSS},
     {"rtprio", RLIMIT_RTPRIO},
     {"rttime", RLIMIT_RTTIME},
     {"sigpending", RLIMIT_SIGPENDING},
     {"stack", RLIMIT_STACK}}};

/// The value for setrlimit(2), where -1 (no limit) is the largest number.
uint64_t value_of(int64_t limit) {
  return static_cast<uint64_t>(limit);
}

std::string text_of(int64_t limit) {
  return limit == -1 ? "-1" : std::to_string(limit);
}

std::string flag_of(const Ulimit& ulimit) {
  std::string flag = "--ulimit " + ulimit.name + "=" + text_of(ulimit.soft);
  return ulimit.hard == ulimit.soft ? flag : flag + ":" + text_of(ulimit.hard);
}

Result<bool> may_raise_limits(const Context& context) {
  sys::CapabilitySets held = TRY(sys::capabilities());
  return context.identity == Identity::root && (held.effective >> CAP_SYS_RESOURCE & 1) != 0;
}

constexpr const char* kOomScore = "/proc/self/oom_score_adj";

Result<void> set_own_oom_score(const std::string& score) {
  sys::Fd file = TRY(sys::open_at(sys::cwd(), kOomScore, O_WRONLY));
  return sys::write_all(file, score, kOomScore);
}

}  // namespace

Result<std::vector<Ulimit>> permitted_ulimits(const Context& context,
                                              const std::vector<Ulimit>& asked) {
  std::vector<Ulimit> given = asked;
  bool root = context.identity == Identity::root;
  if (TRY(may_raise_limits(context))) return given;
  for (Ulimit& ulimit : given) {
    auto resource =
        std::ranges::find(kResources, ulimit.name, &std::pair<std::string_view, int>::first);
    if (resource == kResources.end()) continue;
    uint64_t most = TRY(sys::hard_limit(resource->second));
    if (value_of(ulimit.hard) <= most) continue;
    std::string what = flag_of(ulimit) + ": the hard limit here is " + std::to_string(most);
    if (root) {
      return make_error(
          Kind::denied, what + ", and this process may not raise it",
          "CAP_SYS_RESOURCE for it, or --ulimit " + ulimit.name + "=" + std::to_string(most));
    }
    context.log.warn(what + ", using that instead");
    ulimit.hard = static_cast<int64_t>(most);
    if (value_of(ulimit.soft) > most) ulimit.soft = ulimit.hard;
  }
  return given;
}

Result<std::vector<std::string>> limits_for_buildah(const Context& context,
                                                    const std::vector<std::string>& asked) {
  constexpr uint64_t kOfBuildah = 1048576;
  std::vector<std::string> out;
  if (TRY(may_raise_limits(context))) return out;
  for (const auto& [name, resource] :
       {std::pair{"nofile", RLIMIT_NOFILE}, {"nproc", RLIMIT_NPROC}}) {
    uint64_t most = TRY(sys::hard_limit(resource));
    bool said = std::ranges::any_of(asked, [&, prefix = std::string(name) + "="](const auto& one) {
      return one.starts_with(prefix);
    });
    if (most >= kOfBuildah || said) continue;
    std::string number = std::to_string(most);
    out.push_back(std::string(name) + "=" + number + ":" + number);
  }
  return out;
}

Result<std::optional<int64_t>> permitted_oom_score(const Context& context,
                                                   std::optional<int64_t> asked) {
  if (!asked) return asked;
  const std::string now = std::string(trim(TRY(sys::read_file(sys::cwd(), kOomScore))));
  // The kernel does not report the minimum, so try to set the score. Raising it again always works.
  if (set_own_oom_score(std::to_string(*asked)).ok()) {
    TRY(set_own_oom_score(now));
    return asked;
  }
  std::string what = "--oom-score-adj " + std::to_string(*asked) + ": it is " + now + " here";
  if (context.identity == Identity::root) {
    return make_error(Kind::denied, what + ", and this process may not lower it",
                      "CAP_SYS_RESOURCE for it, or --oom-score-adj " + now);
  }
  context.log.warn(what + ", using that instead");
  return parse_i64(now);
}

}  // namespace berth::engine
