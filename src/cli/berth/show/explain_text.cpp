// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/explain_text.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "cli/core/table.hpp"

namespace berth::cli {
namespace {

using engine::Explained;

constexpr size_t kWidestObject = 32;  // after a longer object the reason is on the next line

struct ReasonRow {
  std::string kind;
  std::string object;
  std::string why;
};

/// Rows below a title, in columns as wide as necessary.
class Section {
 public:
  Section(std::vector<ReasonRow> rows, size_t columns) : rows_(std::move(rows)), columns_(columns) {
    for (const ReasonRow& row : rows_) {
      kind_width_ = std::max(kind_width_, text_width(row.kind));
      size_t width = text_width(row.object);
      if (width <= kWidestObject) object_width_ = std::max(object_width_, width);
    }
  }

  std::string text(const std::string& title) const {
    if (rows_.empty()) return {};
    std::string out = "\n" + title + "\n";
    for (const ReasonRow& row : rows_) {
      std::string head = "  " + pad_right(row.kind, kind_width_ + 2);
      std::string below(head.size() + 2, ' ');
      if (text_width(row.object) > object_width_) {
        out += head + row.object + "\n";
        head = below;
      } else {
        head += pad_right(row.object, object_width_ + 2);
        below.assign(head.size(), ' ');
      }
      size_t room = columns_ > below.size() + kLeastReason ? columns_ - below.size() : 0;
      for (const std::string& line : fold(row.why, room)) {
        out += head + line + "\n";
        head = below;
      }
    }
    return out;
  }

 private:
  static constexpr size_t kLeastReason = 20;

  std::vector<ReasonRow> rows_;
  size_t columns_;
  size_t kind_width_ = 0;
  size_t object_width_ = 0;
};

std::vector<ReasonRow> source_rows(const engine::Explanation& explanation) {
  std::vector<ReasonRow> rows;
  for (const gpu::Verdict& source : explanation.sources) {
    std::string object = escape_controls(source.source);
    if (!source.text.empty()) object += " " + quote(source.text);
    rows.push_back({source.used ? "counts" : "ignored", object, escape_controls(source.why)});
  }
  return rows;
}

std::vector<ReasonRow> item_rows(const engine::Explanation& explanation, bool given) {
  std::vector<ReasonRow> rows;
  for (const gpu::Reason& item : explanation.items) {
    if (item.given != given) continue;
    std::string why = escape_controls(item.why);
    if (!item.host_path.empty()) why += " (" + escape_controls(item.host_path) + ")";
    rows.push_back({item.kind, escape_controls(item.object), std::move(why)});
  }
  return rows;
}

std::string heading(const Explained& explained) {
  std::string who = explained.id.empty() ? "a container"
                                         : explained.name + " (" + explained.id.substr(0, 12) + ")";
  return who + " of " + escape_controls(explained.image) +
         (explained.explanation.granted() ? " has GPUs or devices:\n" : " has no GPU:\n");
}

}  // namespace

namespace {

std::string end_text(const Explained& explained, size_t columns) {
  if (!explained.reason) return {};
  std::vector<ReasonRow> rows = {{"why", "", escape_controls(explained.reason->why)},
                                 {"try", "", escape_controls(explained.reason->remedy)}};
  return Section(std::move(rows), columns)
      .text("ended with status " + std::to_string(explained.status.value_or(0)));
}

}  // namespace

std::string explain_text(const Explained& explained, size_t columns) {
  const engine::Explanation& explanation = explained.explanation;
  std::string text = heading(explained);
  if (explanation.asks_nothing()) {
    for (const std::string& line : fold("nothing requests one: no --gpus or --device, no variable "
                                        "or label of the image, no policy and no job",
                                        columns)) {
      text += line + "\n";
    }
  }
  text += Section(source_rows(explanation), columns).text("asked by");
  text += Section(item_rows(explanation, true), columns).text("given");
  text += Section(item_rows(explanation, false), columns).text("not given");
  return text + end_text(explained, columns);
}

json::Value explain_json(const Explained& explained) {
  json::Array sources, items;
  for (const gpu::Verdict& source : explained.explanation.sources) {
    sources.push_back(json::Object{{"source", source.source},
                                   {"text", source.text},
                                   {"counts", source.used},
                                   {"why", source.why}});
  }
  for (const gpu::Reason& item : explained.explanation.items) {
    json::Value host_path;
    if (!item.host_path.empty()) host_path = item.host_path;
    items.push_back(json::Object{{"kind", item.kind},
                                 {"object", item.object},
                                 {"given", item.given},
                                 {"why", item.why},
                                 {"host_path", std::move(host_path)}});
  }
  auto or_null = [](const std::string& value) {
    return value.empty() ? json::Value() : json::Value(value);
  };
  json::Value ended;
  if (explained.reason) {
    ended =
        json::Object{{"status", explained.status ? json::Value(*explained.status) : json::Value()},
                     {"id", explained.reason->id},
                     {"why", explained.reason->why},
                     {"try", explained.reason->remedy},
                     {"text", or_null(explained.reason->text)}};
  }
  return json::Object{{"id", or_null(explained.id)},   {"name", or_null(explained.name)},
                      {"image", explained.image},      {"granted", explained.explanation.granted()},
                      {"sources", std::move(sources)}, {"items", std::move(items)},
                      {"ended", std::move(ended)}};
}

}  // namespace berth::cli
