// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "cli/template/item.hpp"
#include "cli/template/syntax.hpp"
#include "cli/template/template.hpp"

namespace berth::cli {

using namespace syntax;

namespace {

constexpr size_t kMaxSteps = 500'000;

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

class Executor {
 public:
  explicit Executor(const TemplateData& data) : data_(data) {
    // The document outlives the execution, so it needs no owner here.
    root_.value = std::shared_ptr<const json::Value>(std::shared_ptr<void>(), &data.value);
    variables_.emplace_back("$", root_);
  }

  Result<std::string> run(const std::vector<Node>& nodes) {
    TRY(walk(nodes, root_));
    return std::move(out_);
  }

 private:
  enum class Flow { on, broken, next };  ///< how {{break}} and {{continue}} leave a body

  Result<void> step(Place place) {
    if (++steps_ > kMaxSteps) return error_at(place, "takes more than 500000 steps");
    if (out_.size() > kMaxOutputBytes) return error_at(place, "prints more than 16 MiB");
    return {};
  }

  Result<Flow> walk(const std::vector<Node>& nodes, const Item& dot) {
    for (const Node& node : nodes) {
      TRY(step(node.place));
      Flow flow = TRY(walk_node(node, dot));
      if (flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Result<Flow> walk_node(const Node& node, const Item& dot) {
    switch (node.kind) {
      case Node::Kind::text:
        out_ += node.text;
        return Flow::on;
      case Node::Kind::action: {
        Item item = TRY(evaluate(node.pipeline, dot));
        if (node.pipeline.variables.empty()) out_ += printed(item);
        return Flow::on;
      }
      case Node::Kind::break_:
        return Flow::broken;
      case Node::Kind::continue_:
        return Flow::next;
      default:
        break;
    }
    const size_t scope = variables_.size();
    auto flow = node.kind == Node::Kind::range ? walk_range(node, dot) : walk_branch(node, dot);
    variables_.resize(scope, {"", root_});
    return flow;
  }

  Result<Flow> walk_branch(const Node& node, const Item& dot) {
    Item item = TRY(evaluate(node.pipeline, dot));
    if (!is_true(item)) return walk(node.otherwise, dot);
    return walk(node.body, node.kind == Node::Kind::with ? item : dot);
  }

  Result<Flow> walk_range(const Node& node, const Item& dot) {
    Pipeline plain = node.pipeline;
    plain.variables.clear();
    Item item = TRY(evaluate(plain, dot));
    if (!item->is_null() && !item.is_list() && !item.is_map()) {
      return error_at(node.pipeline.place, "cannot range over " + std::string(kind_of(item)));
    }
    std::vector<std::pair<Item, Item>> elements;
    if (const json::Array* array = item->array()) {
      for (size_t i = 0; i < array->size(); ++i) {
        elements.emplace_back(make_item(static_cast<int64_t>(i)), part_of(item, (*array)[i]));
      }
    }
    for (const auto& [name, value] : sorted_members(item)) {
      elements.emplace_back(make_item(name), part_of(item, *value));
    }
    if (elements.empty()) return walk(node.otherwise, dot);
    for (const auto& [key, element] : elements) {
      TRY(step(node.place));
      const size_t scope = variables_.size();
      const auto& names = node.pipeline.variables;
      if (names.size() == 2) bind(node.pipeline, names[0], key);
      if (!names.empty()) bind(node.pipeline, names.back(), element);
      Flow flow = TRY(walk(node.body, element));
      variables_.resize(scope, {"", root_});
      if (flow == Flow::broken) break;
    }
    return Flow::on;
  }

  void bind(const Pipeline& pipeline, const std::string& name, const Item& item) {
    if (!pipeline.assigns) {
      variables_.emplace_back(name, item);
      return;
    }
    *find_variable(name) = item;
  }

  /// The innermost variable named `name`; the parser has checked that it exists.
  Item* find_variable(const std::string& name) {
    auto found = std::find_if(variables_.rbegin(), variables_.rend(),
                              [&](const auto& variable) { return variable.first == name; });
    return &found->second;
  }

  Result<Item> evaluate(const Pipeline& pipeline, const Item& dot) {
    TRY(step(pipeline.place));
    std::optional<Item> last;
    for (const Command& command : pipeline.commands) {
      last = TRY(evaluate(command, dot, last));
    }
    for (const std::string& name : pipeline.variables) bind(pipeline, name, *last);
    return *last;
  }

  /// `last` is the result of the command before the '|'. It becomes the last argument.
  Result<Item> evaluate(const Command& command, const Item& dot, const std::optional<Item>& last) {
    const Operand& first = command.operands[0];
    if (first.kind == Operand::Kind::function) return call(command, dot, last);
    if (first.kind == Operand::Kind::nil) return error_at(first.place, "'nil' is not a command");
    if (command.operands.size() == 1 && !last) return evaluate(first, dot);
    if (is_label(first)) {
      if (command.operands.size() + (last ? 1 : 0) != 2) {
        return error_at(first.place, "'.Label' takes 1 argument");
      }
      Item key = last ? *last : TRY(evaluate(command.operands[1], dot));
      if (key->string() == nullptr) {
        return error_at(first.place, "'.Label' expects a string, got " + std::string(kind_of(key)));
      }
      return make_item(data_.label(*key->string()));
    }
    return error_at(first.place, "only a function takes arguments");
  }

  bool is_label(const Operand& operand) const {
    return data_.label && operand.kind == Operand::Kind::field && operand.fields.size() == 1 &&
           operand.fields[0] == "Label";
  }

  Result<Item> call(const Command& command, const Item& dot, const std::optional<Item>& last) {
    const Operand& function = command.operands[0];
    if (function.name == "and" || function.name == "or") {
      return choose(command, dot, last, function.name == "or");
    }
    std::vector<Item> arguments;
    for (size_t i = 1; i < command.operands.size(); ++i) {
      arguments.push_back(TRY(evaluate(command.operands[i], dot)));
    }
    if (last) arguments.push_back(*last);
    if (data_.functions == Functions::titles && !arguments.empty()) {
      for (std::string_view name : {"json", "lower", "upper", "title", "truncate"}) {
        if (function.name == name) return arguments[0];
      }
    }
    return call_function(function.name, arguments, function.place);
  }

  /// For "and" and "or": the first argument that decides the result, or the last one. Arguments
  /// after it are not evaluated.
  Result<Item> choose(const Command& command, const Item& dot, const std::optional<Item>& last,
                      bool wanted) {
    std::optional<Item> item;
    for (size_t i = 1; i < command.operands.size(); ++i) {
      item = TRY(evaluate(command.operands[i], dot));
      if (is_true(*item) == wanted) return *item;
    }
    if (last) item = last;
    if (item) return *item;
    const Operand& function = command.operands[0];
    return error_at(function.place, "'" + function.name + "' takes at least 1 argument, got 0");
  }

  Result<Item> evaluate(const Operand& operand, const Item& dot) {
    TRY(step(operand.place));
    Item item = dot;
    switch (operand.kind) {
      case Operand::Kind::dot:
        return dot;
      case Operand::Kind::nil:
        return make_item(nullptr);
      case Operand::Kind::constant:
        return make_item(operand.constant);
      case Operand::Kind::field:
        break;
      case Operand::Kind::variable:
        item = *find_variable(operand.name);
        break;
      case Operand::Kind::function:
        item = TRY(call({{operand}}, dot, std::nullopt));
        break;
      case Operand::Kind::pipeline:
        item = TRY(evaluate(operand.inner[0], dot));
        break;
    }
    for (const std::string& name : operand.fields) item = TRY(member(item, name, operand.place));
    return item;
  }

  Result<Item> member(const Item& item, const std::string& name, Place place) const {
    if (const json::Value* value = item->find(name)) return part_of(item, *value, shape_of(name));
    if (item.shape == Item::Shape::map) return missing_item();
    if (item->object() == nullptr) {
      return error_at(place, "no field " + quote(name) + " in " + std::string(kind_of(item)));
    }
    if (contains(data_.shape.blank, name)) return make_item("");
    if (contains(data_.shape.absent, name)) {
      Item none = make_item(nullptr);
      none.shape = shape_of(name);
      return none;
    }
    std::vector<std::string_view> known;
    for (const auto& [other, value] : *item->object()) known.push_back(other);
    return unknown_field(name, known, place);
  }

  Item::Shape shape_of(std::string_view name) const {
    if (contains(data_.shape.maps, name)) return Item::Shape::map;
    return contains(data_.shape.lists, name) ? Item::Shape::list : Item::Shape::plain;
  }

 public:
  static Error unknown_field(const std::string& name, const std::vector<std::string_view>& known,
                             Place place) {
    auto near = nearest(name, known);
    return error_at(place, "unknown field " + quote(name) +
                               (near ? ", did you mean " + quote(*near) + "?" : ""));
  }

 private:
  const TemplateData& data_;
  Item root_;
  std::string out_;
  size_t steps_ = 0;
  std::vector<std::pair<std::string, Item>> variables_;
};

// ---- looking at a template without executing it -------------------------------------------------

/// Calls `look` for every operand. `root` says whether "." is the listed object at that place.
template <class Look>
void visit_operands(const Pipeline& pipeline, bool root, const Look& look);

template <class Look>
void visit_operands(const std::vector<Node>& nodes, bool root, const Look& look) {
  for (const Node& node : nodes) {
    visit_operands(node.pipeline, root, look);
    bool moves = node.kind == Node::Kind::with || node.kind == Node::Kind::range;
    visit_operands(node.body, root && !moves, look);
    visit_operands(node.otherwise, root, look);
  }
}

template <class Look>
void visit_operands(const Pipeline& pipeline, bool root, const Look& look) {
  for (const Command& command : pipeline.commands) {
    for (const Operand& operand : command.operands) {
      look(operand, root);
      for (const Pipeline& inner : operand.inner) visit_operands(inner, root, look);
    }
  }
}

}  // namespace

Result<Template> Template::parse(std::string_view text) {
  Template made;
  made.nodes_ = std::make_shared<const std::vector<Node>>(TRY(syntax::parse(text)));
  return made;
}

Result<std::string> Template::execute(const TemplateData& data) const {
  return Executor(data).run(*nodes_);
}

bool Template::uses(std::string_view field) const {
  bool found = false;
  visit_operands(*nodes_, true, [&](const Operand& operand, bool root) {
    bool dollar = operand.kind == Operand::Kind::variable && operand.name == "$";
    bool dot = operand.kind == Operand::Kind::dot && root;
    found |= (dot || dollar) && operand.fields.empty();
    found |= std::ranges::find(operand.fields, field) != operand.fields.end();
  });
  return found;
}

Result<void> Template::check_fields(const std::vector<std::string_view>& known) const {
  std::optional<Error> error;
  visit_operands(*nodes_, true, [&](const Operand& operand, bool root) {
    bool of_root = (operand.kind == Operand::Kind::field && root) ||
                   (operand.kind == Operand::Kind::variable && operand.name == "$");
    if (!of_root || operand.fields.empty() || error || contains(known, operand.fields[0])) return;
    error = Executor::unknown_field(operand.fields[0], known, operand.place);
  });
  if (error) return std::move(*error);
  return {};
}

}  // namespace berth::cli
