// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "json/value.hpp"

/// The templates of docker's --format: Go's text/template with docker's own functions, over JSON
/// values. Pure.
///
/// Actions: {{pipeline}} {{if}} {{else if}} {{else}} {{with}} {{range}} {{break}} {{continue}}
/// {{end}} {{/* comment */}}, trimmed by {{- and -}}; variables ($x := …, $x = …,
/// range $i, $e := …).
/// Functions: and or not eq ne lt le gt ge len index slice print printf println; docker's json join
/// split lower upper title pad truncate.
/// Missing: define, template, block, call, html, js, urlquery, complex numbers.
///
/// Source: Go's text/template and text/template/parse documentation; docker/cli templates package.
namespace berth::cli {

namespace syntax {
struct Node;
}

/// What JSON does not tell about a document that is a Go struct in docker. All strings are names of
/// members, anywhere in the document.
struct DocumentShape {
  std::span<const std::string_view> maps;  ///< a missing entry is not an error, null prints "map[]"
  std::span<const std::string_view> lists;   ///< null prints "[]"
  std::span<const std::string_view> absent;  ///< members that are omitted if there is no value
  std::span<const std::string_view> blank;   ///< members that are omitted if they are empty strings
};

enum class Functions {
  values,
  titles,  ///< for the first line of a table: lower, upper, title, truncate and json change nothing
};

struct TemplateData {
  const json::Value& value;  ///< the value of "."
  DocumentShape shape = {};
  Functions functions = Functions::values;
  /// {{.Label "x"}}: members that take an argument. Empty: none.
  std::function<std::string(std::string_view key)> label = {};
};

/// A parsed template. Copies share the tree.
class Template {
 public:
  /// Errors: usage, with line and column: syntax, an unknown function (suggesting the nearest one),
  /// an unknown variable, more than 64 KiB, nesting deeper than 64.
  static Result<Template> parse(std::string_view text);

  /// Errors: usage, with line and column: a missing member (suggesting the nearest one), an
  /// argument of the wrong type, more than 16 MiB of output, more than 500000 steps.
  Result<std::string> execute(const TemplateData& data) const;

  /// Whether any action names the member `field`, at any depth, or uses the whole object.
  bool uses(std::string_view field) const;

  /// Checks that the template names only members in `known`. For an empty list, for which the
  /// template is not executed.
  /// Errors: usage, as execute().
  Result<void> check_fields(const std::vector<std::string_view>& known) const;

 private:
  std::shared_ptr<const std::vector<syntax::Node>> nodes_;
};

}  // namespace berth::cli
