// SPDX-License-Identifier: Apache-2.0
#include "bake/bake_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "bake/nfd.hpp"
#include "base/text.hpp"
#include "json/fields.hpp"
#include "match/declared.hpp"
#include "policy/site/toml.hpp"

namespace berth::bake {
namespace {

using policy::TomlEntry;

constexpr size_t kMaxExpanded = 65'536;  // before exclusions
constexpr size_t kMaxEntries = 20'000;
constexpr size_t kMaxCellName = 64;
constexpr std::string_view kNotHere = "{out}";  // a word that the engine knows later

/// How an image is made: for all cells, or for one.
struct Recipe {
  std::string adopt, context, file, target, platform, nfd, nfd_tag;
  std::vector<std::string> command;
  std::map<std::string, std::string> args, labels;
  std::optional<int64_t> priority;
};
template <class V>
void recipe_fields(V& v, Recipe& r) {
  v.optional("adopt", r.adopt);
  v.optional("context", r.context);
  v.optional("file", r.file);
  v.optional("target", r.target);
  v.optional("command", r.command);
  v.optional("args", r.args);
  v.optional("labels", r.labels);
  v.optional("priority", r.priority);
  v.optional("nfd", r.nfd);
  v.optional("nfd-tag", r.nfd_tag);
}

/// [[cell]]
struct CellDocument {
  std::string name;
  Recipe recipe;
  AxisValues axes;
};
template <class V>
void fields(V& v, CellDocument& c) {
  v.optional("name", c.name);
  recipe_fields(v, c.recipe);
  for (std::string_view axis : axis_names()) v.optional(axis, c.axes[std::string(axis)]);
  v.strict();
}

struct Document {
  std::optional<std::string> image;
  std::string version, builder, name, generic;
  Recipe recipe;
  std::map<std::string, std::vector<std::string>> axes;
  std::vector<AxisValues> exclude, only;
  std::map<std::string, std::string> annotations;
  std::vector<CellDocument> cells;
};
template <class V>
void fields(V& v, Document& d) {
  // That it is not there is told behind a key that is misspelt.
  v.optional("image", d.image);
  v.optional("version", d.version);
  v.optional("builder", d.builder);
  v.optional("name", d.name);
  v.optional("generic", d.generic);
  recipe_fields(v, d.recipe);
  v.optional("platform", d.recipe.platform);
  v.optional("axes", d.axes);
  v.optional("exclude", d.exclude);
  v.optional("only", d.only);
  v.optional("annotations", d.annotations);
  v.optional("cell", d.cells);
  v.strict();
}

/// Lists the names of a table instead of filling it.
struct Names {
  std::vector<std::string_view> all;
  template <class T>
  void optional(std::string_view name, T&) {
    all.push_back(name);
  }
  void strict() {}
};

template <class T>
bool has_key(std::string_view name) {
  T table;
  Names names;
  fields(names, table);
  return std::find(names.all.begin(), names.all.end(), name) != names.all.end();
}

/// A document as its reader's tables take it, and where each key stands.
class Lines {
 public:
  Lines(const std::vector<TomlEntry>& entries, std::string_view document)
      : entries_(entries), document_(document) {}

  /// "bake.toml:4: exclude[0].cppu", for the key or the nearest one above it, and there for the
  /// element that the path or `element` names.
  std::string place(std::string_view path, std::optional<uint64_t> element = {}) const {
    const TomlEntry* best = nullptr;
    std::string wanted = plain(path);
    for (const TomlEntry& entry : entries_) {
      std::string key = policy::key_of(entry);
      bool above = wanted == key || (wanted.starts_with(key) && wanted[key.size()] == '.') ||
                   (key.starts_with(wanted) && key[wanted.size()] == '.');
      bool nearer = best == nullptr || policy::key_of(*best).size() < key.size();
      if (above && nearer) best = &entry;
    }
    std::string line;
    if (best != nullptr) line = fmt::format(":{}", line_of(*best, element ? element : index(path)));
    return fmt::format("{}{}: {}", document_, line, path);
  }

  Error fault(std::string_view path, Error error, std::optional<uint64_t> element = {}) const {
    error.kind = Kind::usage;
    error.what = place(path, element) + ": " + error.what;
    return error;
  }
  Error fault(std::string_view path, std::string what) const {
    return fault(path, make_error(Kind::usage, std::move(what)));
  }

  /// What json says of a path, "bake.toml: axes.cpuu: unknown member; …", with its line.
  Error fault_of_json(Error error) const {
    std::string head = std::string(document_) + ": ";
    std::string text = error.what.starts_with(head) ? error.what.substr(head.size()) : error.what;
    size_t end = text.find(": ");
    constexpr std::string_view kWord = "unknown member";
    if (size_t at = text.find(kWord); at != std::string::npos) {
      text.replace(at, kWord.size(), "unknown key");
    }
    if (end == std::string::npos) return fault("", std::move(error));
    return fault(text.substr(0, end), text.substr(end + 2));
  }

 private:
  // "cell[2].name" → 2
  static std::optional<uint64_t> index(std::string_view path) {
    for (size_t open = path.find('['); open != path.npos; open = path.find('[', open + 1)) {
      size_t end = std::min(path.find(']', open), path.size());
      auto number = parse_u64(path.substr(open + 1, end - open - 1));
      if (number) return number;
    }
    return std::nullopt;
  }

  static uint32_t line_of(const TomlEntry& entry, std::optional<uint64_t> element) {
    bool known = element && *element < entry.element_lines.size();
    return known ? entry.element_lines[*element] : entry.line;
  }

  // "args['X']" and "cell[2].name" → "args.X", "cell.name"
  static std::string plain(std::string_view path) {
    std::string out;
    for (size_t i = 0; i < path.size(); ++i) {
      if (path[i] != '[') {
        if (path[i] != ']' && path[i] != '\'') out += path[i];
        continue;
      }
      bool key = i + 1 < path.size() && path[i + 1] == '\'';
      if (key) {
        out += '.';
      } else {
        while (i < path.size() && path[i] != ']') ++i;
      }
    }
    return out;
  }

  const std::vector<TomlEntry>& entries_;
  std::string_view document_;
};

/// A key of the file that TOML takes for one of the table before it, in a table that has none of
/// that name, or only words: "axes.exclude".
std::optional<std::string> misplaced_key(const TomlEntry& entry) {
  if (entry.path.size() > 1) {
    const std::string &table = entry.path[0], &key = entry.path[1];
    bool is_word = entry.path.size() == 2 && entry.value.string() != nullptr;
    bool is_text_table = table == "args" || table == "labels" || table == "annotations";
    auto axes = axis_names();
    bool is_axis = std::find(axes.begin(), axes.end(), key) != axes.end();
    bool is_odd = (table == "axes" && !is_axis) || (is_text_table && !is_word);
    if (is_odd && has_key<Document>(key)) return table + "." + key;
    return std::nullopt;
  }
  if (entry.path[0] != "cell" || entry.value.array() == nullptr) return std::nullopt;
  const json::Array& cells = *entry.value.array();
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].object() == nullptr) continue;
    for (const auto& [key, value] : *cells[i].object()) {
      bool is_odd = !has_key<CellDocument>(key) && has_key<Document>(key);
      if (is_odd) return fmt::format("cell[{}].{}", i, key);
    }
  }
  return std::nullopt;
}

Result<void> check_places(const std::vector<TomlEntry>& entries, const Lines& lines) {
  for (const TomlEntry& entry : entries) {
    auto path = misplaced_key(entry);
    if (!path) continue;
    std::string key = path->substr(path->rfind('.') + 1);
    std::string table = entry.path[0] == "cell" ? "[[cell]]" : "[" + entry.path[0] + "]";
    return lines.fault(
        *path,
        make_error(Kind::usage, fmt::format("'{}' is a key of the file, not of {}", key, table),
                   fmt::format("{} = … before the first [table]", key)));
  }
  return {};
}

json::Value& member_of(json::Value& value, const std::string& name) {
  if (value.object() == nullptr) value = json::Object{};
  json::Object& members = *value.get_if<json::Object>();
  auto at = std::find_if(members.begin(), members.end(),
                         [&](const auto& member) { return member.first == name; });
  return at != members.end() ? at->second : members.emplace_back(name, nullptr).second;
}

json::Value as_json(const std::vector<TomlEntry>& entries) {
  json::Value out = json::Object{};
  for (const TomlEntry& entry : entries) {
    json::Value* place = &out;
    for (const std::string& name : entry.path) place = &member_of(*place, name);
    *place = entry.value;
  }
  return out;
}

bool fits(const AxisValues& cell, const AxisValues& wish) {
  return std::all_of(wish.begin(), wish.end(), [&](const auto& one) {
    auto value = cell.find(one.first);
    return value != cell.end() && value->second == one.second;
  });
}

bool fits_any(const AxisValues& cell, const std::vector<AxisValues>& wishes) {
  return std::any_of(wishes.begin(), wishes.end(),
                     [&](const AxisValues& wish) { return fits(cell, wish); });
}

bool is_cell_name(std::string_view name) {
  bool begins = !name.empty() && name[0] != '-' && name[0] != '.';
  return begins && name.size() <= kMaxCellName && std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '.' || c == '-';
         });
}

/// What stands for the words in braces.
struct Words {
  std::map<std::string, std::string> values;
  std::string single;  ///< the name of the [[cell]] that they are of; empty: none
};

/// From a document to the cells that it stands for.
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
      return lines_.fault("image", make_error(Kind::usage, "missing: the name that the index gets",
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
                          "expected 'buildah' or 'docker', got " + quoted(document_.builder));
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
          return lines_.fault(place, make_error(Kind::usage, quoted(values[i]) + " is there twice"),
                              i);
        }
      }
    }
    TRY(check_wishes("exclude", document_.exclude));
    return check_wishes("only", document_.only);
  }

  // A typo here would exclude nothing, in silence.
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
                              fmt::format("no axis {} in [axes]{}", quoted(axis),
                                          near ? fmt::format("; did you mean '{}'?", *near) : ""));
        }
        const std::vector<std::string>& values = known->second;
        if (std::find(values.begin(), values.end(), value) != values.end()) continue;
        auto near = nearest(value, {values.begin(), values.end()});
        return lines_.fault(place,
                            fmt::format("axis '{}' has no value {}{}", axis, quoted(value),
                                        near ? fmt::format("; did you mean '{}'?", *near)
                                             : fmt::format(", but: {}", join(values, ", "))));
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
      // Without a matrix there is one cell, unless they are all written down.
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

  /// What a cell says of itself counts more; of arguments and labels name by name.
  static Recipe over(Recipe under, const Recipe& own) {
    auto take = [](auto& to, const auto& from) {
      if (!from.empty()) to = from;
    };
    // The ways exclude each other.
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

  /// A [[cell]] gets what is said for all cells, and may lack the axis that it speaks of.
  static Error fault_of_single(const std::string& place, const std::string& text,
                               const Words& words, Error error) {
    for (std::string_view axis : axis_names()) {
      bool lacks = !words.values.contains(std::string(axis)) &&
                   text.find(fmt::format("{{{}}}", axis)) != std::string::npos;
      if (!lacks) continue;
      std::string_view value = axis == "platform" ? "linux/amd64" : "none";
      return make_error(Kind::usage,
                        fmt::format("{}: cell '{}' has no {}", quoted(text), words.single, axis),
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
                                             quoted(name), kMaxCellName));
    }
    Cell cell;
    cell.name = std::move(name);
    Words words{words_of(axes, cell.name), origin == Origin::single ? cell.name : ""};
    TRY(add_nfd(place, recipe, words, axes));
    auto platform = axes.find("platform");
    cell.platform = platform != axes.end() ? platform->second : recipe.platform;
    cell.adopt = TRY(filled("adopt", recipe.adopt, words));
    // How others are built may ask for words that an adopted cell does not have.
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

  /// What the rules ask becomes axes of the cell, where it says nothing of its own.
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
      return lines_.fault(place, fmt::format("{} {} asks for less than {} does: {}", axis,
                                             quoted(declared), quoted(path), value));
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

  // Clients that know nothing of variants take the first entry.
  void sort() {
    auto is_generic = [&](const Cell& cell) { return cell.name == document_.generic; };
    std::stable_sort(file_.cells.begin(), file_.cells.end(), [&](const Cell& a, const Cell& b) {
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
  std::vector<TomlEntry> entries = TRY(policy::parse_toml(text, document));
  if (entries.size() > kMaxEntries) {
    return make_error(Kind::corrupt,
                      fmt::format("{}: more than {} entries", document, kMaxEntries));
  }
  Lines lines(entries, document);
  TRY(check_places(entries, lines));
  auto made = json::from_value<Document>(as_json(entries), document);
  if (!made.ok()) return lines.fault_of_json(std::move(made).error());
  return Maker(std::move(*made), lines, read).make();
}

Result<Cell> cell_named(const BakeFile& file, std::string_view name) {
  std::vector<std::string_view> names;
  for (const Cell& cell : file.cells) {
    if (cell.name == name) return cell;
    names.push_back(cell.name);
  }
  auto near = nearest(name, names);
  return make_error(Kind::not_found,
                    fmt::format("no cell {}{}", quoted(name),
                                near ? fmt::format("; did you mean '{}'?", *near) : ""));
}

std::string cell_reference(const std::string& image, const std::string& cell) {
  return image + ".cell-" + cell;
}

}  // namespace berth::bake
