// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "sys/file.hpp"
#include "sys/socket.hpp"

namespace berth::cli::oci {
namespace {

struct Options {
  LaunchOptions launch;
  bool detach = false;
  std::optional<uint64_t> caller_fd;
};

FlagTable flags(Options& o) {
  FlagTable table = launch_flags(o.launch);
  table.push_back({"detach", 'd', "", "Leave the container to itself", &o.detach});
  table.push_back({"caller-fd", 0, "N", "A socket that says when to begin and hears how it ended",
                   &o.caller_fd});
  return table;
}

/// Waits until whoever started us early says that the bundle is there.
Result<sys::Fd> await_caller(uint64_t number) {
  constexpr uint64_t kMost = 1'000'000;
  if (number > kMost) return make_error(Kind::usage, "--caller-fd: more than a process can have");
  sys::Fd given(static_cast<int>(number));
  auto taken = sys::duplicate(given);  // close on exec, which the inherited number is not
  if (!taken.ok()) given.release();
  sys::Fd caller = TRY_CTX(std::move(taken), "cannot use --caller-fd");
  char word = 0;
  auto heard = TRY_CTX(sys::receive_message(caller, &word, 1), "cannot wait for the caller");
  if (heard.size == 0) return make_error(Kind::interrupted, "wait for the caller: it has given up");
  return caller;
}

Result<int> run(Session& session, const Options& options,
                const std::vector<std::string>& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  if (options.caller_fd) session.report.caller = TRY(await_caller(*options.caller_fd));
  runtime::LaunchRequest request = TRY(to_request(options.launch, arguments[0]));
  auto detach = options.detach ? runtime::Detach::yes : runtime::Detach::no;
  return TRY_CTX(runtime::run(store, std::move(request), detach, session.report, session.log),
                 "cannot run container '" + arguments[0] + "'");
}

}  // namespace

const Verb run_verb{
    .text = {.name = "run",
             .arguments = "ID",
             .summary = "Create and start a container and stay with it to its end",
             .example = "berth-runtime run --bundle /srv/web web"},
    .arity = {1, 1},
    .command = [] { return make_command(flags, run); },
    .makes_process = true,
};

}  // namespace berth::cli::oci
