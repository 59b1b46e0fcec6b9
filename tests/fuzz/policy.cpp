// SPDX-License-Identifier: Apache-2.0
// The site's policy in all its forms: TOML, rules, the toolkit's TOML, Houdini's INI, and JSON.
#include "policy/policy.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "policy/rules.hpp"
#include "policy/site/houdini.hpp"
#include "policy/site/site.hpp"
#include "policy/site/toolkit.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace policy = berth::policy;
  std::string_view text(reinterpret_cast<const char*>(data), size);
  policy::Facts facts;
  facts.user = "alice";
  facts.labels = {{"a", "b"}};
  auto compiled = policy::parse_compiled(text, "policy.json");
  if (compiled.ok()) policy::evaluate(compiled->rules, facts);
  auto written = policy::compile(text, "policy.toml");
  if (written.ok()) policy::evaluate(written->rules, facts);
  auto rules = policy::import_houdini(text, "houdini.ini");
  // As below: a value of the file is a value, whatever its bytes.
  if (rules.ok() && !policy::read_site(*rules, "houdini.toml").ok()) std::abort();
  auto imported = policy::import_toolkit(text, "config.toml");
  if (!imported.ok()) return 0;
  // What is imported reads as TOML whatever the keys and values were, so nothing left its comment.
  auto read = policy::read_site(*imported, "policy.toml");
  if (!read.ok()) std::abort();
  return 0;
}
