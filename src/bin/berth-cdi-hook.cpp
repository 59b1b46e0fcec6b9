// SPDX-License-Identifier: Apache-2.0
// berth-cdi-hook [--link TARGET::LINK]… [--loader-entry SONAME::PATH::FLAGS]…
//                [--freeze-device-nodes]
// A createContainer hook for other engines, named in the CDI files of `berth cdi generate`: makes
// changes in a container's root that CDI cannot express. The state of the container comes on
// standard input. Uses neither the environment nor other programs.
#include <sys/stat.h>

#include <cstdio>
#include <exception>

#include "gpu/cdi_hook/hook.hpp"
#include "sys/file/file.hpp"
#include "sys/file/mode.hpp"
#include "sys/mount/null_device.hpp"

namespace berth::gpu::cdi {
namespace {

Result<void> hook_main(const std::vector<std::string>& words) {
  HookRequest request = TRY(parse_words(words));
  sys::set_umask(022);
  constexpr size_t kMaxState = size_t{1} << 20;
  sys::Fd input(0);
  auto state = sys::read_all(input, "standard input", kMaxState);
  input.release();
  if (!state.ok()) return std::move(state).error();
  sys::Fd root = TRY(open_container_root(*state));
  return run_hook(request, root);
}

}  // namespace
}  // namespace berth::gpu::cdi

int main(int argc, char** argv) {
  if (!berth::sys::has_standard_streams("berth-cdi-hook")) return 1;
  try {
    auto done = berth::gpu::cdi::hook_main({argv + (argc > 0 ? 1 : 0), argv + argc});
    if (done.ok()) return 0;
    std::fprintf(stderr, "berth-cdi-hook: %s\n", berth::to_line(done.error()).c_str());
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "berth-cdi-hook: unexpected: %s\n", exception.what());
  }
  return 1;
}
