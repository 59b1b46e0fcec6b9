// SPDX-License-Identifier: Apache-2.0
#include "bake/bake_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bake/bake_document.hpp"
#include "bake/nfd.hpp"
#include "base/text.hpp"
#include "match/declared.hpp"

namespace berth::bake {
namespace {

constexpr size_t kMaxExpanded = 65'536;  // before exclusions
constexpr size_t kMaxCellName = 64;
constexpr std::string_view kNotHere = "{out}";  // filled in later, by the engine

bool fits(const AxisValues& cell, const AxisValues& wish) {
  return std::ranges::all_of(wish, [&](const auto& one) {
    auto value = cell.find(one.first);
    return value != cell.end() && value->second == one.second;
  });
}

bool fits_any(const AxisValues& cell, const std::vector<AxisValues>& wishes) {
  return std::ranges::any_of(wishes, [&](const AxisValues& wish) { return fits(cell, wish); });
}

bool is_cell_name(std::string_view name) {
  bool begins = !name.empty() && name[0] != '-' && name[0] != '.';
  return begins && name.size() <= kMaxCellName && std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-';
         });
}

/// The values of "{cpu}", "{version}" and so on in the texts of one cell.
struct Words {
  std::map<std::string, std::string> values;
  std::string single;  ///< the name of the cell if it is a [[cell]]; empty: of the matrix
};

/// Makes the cells of a document.
class Maker {
 public:
  Maker(Document document, const Lines& lines, const ReadNamed& read)
      : document_(std::move(document)), lines_(lines), read_(read) {}

  Result<BakeFile> make() {
    TRY(check_head());
    TRY(check_axes());
    std::vector<AxisValues> matrix = TRY(expand());
    for (AxisValues& axes : matrix) TRY(add_of_matrix(std::move(axes)));
    for (size_t i = 0; i < document_.cells.size(); ++i) TRY(add_single(i));
    TRY(check_cells());
    sort();
    return std::move(file_);
  }

 private:
  Result<void> check_head() {
    if (!document_.image) {
      return lines_.fault("image", make_error(Kind::usage, "missing: the name of the index",
                                              "image = \"registry.example.org/app:1.0\""));
    }
    if (document_.image->empty()) return lines_.fault("image", "expected a name with a tag");
    Words words{{{"version", document_.version}}, {}};
    file_.image = TRY(filled("image", *document_.image, words));
    file_.image_place = lines_.place("image");
    if (document_.builder == "docker") file_.builder = Builder::docker;
    if (!document_.builder.empty() && document_.builder != "docker" &&
        document_.builder != "buildah") {
      return lines_.fault("builder",
                          "expected 'buildah' or 'docker', got " + quote(document_.builder));
    }
    if (!document_.recipe.platform.empty()) {
      TRY(check("platform", "platform", document_.recipe.platform));
    }
    for (const auto& [name, text] : document_.annotations) {
      file_.annotations[name] = TRY(filled("annotations." + name, text, words));
    }
    return {};
  }

  Result<void> check_axes() {
    for (const auto& [axis, values] : document_.axes) {
      std::string place = "axes." + axis;
      if (values.empty()) return lines_.fault(place, "an axis without a value");
      std::set<std::string> seen;
      for (size_t i = 0; i < values.size(); ++i) {
        TRY(check(place, axis, values[i], i));
        if (!seen.insert(values[i]).second) {
          return lines_.fault(place, make_error(Kind::usage, quote(values[i]) + " is given twice"),
                              i);
        }
      }
    }
    TRY(check_wishes("exclude", document_.exclude));
    return check_wishes("only", document_.only);
  }

  // An unknown axis or value is an error: otherwise a typo would exclude nothing.
  Result<void> check_wishes(std::string_view key, const std::vector<AxisValues>& wishes) {
    for (size_t i = 0; i < wishes.size(); ++i) {
      std::string place = fmt::format("{}[{}]", key, i);
      if (wishes[i].empty()) return lines_.fault(place, "names no axis, so it means every cell");
      for (const auto& [axis, value] : wishes[i]) {
        auto known = document_.axes.find(axis);
        if (known == document_.axes.end()) {
          std::vector<std::string_view> names;
          for (const auto& one : document_.axes) names.push_back(one.first);
          auto near = nearest(axis, names);
          return lines_.fault(place,
                              fmt::format("no axis {} in [axes]{}", quote(axis),
                                          near ? fmt::format("; did you mean '{}'?", *near) : ""));
        }
        const std::vector<std::string>& values = known->second;
        if (std::ranges::find(values, value) != values.end()) continue;
        auto near = nearest(value, {values.begin(), values.end()});
        return lines_.fault(
            place, fmt::format("axis '{}' has no value {}{}", axis, quote(value),
                               near ? fmt::format("; did you mean '{}'?", *near)
                                    : fmt::format("; expected one of: {}", join(values, ", "))));
      }
    }
    return {};
  }

  Result<void> check(const std::string& place, std::string_view axis, std::string_view value,
                     std::optional<uint64_t> element = {}) {
    auto checked = check_axis(axis, value);
    if (!checked.ok()) return lines_.fault(place, std::move(checked).error(), element);
    return {};
  }

  Result<std::vector<AxisValues>> expand() {
    std::vector<AxisValues> cells;
    if (document_.axes.empty()) {
      // Without a matrix and without a list of cells there is one cell.
      if (document_.cells.empty()) cells.emplace_back();
      return cells;
    }
    cells.emplace_back();
    for (const auto& [axis, values] : document_.axes) {
      if (cells.size() * values.size() > kMaxExpanded) {
        return lines_.fault("axes", fmt::format("more than {} combinations", kMaxExpanded));
      }
      std::vector<AxisValues> more;
      for (const AxisValues& cell : cells) {
        for (const std::string& value : values) {
          more.push_back(cell);
          more.back()[axis] = value;
        }
      }
      cells = std::move(more);
    }
    std::erase_if(cells, [&](const AxisValues& cell) {
      return fits_any(cell, document_.exclude) ||
             (!document_.only.empty() && !fits_any(cell, document_.only));
    });
    return cells;
  }

  Result<void> add_of_matrix(AxisValues axes) {
    AxisValues differing;
    for (const auto& [axis, value] : axes) {
      if (document_.axes[axis].size() > 1) differing[axis] = value;
    }
    if (differing.empty()) differing = axes;
    std::string name = usual_name(differing);
    std::string place = document_.axes.empty() ? "image" : "axes";
    if (!document_.name.empty()) {
      name = TRY(filled("name", document_.name, {words_of(axes, std::nullopt), {}}));
      place = "name";
    }
    return add(place, std::move(name), std::move(axes), document_.recipe, Origin::matrix);
  }

  Result<void> add_single(size_t index) {
    CellDocument& single = document_.cells[index];
    std::string place = fmt::format("cell[{}]", index);
    std::erase_if(single.axes, [](const auto& axis) { return axis.second.empty(); });
    for (const auto& [axis, value] : single.axes) {
      TRY(check(fmt::format("{}.{}", place, axis), axis, value));
    }
    std::string name = single.name.empty() ? usual_name(single.axes) : single.name;
    return add(place, std::move(name), single.axes, over(document_.recipe, single.recipe),
               Origin::single);
  }

  /// The settings of a cell override the common ones; arguments and labels are overridden by name.
  static Recipe over(Recipe under, const Recipe& own) {
    auto take = [](auto& to, const auto& from) {
      if (!from.empty()) to = from;
    };
    // The ways to make an image exclude each other.
    bool another_way = !own.adopt.empty() || !own.command.empty() || !own.file.empty();
    if (another_way) {
      under.adopt = own.adopt;
      under.command = own.command;
    }
    take(under.context, own.context);
    take(under.file, own.file);
    take(under.target, own.target);
    if (!own.nfd.empty()) under.nfd_tag.clear();
    take(under.nfd, own.nfd);
    take(under.nfd_tag, own.nfd_tag);
    for (const auto& [name, value] : own.args) under.args[name] = value;
    for (const auto& [name, value] : own.labels) under.labels[name] = value;
    if (own.priority) under.priority = own.priority;
    return under;
  }

  std::map<std::string, std::string> words_of(const AxisValues& axes,
                                              const std::optional<std::string>& name) const {
    std::map<std::string, std::string> words = axes;
    if (!document_.version.empty()) words["version"] = document_.version;
    if (name) words["name"] = *name;
    return words;
  }

  Result<std::string> filled(const std::string& place, const std::string& text,
                             const Words& words) const {
    auto out = fill_in(text, words.values);
    if (out.ok()) return out;
    if (words.single.empty()) return lines_.fault(place, std::move(out).error());
    return lines_.fault(place, fault_of_single(place, text, words, std::move(out).error()));
  }

  /// The error for a [[cell]] that lacks an axis which a setting common to all cells needs.
  static Error fault_of_single(const std::string& place, const std::string& text,
                               const Words& words, Error error) {
    for (std::string_view axis : axis_names()) {
      bool lacks = !words.values.contains(std::string(axis)) &&
                   text.find(fmt::format("{{{}}}", axis)) != std::string::npos;
      if (!lacks) continue;
      std::string_view value = axis == "platform" ? "linux/amd64" : "none";
      return make_error(Kind::usage,
                        fmt::format("{}: cell '{}' has no {}", quote(text), words.single, axis),
                        fmt::format("{} = \"{}\" in the cell, or {} of its own", axis, value,
                                    place.substr(0, place.find('.'))));
    }
    error.what = fmt::format("cell '{}': {}", words.single, error.what);
    return error;
  }

  enum class Origin { matrix, single };

  Result<void> add(const std::string& place, std::string name, AxisValues axes,
                   const Recipe& recipe, Origin origin) {
    if (!is_cell_name(name)) {
      return lines_.fault(place, fmt::format("{}: the name of a cell is part of a tag: at most {} "
                                             "letters, digits, '_', '.' and '-'",
                                             quote(name), kMaxCellName));
    }
    Cell cell;
    cell.name = std::move(name);
    Words words{words_of(axes, cell.name), origin == Origin::single ? cell.name : ""};
    TRY(add_nfd(place, recipe, words, axes));
    auto platform = axes.find("platform");
    cell.platform = platform != axes.end() ? platform->second : recipe.platform;
    cell.adopt = TRY(filled("adopt", recipe.adopt, words));
    // The common recipe may use words that an adopted cell does not have.
    if (cell.adopt.empty()) TRY(add_build(recipe, std::move(words), cell));
    cell.annotations = annotations_of(axes);
    cell.annotations[kNameAnnotation] = cell.name;
    if (recipe.priority) {
      cell.annotations[std::string(match::kPrefix) + "priority"] = std::to_string(*recipe.priority);
    }
    cell.axes = std::move(axes);
    file_.cells.push_back(std::move(cell));
    return {};
  }

  /// Demands of the rules become axes of the cell. If the cell sets the same axis, it must demand
  /// at least as much.
  Result<void> add_nfd(const std::string& place, const Recipe& recipe, const Words& words,
                       AxisValues& axes) {
    if (recipe.nfd.empty() && recipe.nfd_tag.empty()) return {};
    if (recipe.nfd.empty())
      return lines_.fault("nfd-tag", "chooses from a file, and there is no nfd");
    std::string path = TRY(filled("nfd", recipe.nfd, words));
    std::string tag = TRY(filled("nfd-tag", recipe.nfd_tag, words));
    const NfdRules* rules = TRY(rules_of(path, tag));
    auto said = annotations_of(axes);
    for (const auto& [axis, value] : rules->words) {
      auto own = axes.find(axis);
      auto annotation = said.find(std::string(match::kPrefix) + axis);
      bool speaks = annotation != said.end();
      if (!speaks && own == axes.end()) {
        axes[axis] = value;
        continue;
      }
      std::string declared = speaks ? annotation->second : own->second;
      if (speaks && asks_as_much(axis, declared, value)) continue;
      return lines_.fault(place, fmt::format("{} {} requires less than {} does: {}", axis,
                                             quote(declared), quote(path), value));
    }
    return {};
  }

  Result<const NfdRules*> rules_of(const std::string& path, const std::string& tag) {
    auto known = rules_.find({path, tag});
    if (known != rules_.end()) return &known->second;
    auto text = read_ ? read_(path) : make_error(Kind::unsupported, "no files are read here");
    if (!text.ok()) return lines_.fault("nfd", std::move(text).error());
    auto read = read_nfd(*text, path, tag.empty() ? std::nullopt : std::optional(tag));
    if (!read.ok()) return lines_.fault("nfd", std::move(read).error());
    auto remarks = remarks_of(*read, path);
    file_.remarks.insert(file_.remarks.end(), remarks.begin(), remarks.end());
    return &rules_.emplace(std::pair(path, tag), std::move(*read)).first->second;
  }

  Result<void> add_build(const Recipe& recipe, Words words, Cell& cell) const {
    cell.context = TRY(filled("context", recipe.context.empty() ? "." : recipe.context, words));
    cell.file = TRY(filled("file", recipe.file, words));
    cell.target = TRY(filled("target", recipe.target, words));
    for (const auto& [key, value] : recipe.args) {
      cell.args[key] = TRY(filled("args." + key, value, words));
    }
    for (const auto& [key, value] : recipe.labels) {
      cell.labels[key] = TRY(filled("labels." + key, value, words));
    }
    words.values["out"] = kNotHere;
    for (const std::string& word : recipe.command) {
      cell.command.push_back(TRY(filled("command", word, words)));
    }
    return {};
  }

  Result<void> check_cells() {
    if (file_.cells.empty()) return lines_.fault("axes", "excludes every cell");
    if (file_.cells.size() > kMaxCells) {
      return lines_.fault("axes", fmt::format("{} cells are more than the {} that an index has",
                                              file_.cells.size(), kMaxCells));
    }
    std::set<std::string> names;
    for (const Cell& cell : file_.cells) {
      if (names.insert(cell.name).second) continue;
      return lines_.fault(document_.name.empty() ? "cell" : "name",
                          fmt::format("two cells of the name '{}'", cell.name));
    }
    if (!document_.generic.empty() && !names.contains(document_.generic)) {
      auto named = cell_named(file_, document_.generic);
      return lines_.fault("generic", std::move(named).error());
    }
    return {};
  }

  // Clients without support for variants take the first entry.
  void sort() {
    auto is_generic = [&](const Cell& cell) { return cell.name == document_.generic; };
    std::ranges::stable_sort(file_.cells, [&](const Cell& a, const Cell& b) {
      if (is_generic(a) != is_generic(b)) return is_generic(a);
      return demand_of(a.axes) < demand_of(b.axes);
    });
  }

  Document document_;
  const Lines& lines_;
  const ReadNamed& read_;
  std::map<std::pair<std::string, std::string>, NfdRules> rules_;  ///< by file and tag
  BakeFile file_;
};

}  // namespace

Result<BakeFile> read_bake_file(std::string_view text, std::string_view document,
                                const ReadNamed& read) {
  ReadDocument found = TRY(read_document(text, document));
  return Maker(std::move(found.document), found.lines, read).make();
}

Result<Cell> cell_named(const BakeFile& file, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Cell& cell : file.cells) {
    if (cell.name == name) return cell;
    names.push_back(cell.name);
  }
  auto near = nearest(name, names);
  return make_error(Kind::not_found,
                    fmt::format("no cell {}{}", quote(name),
                                near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

std::string cell_reference(const std::string& image, const std::string& cell) {
  return image + ".cell-" + cell;
}

}  // namespace berth::bake
