// SPDX-License-Identifier: Apache-2.0
// Calls the parts of Berth that confine a process, one per verb, for the tests that need the real
// kernel:
//   confine user-namespace [PROGRAM ARGUMENT…]   enter as the caller; print the kind, or run
//   PROGRAM
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "sys/identity.hpp"
#include "sys/user_namespace.hpp"

namespace {

using berth::Error;
using berth::Result;

class PrintedLog final : public berth::Log {
 public:
  void warn(const std::string& text) override {
    std::fprintf(stderr, "warning: %s\n", text.c_str());
  }
  void debug(const std::string&) override {}
};

int fail(const Error& error) {
  std::fprintf(stderr, "confine: %s\n", to_line(error).c_str());
  return 1;
}

Result<int> user_namespace(char** program) {
  auto self = TRY(berth::sys::identity());
  auto mapping = TRY(berth::sys::plan_mapping(self.uid, self.gid, berth::sys::user_name(self.uid)));
  PrintedLog log;
  auto kind = TRY(berth::sys::enter_user_namespace(mapping, log));
  if (*program == nullptr) {
    std::puts(kind == berth::sys::UserNamespaceKind::mapped ? "mapped" : "single");
    return 0;
  }
  execvp(*program, program);
  return berth::sys_error(errno, "execute " + std::string(*program));
}

Result<int> run(int argc, char** argv) {
  if (argc >= 2 && std::strcmp(argv[1], "user-namespace") == 0) return user_namespace(argv + 2);
  return berth::make_error(berth::Kind::usage, "confine user-namespace …");
}

}  // namespace

int main(int argc, char** argv) {
  auto status = run(argc, argv);
  return status.ok() ? *status : fail(status.error());
}
