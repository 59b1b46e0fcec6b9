// SPDX-License-Identifier: Apache-2.0
#include "spank/site.hpp"

#include "base/text.hpp"

namespace berth::spank {
namespace {

Result<bool> parse_switch(std::string_view name, std::string_view value) {
  if (value == "1") return true;
  if (value == "0") return false;
  return make_error(Kind::usage,
                    std::string(name) + "=" + std::string(value) + ": expected 0 or 1");
}

Result<int> parse_seconds(std::string_view name, std::string_view value) {
  constexpr uint64_t kMost = 86'400;
  auto seconds = parse_u64(value);
  if (seconds && *seconds > 0 && *seconds <= kMost) return static_cast<int>(*seconds);
  return make_error(Kind::usage, std::string(name) + "=" + std::string(value) +
                                     ": expected a number of seconds, at most " +
                                     std::to_string(kMost));
}

Result<void> take_argument(std::string_view text, Site& site) {
  size_t equals = text.find('=');
  std::string_view name = text.substr(0, equals);
  std::string_view value = equals == text.npos ? "" : text.substr(equals + 1);
  if (name == "berth") {
    if (!value.starts_with('/')) {
      return make_error(Kind::usage, "berth=" + std::string(value) + ": not an absolute path");
    }
    site.program = value;
  } else if (name == "container_scope") {
    if (value != "global" && value != "job") {
      return make_error(Kind::usage,
                        "container_scope: expected global or job, got " + quote(value));
    }
    site.scope = value;
  } else if (name == "execute_entrypoint") {
    site.entrypoint = TRY(parse_switch(name, value));
  } else if (name == "sbatch_support") {
    site.batch = TRY(parse_switch(name, value));
  } else if (name == "one_fetch") {
    site.one_fetch = TRY(parse_switch(name, value));
  } else if (name == "epilog_seconds") {
    site.epilog_seconds = TRY(parse_seconds(name, value));
  } else if (name != "runtime_path" && name != "importer" && name != "use_enroot_load" &&
             name != "use_squashfuse") {  // arguments of pyxis without effect here
    return make_error(Kind::usage, "unknown argument " + quote(text),
                      "berth=, container_scope=, epilog_seconds=, execute_entrypoint=, one_fetch=, "
                      "sbatch_support=");
  }
  return {};
}

}  // namespace

Result<void> take_arguments(int argc, char** argv, Site& site) {
  for (int i = 0; i < argc; ++i) {
    TRY_CTX(take_argument(argv[i], site), "plugstack.conf: spank_berth.so");
  }
  return {};
}

}  // namespace berth::spank
