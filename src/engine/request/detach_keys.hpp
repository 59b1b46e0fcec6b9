// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::engine {

/// "ctrl-p,ctrl-q" → the bytes that a terminal sends for these keys; "" → no keys. A key is one
/// character, or "ctrl-" with one of a–z @ [ \ ] ^ _.
/// Errors: usage, with docker's message.
Result<std::string> parse_detach_keys(std::string_view text);

/// Finds the detach keys in the input of a terminal.
///
/// A sequence counts only at the end of the bytes that one read returned, as when a person types.
/// In the middle of a paste, and between the marks of a bracketed paste, it is data.
class DetachKeys {
 public:
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}

  struct Typed {
    std::string bytes;  ///< for the container
    bool detach = false;
  };
  /// `bytes`: the result of one read. Holds back the beginning of a sequence until the next call.
  Typed feed(std::string_view bytes);

 private:
  void look_for_paste(std::string_view bytes);

  std::string keys_;
  size_t matched_ = 0;    ///< bytes of keys_ that are held back
  std::string marks_;     ///< the last bytes, which may be the beginning of a paste mark
  bool pasting_ = false;  ///< between "ESC [200~" and "ESC [201~"
};

}  // namespace berth::engine
