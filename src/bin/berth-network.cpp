// SPDX-License-Identifier: Apache-2.0
// berth-network: sets up the network of one container, and removes it. A hook that berth puts into
// the config of a container (docs/decisions/0090): the container's state comes on standard input, a
// failure goes to standard error as one line of JSON.
//
//   berth-network attach DIRECTORY REQUEST           createRuntime; a network::Request as JSON
//   berth-network detach DIRECTORY                   poststop
//   berth-network connect DIRECTORY ID ATTACHMENT    called by berth, for a running container
//   berth-network disconnect DIRECTORY ID NETWORK    called by berth; "": the unnamed bridge
//   berth-network keep DIRECTORY ID                  waits until the container of a user has ended
//   berth-network provide DIRECTORY REQUEST          called by berth: starts a process that holds
//                                                    the network namespace of a user's bridges
//   berth-network hold DIRECTORY REQUEST             is that process
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "json/fields.hpp"
#include "network/attach/holder.hpp"
#include "network/attach/serve.hpp"
#include "network/attach/user_mode.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/program.hpp"

namespace berth::network {
namespace {

constexpr size_t kMaxState = size_t{1} << 20;

Result<HookState> read_state() {
  sys::Fd in(STDIN_FILENO);
  auto text = sys::read_all(in, "standard input", kMaxState);
  in.release();  // stays open: a file that got its number would be the standard input of a helper
  std::string state = TRY(std::move(text));
  return parse_state(state);
}

Result<void> run(const std::vector<std::string>& words) {
  sys::set_umask(022);
  // Descriptors that the caller left open must not reach a helper.
  TRY(sys::close_on_exec_from(3));
  bool is_attach = words.size() == 4 && words[1] == "attach";
  bool is_detach = words.size() == 3 && words[1] == "detach";
  bool is_connect = words.size() == 5 && words[1] == "connect";
  bool is_disconnect = words.size() == 5 && words[1] == "disconnect";
  bool is_holding = words.size() == 4 && (words[1] == "provide" || words[1] == "hold");
  bool is_keep = words.size() == 4 && words[1] == "keep";
  if (is_attach) {
    auto request = TRY(json::read<Request>(words[3], "request"));
    HookState state = TRY(read_state());
    return attach(words[2], state, request);
  }
  if (is_detach) {
    HookState state = TRY(read_state());
    return detach(words[2], state.id);
  }
  if (is_connect) {
    auto wanted = TRY(json::read<Attachment>(words[4], "attachment"));
    return connect(words[2], words[3], wanted);
  }
  if (is_disconnect) return disconnect(words[2], words[3], words[4]);
  if (is_holding) {
    auto request = TRY(json::read<Request>(words[3], "request"));
    return words[1] == "hold" ? hold(words[2], request) : provide(words[2], request);
  }
  if (is_keep) return keep_until_end(words[2], words[3]);
  return make_error(Kind::usage, "berth-network is called by berth");
}

int fail(const Error& error) {
  std::string line = write_failure(error) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
  return 1;
}

}  // namespace
}  // namespace berth::network

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-network")) return 1;
  try {
    auto done = berth::network::run({argv, argv + argc});
    return done.ok() ? 0 : berth::network::fail(done.error());
  } catch (const std::exception& exception) {
    return berth::network::fail(
        berth::make_error(berth::Kind::bug, std::string("unexpected: ") + exception.what()));
  }
}
