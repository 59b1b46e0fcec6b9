// SPDX-License-Identifier: Apache-2.0
// The site's policy in all its forms: TOML, the toolkit's TOML, and JSON.
#include "policy/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "policy/site/site.hpp"
#include "policy/site/toolkit.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace policy = berth::policy;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  berth::ignore(policy::parse_compiled(text, "policy.json"));
  berth::ignore(policy::compile(text, "policy.toml"));
  auto imported = policy::import_toolkit(text, "config.toml");
  if (!imported.ok()) return 0;
  // What is imported reads as TOML whatever the keys and values were, so nothing left its comment.
  auto read = policy::read_site(*imported, "policy.toml");
  if (!read.ok()) std::abort();
  return 0;
}
