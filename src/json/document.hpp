// SPDX-License-Identifier: Apache-2.0
// A parsed document for reading: its values are in one list and refer to its letters. A Value owns
// its content, at some allocations each; this needs a handful for all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

namespace berth::json {

/// One value. Integers keep their 64 bits: one that fits int64_t is an `integer`, a larger one
/// `natural`.
struct Node {
  enum class Kind : uint8_t { null, boolean, integer, natural, real, string, array, object };

  Kind kind = Kind::null;
  union {
    bool boolean;
    int64_t integer = 0;
    uint64_t natural;
    double real;
    size_t first;  ///< of an array or object: the index of its first value
  };
  size_t count = 0;           ///< number of its values
  std::string_view text{};    ///< a string
  std::string_view member{};  ///< the name, of a value of an object

  bool is_null() const { return kind == Kind::null; }
  /// For error messages: "a string", "an object", …
  std::string_view type_name() const;
};

class Document {
 public:
  /// A view of `value`, which lives as long.
  static Document of(const Value& value);

  const Node& root() const { return root_; }
  /// Elements, or members in the order of the document, each name once.
  std::span<const Node> values(const Node& node) const {
    return std::span(nodes_).subspan(node.first, node.count);
  }
  /// A copy that owns its content.
  Value to_value(const Node& node) const;

 private:
  friend class Builder;
  friend Result<Document> parse_document(std::string_view, std::string_view, const Limits&);
  Node add(const Value& value);
  Node close(Node::Kind kind, std::span<const Node> values);

  std::string letters_;  ///< the target of `text` and `member`; on the heap, so it can be moved
  std::vector<Node> nodes_;
  Node root_;
};

/// As parse() in json/value.hpp.
Result<Document> parse_document(std::string_view text, std::string_view document,
                                const Limits& limits = {});

}  // namespace berth::json
