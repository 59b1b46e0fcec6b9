// SPDX-License-Identifier: Apache-2.0
// CDI files in both of their forms: no crash, no value beyond the limits, and what was accepted is
// accepted again when it is written. The index in berth-runtime's hands is one more form.
#include "oci/cdi.hpp"

#include <cstdint>

#include "gpu/cdi/known_hooks.hpp"
#include "oci/edit.hpp"
#include "yaml/read.hpp"

namespace {

using namespace berth;

void check(const oci::cdi::Edits& edits) {
  for (const auto& hook : edits.hooks) (void)gpu::cdi::recognise(hook);
}

void check(const oci::cdi::Spec& spec) {
  BERTH_ASSERT(oci::cdi::validate(spec, "f").ok());
  BERTH_ASSERT(oci::cdi::compare_versions(spec.version, oci::cdi::needed_version(spec)) >= 0);
  json::Value document = oci::cdi::to_document(spec);
  BERTH_ASSERT(oci::cdi::from_document(document, "f").ok());
  check(spec.edits);
  for (const auto& device : spec.devices) {
    check(device.edits);
    BERTH_ASSERT(oci::cdi::parse_name(spec.kind + "=" + device.name).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (auto spec = oci::cdi::read_json(text, "f"); spec.ok()) check(*spec);
  if (auto document = yaml::parse(text, "f"); document.ok()) {
    if (auto spec = oci::cdi::from_document(*document, "f"); spec.ok()) check(*spec);
  }
  auto entries = oci::loader_entries_of(text);
  BERTH_ASSERT(oci::loader_entries_of(oci::to_annotation(entries)) == entries);
  return 0;
}
