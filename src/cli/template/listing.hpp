// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/template/template.hpp"
#include "json/value.hpp"

/// The output of `--format table|json|TEMPLATE` for a list. Pure.
namespace berth::cli {

/// A field of a docker list, and the title of its column.
struct ListField {
  std::string_view name;   ///< "ID"
  std::string_view title;  ///< "CONTAINER ID"
};

/// One kind of list. A verb defines it as a constant.
struct ListKind {
  std::span<const ListField> fields;   ///< in the order of their names, as in docker's JSON
  std::string_view table;              ///< the columns without --format: "{{.ID}}\t{{.Names}}"
  std::string_view quiet = "{{.ID}}";  ///< the format with -q
  std::string_view raw = {};           ///< for docker's old '--format raw'; empty: none
  std::string_view raw_quiet = {};     ///< the same with -q
  bool labels = false;                 ///< {{.Label "x"}} is allowed
};

using Labels = std::vector<std::pair<std::string, std::string>>;

/// One listed object: `values` holds a string per field, in the order of ListKind::fields.
struct ListRow {
  std::vector<std::string> values;
  Labels labels = {};
};

struct ListFormat {
  std::string text;    ///< the value of --format; empty: a table
  bool quiet = false;  ///< -q; a given format takes precedence
};

/// The row as JSON.
json::Value to_value(const ListKind& kind, const ListRow& row);

/// "a=1,b=2"
std::string labels_text(const Labels& labels);

/// A format, parsed and checked.
class Listing {
 public:
  /// "", "table", "json", "raw", "table TEMPLATE" or a template, in which "\t" and "\n" may be
  /// written with a backslash.
  /// Errors: usage (Template::parse(), a field that `kind` does not have).
  static Result<Listing> make(const ListKind& kind, const ListFormat& format);

  /// Whether the text depends on this field. Some fields are costly to compute.
  bool uses(std::string_view field) const { return !template_ || template_->uses(field); }

  /// All rows, below their titles in a table. In a table control characters are escaped: cells
  /// contain foreign text.
  /// Errors: usage (Template::execute()).
  Result<std::string> text(const std::vector<ListRow>& rows) const;

  /// One row with its newline and without titles, for a list that does not end.
  Result<std::string> line(const ListRow& row) const;

 private:
  explicit Listing(const ListKind& kind) : kind_(&kind) {}

  const ListKind* kind_;
  std::optional<Template> template_;  ///< none: JSON
  std::vector<bool> used_;            ///< for each field of kind_
  bool table_ = false;
};

}  // namespace berth::cli
