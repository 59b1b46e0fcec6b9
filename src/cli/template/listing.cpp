// SPDX-License-Identifier: Apache-2.0
#include "cli/template/listing.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "cli/template/go_text.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view kTable = "table";

/// Replaces "\t" and "\n", which a shell leaves unchanged in single quotes. Docker does this
/// everywhere in the template of a list.
std::string unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char next = i + 1 < text.size() ? text[i + 1] : '\0';
    bool escape = text[i] == '\\' && (next == 't' || next == 'n');
    out += !escape ? text[i] : next == 't' ? '\t' : '\n';
    i += escape ? 1 : 0;
  }
  return out;
}

std::string_view trim_blanks(std::string_view text) {
  size_t begin = std::min(text.find_first_not_of(' '), text.size());
  return text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

/// The title of a column of {{.Label "com.example.some-thing"}}: "some thing".
std::string label_title(std::string_view key) {
  std::string title(key.substr(key.rfind('.') + 1));
  std::ranges::replace(title, '-', ' ');
  std::ranges::replace(title, '_', ' ');
  return title;
}

enum class Controls { kept, escaped };

/// `used`: the fields to include; empty: all.
json::Value to_value(const ListKind& kind, const ListRow& row, Controls controls,
                     const std::vector<bool>& used) {
  BERTH_ASSERT(row.values.size() == kind.fields.size());
  json::Object object;
  object.reserve(row.values.size());
  for (size_t i = 0; i < row.values.size(); ++i) {
    if (!used.empty() && !used[i]) continue;
    const std::string& value = row.values[i];
    object.emplace_back(std::string(kind.fields[i].name),
                        controls == Controls::escaped ? escape_controls(value) : value);
  }
  return object;
}

std::string label_of(const ListRow& row, std::string_view key) {
  for (const auto& [name, value] : row.labels) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace

json::Value to_value(const ListKind& kind, const ListRow& row) {
  return to_value(kind, row, Controls::kept, {});
}

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ",") + name + "=" + value;
  return text;
}

Result<Listing> Listing::make(const ListKind& kind, const ListFormat& format) {
  Listing listing(kind);
  if (format.text == "json") return listing;
  std::string source = unescaped(trim_blanks(format.text));
  listing.table_ = format.text.empty() || format.text.starts_with(kTable);
  if (format.text.empty() || format.text == kTable) {
    listing.table_ = !format.quiet;
    source = format.quiet ? kind.quiet : kind.table;
  } else if (format.text == "raw" && !kind.raw.empty()) {
    source = format.quiet ? kind.raw_quiet : kind.raw;
  } else if (listing.table_) {
    source = trim_blanks(std::string_view(source).substr(kTable.size()));
  }
  // docker prints a format without "{{" once for each row. For a mistyped "josn" an error is
  // better.
  if (source.find("{{") == source.npos) {
    return make_error(Kind::usage, quote(format.text) +
                                       " is not a format: expected table, json or a template "
                                       "such as '{{.Name}}'");
  }
  listing.template_ = TRY(Template::parse(source));
  std::vector<std::string_view> known;
  for (const ListField& field : kind.fields) known.push_back(field.name);
  if (kind.labels) known.push_back("Label");
  TRY(listing.template_->check_fields(known));
  for (const ListField& field : kind.fields) {
    listing.used_.push_back(listing.template_->uses(field.name));
  }
  return listing;
}

Result<std::string> Listing::line(const ListRow& row) const {
  json::Value value = to_value(*kind_, row, table_ ? Controls::escaped : Controls::kept, used_);
  if (!template_) return json::dump(value) + "\n";
  TemplateData data{value};
  if (kind_->labels) {
    data.label = [&](std::string_view key) {
      std::string label = label_of(row, key);
      return table_ ? escape_controls(label) : label;
    };
  }
  return TRY(template_->execute(data)) + "\n";
}

Result<std::string> Listing::text(const std::vector<ListRow>& rows) const {
  std::string text;
  if (table_) {
    json::Object object;
    for (const ListField& field : kind_->fields) {
      object.emplace_back(std::string(field.name), field.title);
    }
    json::Value value(std::move(object));
    TemplateData data{value, {}, Functions::titles};
    if (kind_->labels) data.label = label_title;
    text = TRY(template_->execute(data)) + "\n";
  }
  for (const ListRow& row : rows) text += TRY(line(row));
  return table_ ? align_tabs(text) : text;
}

}  // namespace berth::cli
