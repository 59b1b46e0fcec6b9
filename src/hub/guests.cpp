// SPDX-License-Identifier: Apache-2.0
#include "hub/guests.hpp"

namespace berth::hub {

Welcome Guests::add(const Address& address) {
  size_t& count = of_one_[neighbourhood(address)];
  if (count < most_of_one_) {
    ++count;
    ++served_;
    return Welcome::served;
  }
  if (refused_ >= most_refused_) return Welcome::closed;
  ++refused_;
  return Welcome::refused;
}

void Guests::remove(const Address& address, Welcome welcome) {
  if (welcome == Welcome::refused) {
    --refused_;
    return;
  }
  --served_;
  auto entry = of_one_.find(neighbourhood(address));
  if (--entry->second == 0) of_one_.erase(entry);
}

}  // namespace berth::hub
