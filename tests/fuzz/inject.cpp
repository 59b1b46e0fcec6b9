// SPDX-License-Identifier: Apache-2.0
// A config.json of another engine, a policy and an inventory, each after a zero byte: no crash, and
// a config grants nothing by its variables where the policy does not say so.
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "gpu/grant/grant.hpp"
#include "gpu/grant/reach.hpp"
#include "gpu/grant/select.hpp"
#include "gpu/inject/wish.hpp"
#include "json/fields.hpp"
#include "oci/config.hpp"
#include "oci/edit.hpp"

namespace {

using namespace berth;

std::string_view take_part(std::string_view& text) {
  size_t end = text.find('\0');
  std::string_view part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return part;
}

void inject(oci::Spec& spec, const policy::Gpu& policy, const gpu::Inventory& inventory) {
  auto wish = gpu::take_wish(spec, policy);
  if (!wish.ok()) return;
  bool asked = wish->sources.gpus || !wish->sources.annotations.empty();
  auto choice = gpu::choose(wish->sources, policy);
  if (!choice.ok() || !choice->grants()) return;
  BERTH_ASSERT(asked || policy.environment != policy::GpuEnvironment::ignore ||
               policy.devices_by_volume || !policy.always.empty());
  gpu::take_plain_gpus(choice->cdi_names, {}, "an annotation", choice->request);
  choice->request.never = gpu::keys_of(policy.never, inventory);
  if (spec.process) gpu::keep_last(spec.process->env);
  (void)gpu::make_grant(choice->request, inventory).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  auto spec = oci::parse_spec(take_part(text));
  if (!spec.ok()) return 0;
  auto policy = policy::parse_compiled(take_part(text), "policy.json");
  auto inventory = json::read<gpu::Inventory>(take_part(text), "inventory");
  oci::Spec once = *spec;
  inject(once, {}, inventory.ok() ? *inventory : gpu::Inventory{});
  if (policy.ok())
    inject(*spec, policy->policy.gpu, inventory.ok() ? *inventory : gpu::Inventory{});
  return 0;
}
