// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/template/lexer.hpp"
#include "json/value.hpp"

/// A template as a tree. Pure.
namespace berth::cli::syntax {

struct Command;

/// "$x := .Name | upper"
struct Pipeline {
  Place place;
  std::vector<std::string> variables;  ///< "$x"; at most two, and two only in a range
  bool assigns = false;                ///< "=": the variables exist already
  std::vector<Command> commands;  ///< each gets the result of the previous one as last argument
};

struct Operand {
  enum class Kind { dot, nil, constant, field, variable, function, pipeline };
  Kind kind = Kind::dot;
  Place place;
  json::Value constant;
  std::string name;                 ///< of a variable or function
  std::vector<std::string> fields;  ///< ".A.B" after it; a field has only these
  std::vector<Pipeline> inner;      ///< for "(…)": one element
};

/// "printf "%s" .Name": the first node is called if it is a function.
struct Command {
  std::vector<Operand> operands;
};

struct Node {
  enum class Kind { text, action, if_, with, range, break_, continue_ };
  Kind kind = Kind::text;
  Place place;
  std::string text;
  Pipeline pipeline;
  std::vector<Node> body;
  std::vector<Node> otherwise;  ///< {{else}}
};

constexpr size_t kMaxTextBytes = size_t{64} << 10;
constexpr size_t kMaxDepth = 64;  ///< of nested actions and parentheses

/// Every name that a command may start with.
const std::vector<std::string_view>& function_names();

Result<std::vector<Node>> parse(std::string_view text);

}  // namespace berth::cli::syntax
