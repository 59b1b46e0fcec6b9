// SPDX-License-Identifier: Apache-2.0
#include <getopt.h>

#include <cstdio>

#include "base/text.hpp"
#include "monitor/monitor.hpp"

namespace {

using berth::sys::Fd;

Fd descriptor(const char* text) {
  auto number = berth::parse_u64(text);
  return number && *number > 2 && *number < 1'000'000 ? Fd(static_cast<int>(*number)) : Fd();
}

/// False for words that berth does not pass: nobody else starts this program.
bool parse(int argc, char** argv, berth::monitor::Options& options) {
  const option table[] = {{"id", required_argument, nullptr, 'i'},
                          {"directory", required_argument, nullptr, 'd'},
                          {"runtime", required_argument, nullptr, 'r'},
                          {"runtime-root", required_argument, nullptr, 'R'},
                          {"lock-fd", required_argument, nullptr, 'l'},
                          {"report-fd", required_argument, nullptr, 'e'},
                          {"terminal", no_argument, nullptr, 't'},
                          {"keep-stdin", no_argument, nullptr, 's'},
                          {"bundle", required_argument, nullptr, 'b'},
                          {"name-link", required_argument, nullptr, 'n'},
                          {"remove", no_argument, nullptr, 'x'},
                          {"files", required_argument, nullptr, 'f'},
                          {nullptr, 0, nullptr, 0}};
  for (int found; (found = getopt_long(argc, argv, "", table, nullptr)) != -1;) {
    switch (found) {
      case 'i':
        options.id = optarg;
        break;
      case 'd':
        options.directory = optarg;
        break;
      case 'r':
        options.runtime = optarg;
        break;
      case 'R':
        options.runtime_root = optarg;
        break;
      case 'l':
        options.lock = descriptor(optarg);
        break;
      case 'e':
        options.report = descriptor(optarg);
        break;
      case 't':
        options.terminal = true;
        break;
      case 's':
        options.keep_stdin = true;
        break;
      case 'b':
        options.bundle = optarg;
        break;
      case 'f':
        options.files = optarg;
        break;
      case 'x':
        options.remove = true;
        break;
      case 'n':
        options.name_link = optarg;
        break;
      default:
        return false;
    }
  }
  return optind == argc && !options.id.empty() && !options.directory.empty() &&
         !options.files.empty() && !options.name_link.empty() && !options.bundle.empty() &&
         !options.runtime.empty() && !options.runtime_root.empty() && options.lock &&
         options.report;
}

}  // namespace

int main(int argc, char** argv) {
  berth::monitor::Options options;
  if (!parse(argc, argv, options)) {
    std::fputs("berth-monitor: is started by 'berth run --detach'\n", stderr);
    return 125;
  }
  return berth::monitor::watch(std::move(options)).ok() ? 0 : 1;
}
