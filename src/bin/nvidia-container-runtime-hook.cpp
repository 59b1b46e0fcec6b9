// SPDX-License-Identifier: Apache-2.0
// dockerd refuses `docker run --gpus` unless it finds a program of this name in its PATH, and
// writes it as a hook into the configuration of the container. berth-runtime treats that hook as a
// request for GPUs and does not start it. Other runtimes start the hook; it does nothing.
#include <cstdio>
#include <string_view>

int main(int argc, char** argv) {
  std::string_view word = argc > 1 ? argv[1] : "";
  if (word != "--help" && word != "-h") return 0;
  return std::puts(
             "nvidia-container-runtime-hook (of Berth) does nothing.\n"
             "dockerd looks for its name where 'docker run --gpus' is used; berth-runtime, as\n"
             "Docker's runtime, then gives the container its GPUs.") < 0
             ? 1
             : 0;
}
