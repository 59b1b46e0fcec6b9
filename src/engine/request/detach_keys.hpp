// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace berth::engine {

/// "ctrl-p,ctrl-q" → the bytes that a terminal sends for these keys; "" → no keys at all. A key is
/// one character, or "ctrl-" with one of a–z @ [ \ ] ^ _.
/// Errors: usage, with docker's words.
Result<std::string> parse_detach_keys(std::string_view text);

/// Looks for the keys that leave a container in what a person types.
///
/// A sequence counts where a hand can have typed it: it has to end what one read gave. In the
/// middle of a paste, and between the marks of a bracketed one, it is data like everything else.
class DetachKeys {
 public:
  explicit DetachKeys(std::string keys) : keys_(std::move(keys)) {}

  struct Typed {
    std::string bytes;  ///< for the container
    bool detach = false;
  };
  /// `bytes` are what one read gave. The beginning of a sequence is held back until the next one.
  Typed feed(std::string_view bytes);

 private:
  void look_for_paste(std::string_view bytes);

  std::string keys_;
  size_t matched_ = 0;    ///< of keys_, held back
  std::string marks_;     ///< the last bytes, which may be the beginning of a mark
  bool pasting_ = false;  ///< between "ESC [200~" and "ESC [201~"
};

}  // namespace berth::engine
