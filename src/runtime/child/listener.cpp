// SPDX-License-Identifier: Apache-2.0
#include "runtime/child/listener.hpp"

#include "base/text.hpp"
#include "json/value.hpp"

namespace berth::runtime {
namespace {

std::string process_state(const oci::Seccomp& profile, const State& state, std::string_view status,
                          pid_t pid) {
  json::Object object;
  object.emplace_back("ociVersion", state.oci_version);
  object.emplace_back("fds", json::Array{json::Value("seccompFd")});
  object.emplace_back("pid", int64_t{pid});
  object.emplace_back("metadata", profile.listener_metadata);
  object.emplace_back("state", public_state_value(state, status));
  return json::dump(json::Value(std::move(object)));
}

}  // namespace

Result<void> pass_listener(const plan::LoadSeccomp& step, const State& state,
                           std::string_view status, const Child& child, int64_t number) {
  const std::string& path = step.profile.listener_path;
  std::string context = "cannot pass the seccomp listener to " + quote(path);
  sys::Fd listener =
      TRY_CTX(sys::take_descriptor(child.process.pidfd(), static_cast<int>(number)), context);
  std::string text = process_state(step.profile, state, status, child.process.pid());
  TRY_CTX(hand_over(path, listener, text), context);
  return child.channel.acknowledge_listener();
}

}  // namespace berth::runtime
