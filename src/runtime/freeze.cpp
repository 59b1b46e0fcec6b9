// SPDX-License-Identifier: Apache-2.0
#include "runtime/freeze.hpp"

#include "base/text.hpp"
#include "runtime/engine_scope.hpp"
#include "runtime/state/find.hpp"

namespace berth::runtime {

Result<void> pause(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status != Status::running && found.status != Status::created) {
    return make_error(Kind::usage, "container not running: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  TRY(give_scope(found));
  return found.cgroups.freeze(CgroupSet::Freeze::freeze);
}

Result<void> resume(const Store& store, const std::string& id) {
  Found found = TRY(find(store, id));
  if (found.status != Status::paused) {
    return make_error(Kind::usage, "container not paused: " + quote(id) + " is " +
                                       std::string(status_name(found.status)));
  }
  return found.cgroups.freeze(CgroupSet::Freeze::thaw);
}

}  // namespace berth::runtime
