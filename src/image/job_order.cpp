// SPDX-License-Identifier: Apache-2.0
#include "image/job_order.hpp"

#include "json/fields.hpp"

namespace berth::image {

void fields(auto& v, JobOrder& o) {
  v.required("root", o.root);
  v.required("reference", o.reference);
  v.required("key", o.key);
  access_fields(v, o.access);
  v.optional("idle_seconds", o.idle_seconds);
  v.strict();
}

std::string to_json(const JobOrder& order) {
  return json::write(order) + "\n";
}

Result<JobOrder> parse_job_order(std::string_view text) {
  return json::read<JobOrder>(text, "job order");
}

}  // namespace berth::image
