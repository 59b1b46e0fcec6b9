// SPDX-License-Identifier: Apache-2.0
#include "cli/oci/verb.hpp"
#include "sys/stream.hpp"

namespace berth::cli::oci {
namespace {

struct Options {
  LaunchOptions launch;
  bool detach = false;
  std::optional<uint64_t> await_fd;
};

FlagTable flags(Options& o) {
  FlagTable table = launch_flags(o.launch);
  table.push_back({"detach", 'd', "", "Leave the container to itself", &o.detach});
  table.push_back(
      {"await-fd", 0, "N", "Read the bundle when a byte comes down this descriptor", &o.await_fd});
  return table;
}

/// Who started us early, while the bundle was still being written, says that it is there.
Result<void> await_go(uint64_t number) {
  constexpr uint64_t kMost = 1'000'000;
  if (number > kMost) return make_error(Kind::usage, "--await-fd: more than a process can have");
  sys::Fd fd(static_cast<int>(number));
  char byte = 0;
  size_t count =
      TRY_CTX(sys::read_some(fd, {&byte, 1}, "--await-fd"), "cannot wait for the caller");
  if (count == 0) return make_error(Kind::interrupted, "wait for the caller: it has given up");
  return {};
}

Result<int> run(Session& session, const Options& options,
                const std::vector<std::string>& arguments) {
  runtime::Store store = TRY(runtime::Store::open(session.root));
  if (options.await_fd) TRY(await_go(*options.await_fd));
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
