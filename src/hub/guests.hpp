// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "hub/config/address.hpp"

namespace berth::hub {

/// How a connection is met.
enum class Welcome {
  served,
  refused,  ///< its first request is answered with 429, and it ends
  closed,   ///< at once
};

/// The connections that are open, by client address. An address that has all it may have is still
/// told so, but in a few places alone, which are none of the others': a client that is refused must
/// not be able to keep anybody waiting.
class Guests {
 public:
  /// Connections at a time of one neighbourhood(), and of those that are refused.
  Guests(size_t most_of_one, size_t most_refused)
      : most_of_one_(most_of_one), most_refused_(most_refused) {}

  Welcome add(const Address& address);
  /// What add() gave for this address, unless that was `closed`.
  void remove(const Address& address, Welcome welcome);

  size_t served() const { return served_; }
  bool empty() const { return served_ == 0 && refused_ == 0; }

 private:
  const size_t most_of_one_;
  const size_t most_refused_;
  size_t served_ = 0;
  size_t refused_ = 0;
  std::map<Address, size_t> of_one_;
};

}  // namespace berth::hub
