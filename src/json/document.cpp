// SPDX-License-Identifier: Apache-2.0
#include "json/document.hpp"

#include <array>

namespace berth::json {

std::string_view Node::type_name() const {
  static constexpr std::array<std::string_view, 8> kNames = {
      "null", "a boolean", "a number", "a number", "a number", "a string", "an array", "an object"};
  return kNames[static_cast<size_t>(kind)];
}

Node Document::close(Node::Kind kind, std::span<const Node> values) {
  Node node;
  node.kind = kind;
  node.first = nodes_.size();
  node.count = values.size();
  nodes_.insert(nodes_.end(), values.begin(), values.end());
  return node;
}

Node Document::add(const Value& value) {
  Node node;
  std::vector<Node> values;
  if (const bool* boolean = value.get_if<bool>()) {
    node.kind = Node::Kind::boolean;
    node.boolean = *boolean;
  } else if (const int64_t* integer = value.get_if<int64_t>()) {
    node.kind = Node::Kind::integer;
    node.integer = *integer;
  } else if (const uint64_t* natural = value.get_if<uint64_t>()) {
    node.kind = Node::Kind::natural;
    node.natural = *natural;
  } else if (const double* real = value.get_if<double>()) {
    node.kind = Node::Kind::real;
    node.real = *real;
  } else if (const std::string* text = value.string()) {
    node.kind = Node::Kind::string;
    node.text = *text;
  } else if (const Array* array = value.array()) {
    for (const Value& element : *array) values.push_back(add(element));
    return close(Node::Kind::array, values);
  } else if (const Object* object = value.object()) {
    for (const auto& [name, member] : *object) {
      values.push_back(add(member));
      values.back().member = name;
    }
    return close(Node::Kind::object, values);
  }
  return node;
}

Document Document::of(const Value& value) {
  Document document;
  document.root_ = document.add(value);
  return document;
}

Value Document::to_value(const Node& node) const {
  switch (node.kind) {
    case Node::Kind::null:
      return {};
    case Node::Kind::boolean:
      return node.boolean;
    case Node::Kind::integer:
      return node.integer;
    case Node::Kind::natural:
      return node.natural;
    case Node::Kind::real:
      return node.real;
    case Node::Kind::string:
      return node.text;
    case Node::Kind::array: {
      Array array;
      array.reserve(node.count);
      for (const Node& element : values(node)) array.push_back(to_value(element));
      return array;
    }
    case Node::Kind::object: {
      Object object;
      object.reserve(node.count);
      for (const Node& member : values(node)) {
        object.emplace_back(std::string(member.member), to_value(member));
      }
      return object;
    }
  }
  return {};
}

}  // namespace berth::json
