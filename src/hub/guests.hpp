// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>

#include "hub/config/address.hpp"

namespace berth::hub {

/// The treatment of a new connection.
enum class Welcome {
  served,
  refused,  ///< its first request is answered with 429, and it ends
  closed,   ///< at once
};

/// The open connections, by client address. An address at its limit still gets an answer, but in a
/// few separate slots: a refused client must not be able to keep others waiting.
class Guests {
 public:
  /// The limits for one neighbourhood(), and for refused connections.
  Guests(size_t most_of_one, size_t most_refused)
      : most_of_one_(most_of_one), most_refused_(most_refused) {}

  Welcome add(const Address& address);
  /// `welcome` is the result of add() for this address, unless that was `closed`.
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
