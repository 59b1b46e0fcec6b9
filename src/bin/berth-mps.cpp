// SPDX-License-Identifier: Apache-2.0
// berth-mps: stays with NVIDIA's MPS control daemon as long as containers compute through it.
//
//   berth-mps keep STATE SHARE LOCK SHARES REPORT  started by berth
//   berth-mps guard DIRECTORY PROGRAM [WORD…]      started by keep, to end all servers with it
//   berth-mps enter DIRECTORY PROGRAM [WORD…]      executes the daemon, or a program that talks to
//                                                  it, with the share's directories mounted
//
// Runs as: the caller of berth. It executes programs of the driver, never of an image.
#include <cstdio>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "gpu/mps/control.hpp"
#include "gpu/mps/keeper.hpp"
#include "gpu/mps/share.hpp"
#include "sys/file/file.hpp"
#include "sys/mount/null_device.hpp"
#include "sys/process/process.hpp"
#include "sys/process/program.hpp"

namespace {

using namespace berth;

sys::Fd descriptor(const char* text) {
  auto number = parse_u64(text);
  return number && *number > 2 && *number < 1'000'000 ? sys::Fd(static_cast<int>(*number))
                                                      : sys::Fd();
}

int keep(char** argv) {
  gpu::Handed handed{descriptor(argv[4]), descriptor(argv[5]), descriptor(argv[6])};
  // The daemon must not hold the lock, which shows that this process lives.
  bool ours = handed.lock && handed.shares && handed.report && sys::close_on_exec_from(3).ok();
  auto self = sys::read_link(sys::cwd(), "/proc/self/exe");
  if (!ours || !self.ok()) return 125;
  return gpu::keep_share(*self, argv[2], argv[3], std::move(handed)).ok() ? 0 : 1;
}

int guard(int argc, char** argv) {
  sys::SpawnOptions daemon;
  auto self = sys::read_link(sys::cwd(), "/proc/self/exe");
  if (!self.ok()) return 125;
  daemon.program = *self;
  daemon.args = {"berth-mps", "enter"};
  daemon.args.insert(daemon.args.end(), argv + 2, argv + argc);
  auto status = gpu::guard_share(daemon);
  if (!status.ok()) std::fprintf(stderr, "%s\n", to_line(status.error()).c_str());
  return status.ok() ? *status : 125;
}

int enter(int argc, char** argv) {
  std::string directory = argv[2];
  size_t slash = directory.rfind('/');
  size_t above = directory.rfind('/', slash - 1);
  if (slash == std::string::npos || above == std::string::npos) return 125;
  auto place = gpu::place_of(directory.substr(0, above), directory.substr(slash + 1));
  Error error = gpu::enter_share(place, argv[3], std::vector<std::string>(argv + 4, argv + argc));
  std::fprintf(stderr, "%s\n", to_line(error).c_str());
  return 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-mps")) return 125;
  std::string_view verb = argc > 1 ? argv[1] : "";
  if (verb == "keep" && argc == 7) return keep(argv);
  if (verb == "guard" && argc >= 4) return guard(argc, argv);
  if (verb == "enter" && argc >= 4) return enter(argc, argv);
  std::fputs("berth-mps: is started by berth\n", stderr);
  return 125;
}
