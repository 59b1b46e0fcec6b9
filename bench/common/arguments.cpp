// SPDX-License-Identifier: Apache-2.0
#include "bench/common/arguments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <getopt.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/text.hpp"

namespace berth::bench {
namespace {

Result<void> set_number(const Flag& flag, std::string_view value) {
  auto number = parse_u64(value);
  if (!number || *number < flag.lowest || *number > flag.highest) {
    return make_error(Kind::usage, fmt::format("--{}: expected a number from {} to {}, got {}",
                                               flag.name, flag.lowest, flag.highest, quote(value)));
  }
  *flag.number = *number;
  return {};
}

Result<void> set_text(const Flag& flag, std::string_view value) {
  const auto& known = flag.choices;
  if (!known.empty() && std::find(known.begin(), known.end(), value) == known.end()) {
    return make_error(Kind::usage, fmt::format("--{}: expected {}, got {}", flag.name,
                                               fmt::join(known, ", "), quote(value)));
  }
  *flag.text = value;
  return {};
}

int fail(std::string_view program, std::string_view line, int status) {
  fmt::print(stderr, "{}: {}\n", program, line);
  return status;
}

}  // namespace

Result<void> parse(int argc, char** argv, const std::vector<Flag>& flags) {
  std::vector<option> options;
  for (const Flag& flag : flags) options.push_back({flag.name, required_argument, nullptr, 0});
  options.push_back({});
  opterr = 0;
  optind = 0;  // from the beginning, also the second time
  int index = 0;
  for (int found = 0; (found = getopt_long(argc, argv, "+:", options.data(), &index)) != -1;) {
    if (found == ':')
      return make_error(Kind::usage, fmt::format("{} needs a value", argv[optind - 1]));
    if (found != 0) {
      return make_error(Kind::usage, fmt::format("unknown flag {}", quote(argv[optind - 1])));
    }
    const Flag& flag = flags[static_cast<size_t>(index)];
    TRY(flag.number != nullptr ? set_number(flag, optarg) : set_text(flag, optarg));
  }
  if (optind < argc)
    return make_error(Kind::usage, fmt::format("unexpected word {}", quote(argv[optind])));
  return {};
}

int exit_status(std::string_view program, const std::function<Result<void>()>& body) {
  try {
    auto done = body();
    if (done.ok()) return 0;
    return fail(program, to_line(done.error()), done.error().kind == Kind::usage ? 2 : 1);
  } catch (const std::exception& error) {
    return fail(program, error.what(), 1);
  }
}

}  // namespace berth::bench
