// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/berth/verb.hpp"
#include "cli/template/template.hpp"
#include "json/value.hpp"

/// --format of inspect, info and version: templates over a whole document.
namespace berth::cli {

/// What docker's Go types say about its documents, and JSON cannot say.
DocumentShape docker_documents();

/// Docker's exit status for an invalid template.
inline constexpr int kFormatStatus = 64;

/// "json" or a template. Unlike the format of a list, it cannot be "table", and has no escape
/// sequences.
class DocumentFormat {
 public:
  /// Errors: usage (an invalid format, Template::parse()).
  static Result<DocumentFormat> make(const std::string& text);

  /// Nothing for an empty text.  Errors: as make().
  static Result<std::optional<DocumentFormat>> make_if_given(const std::string& text);

  /// One line, without its newline.  Errors: usage (Template::execute()).
  Result<std::string> text(const json::Value& document) const;
  bool is_json() const { return !template_; }

 private:
  std::optional<Template> template_;
};

/// Prints `document` in the given format. Without a format prints `text`. Returns 0.
/// Errors: usage (Template::execute()).
Result<int> print_document(Session& session, const std::optional<DocumentFormat>& format,
                           const json::Value& document, const std::string& text);

}  // namespace berth::cli
