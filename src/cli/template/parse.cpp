// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.hpp"
#include "cli/template/syntax.hpp"

namespace berth::cli::syntax {
namespace {

using NodeKind = Node::Kind;
using OperandKind = Operand::Kind;

bool is_keyword(std::string_view word) {
  for (std::string_view keyword :
       {"block", "break", "continue", "define", "else", "end", "if", "range", "template", "with"}) {
    if (word == keyword) return true;
  }
  return false;
}

std::string shown(const Token& token) {
  switch (token.kind) {
    case TokenKind::close:
      return "'}}'";
    case TokenKind::field:
      return quote("." + token.text);
    case TokenKind::dot:
      return "'.'";
    case TokenKind::string:
      return quote("\"" + token.text + "\"");
    case TokenKind::end_of_text:
      return "the end";
    default:
      return quote(token.text);
  }
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Result<std::vector<Node>> parse() {
    variables_.emplace_back("$");
    List list = TRY(parse_list());
    if (list.ended_by) return error_at(list.ended_by->place, unopened(*list.ended_by));
    return std::move(list.nodes);
  }

 private:
  /// The nodes up to {{end}} or {{else}}. The "{{" and the word of that action are consumed.
  struct List {
    std::vector<Node> nodes;
    const Token* ended_by = nullptr;  ///< "end" or "else"; null: the end of the text
  };

  static std::string unopened(const Token& token) {
    return "'{{" + token.text + "}}' without its '{{if}}', '{{range}}' or '{{with}}'";
  }

  const Token& peek() const { return tokens_[at_]; }
  bool at(TokenKind kind) const { return peek().kind == kind; }
  bool at_word(std::string_view word) const { return at(TokenKind::word) && peek().text == word; }
  const Token& take() { return tokens_[at_++]; }
  bool take_if(TokenKind kind) {
    if (!at(kind)) return false;
    ++at_;
    return true;
  }

  Result<void> close() {
    if (take_if(TokenKind::close)) return {};
    return error_at(peek().place, "expected '}}' instead of " + shown(peek()));
  }

  Result<List> parse_list() {
    List list;
    while (!at(TokenKind::end_of_text)) {
      if (at(TokenKind::text)) {
        const Token& token = take();
        list.nodes.push_back({NodeKind::text, token.place, token.text, {}, {}, {}});
        continue;
      }
      const Token& open = take();
      if (at_word("end") || at_word("else")) {
        list.ended_by = &take();
        return list;
      }
      list.nodes.push_back(TRY(parse_action(open.place)));
    }
    return list;
  }

  Result<Node> parse_action(Place place) {
    if (at_word("if")) return parse_control(NodeKind::if_, place);
    if (at_word("with")) return parse_control(NodeKind::with, place);
    if (at_word("range")) return parse_control(NodeKind::range, place);
    if (at_word("break") || at_word("continue")) {
      const Token& word = take();
      if (ranges_ == 0) return error_at(word.place, "'{{" + word.text + "}}' outside of a range");
      TRY(close());
      return Node{
          word.text == "break" ? NodeKind::break_ : NodeKind::continue_, place, "", {}, {}, {}};
    }
    if (at_word("define") || at_word("template") || at_word("block")) {
      return error_at(peek().place, quote(peek().text) + " is not supported");
    }
    Node node{NodeKind::action, place, "", {}, {}, {}};
    node.pipeline = TRY(parse_pipeline(1));
    TRY(close());
    return node;
  }

  Result<Node> parse_control(NodeKind kind, Place place) {
    if (++depth_ > kMaxDepth) return error_at(place, "nested too deeply");
    const std::string word = take().text;
    size_t scope = variables_.size();
    Node node{kind, place, "", {}, {}, {}};
    node.pipeline = TRY(parse_pipeline(kind == NodeKind::range ? 2 : 1));
    TRY(close());
    ranges_ += kind == NodeKind::range ? 1 : 0;
    List body = TRY(parse_list());
    ranges_ -= kind == NodeKind::range ? 1 : 0;
    node.body = std::move(body.nodes);
    if (body.ended_by == nullptr)
      return error_at(place, "'{{" + word + "}}' without its '{{end}}'");
    if (body.ended_by->text == "else") {
      TRY(parse_else(node, word));
    } else {
      TRY(close());
    }
    variables_.resize(scope);
    --depth_;
    return node;
  }

  Result<void> parse_else(Node& node, const std::string& word) {
    // "{{else if x}}" is "{{else}}{{if x}}" with one {{end}} for both.
    if (at_word("if") || at_word("with")) {
      if (peek().text != word) {
        return error_at(peek().place, "'{{else " + peek().text + "}}' in '{{" + word + "}}'");
      }
      node.otherwise.push_back(TRY(parse_control(node.kind, peek().place)));
      return {};
    }
    TRY(close());
    List list = TRY(parse_list());
    if (list.ended_by == nullptr) {
      return error_at(node.place, "'{{" + word + "}}' without its '{{end}}'");
    }
    if (list.ended_by->text == "else") return error_at(list.ended_by->place, "a second '{{else}}'");
    node.otherwise = std::move(list.nodes);
    return close();
  }

  Result<Pipeline> parse_pipeline(size_t most_variables) {
    Pipeline pipeline;
    pipeline.place = peek().place;
    TRY(parse_variables(pipeline, most_variables));
    do {
      const bool first = pipeline.commands.empty();
      const Place place = peek().place;
      Command command = TRY(parse_command());
      OperandKind kind = command.operands[0].kind;
      bool constant =
          kind == OperandKind::dot || kind == OperandKind::nil || kind == OperandKind::constant;
      if (!first && constant) return error_at(place, "expected a function after '|'");
      pipeline.commands.push_back(std::move(command));
    } while (take_if(TokenKind::pipe));
    // Variables are declared after their value is parsed: "$x := $x" refers to an older "$x".
    if (!pipeline.assigns) {
      variables_.insert(variables_.end(), pipeline.variables.begin(), pipeline.variables.end());
    }
    return pipeline;
  }

  Result<void> parse_variables(Pipeline& pipeline, size_t most) {
    size_t length = 0;
    if (at(TokenKind::variable)) {
      TokenKind next = tokens_[at_ + 1].kind;
      if (next == TokenKind::declare || next == TokenKind::assign) length = 1;
      if (next == TokenKind::comma) length = 2;
    }
    if (length == 0) return {};
    if (length > most) {
      return error_at(tokens_[at_ + 1].place, "only a range declares two variables");
    }
    pipeline.variables.push_back(take().text);
    if (length == 2) {
      take();
      if (!at(TokenKind::variable)) {
        return error_at(peek().place, "expected a variable instead of " + shown(peek()));
      }
      pipeline.variables.push_back(take().text);
    }
    if (at(TokenKind::assign)) {
      for (const std::string& name : pipeline.variables) TRY(check_variable(name, peek().place));
      pipeline.assigns = true;
    } else if (!at(TokenKind::declare)) {
      return error_at(peek().place, "expected ':=' instead of " + shown(peek()));
    }
    take();
    return {};
  }

  Result<void> check_variable(const std::string& name, Place place) const {
    if (std::ranges::find(variables_, name) != variables_.end()) return {};
    std::vector<std::string_view> known(variables_.begin() + 1, variables_.end());  // not "$"
    auto near = nearest(name, known);
    return error_at(place, "unknown variable " + quote(name) +
                               (near ? ", did you mean " + quote(*near) + "?" : ""));
  }

  Result<Command> parse_command() {
    Command command;
    while (!at(TokenKind::close) && !at(TokenKind::pipe) && !at(TokenKind::right)) {
      if (!command.operands.empty() && !peek().after_blank) {
        return error_at(peek().place, "expected a blank before " + shown(peek()));
      }
      command.operands.push_back(TRY(parse_operand()));
    }
    if (command.operands.empty()) {
      return error_at(peek().place, "expected a value instead of " + shown(peek()));
    }
    return command;
  }

  Result<Operand> parse_operand() {
    const Token& token = take();
    Operand operand;
    operand.place = token.place;
    switch (token.kind) {
      case TokenKind::dot:
        return operand;
      case TokenKind::field:
        operand.kind = OperandKind::field;
        operand.fields.push_back(token.text);
        break;
      case TokenKind::variable:
        TRY(check_variable(token.text, token.place));
        operand.kind = OperandKind::variable;
        operand.name = token.text;
        break;
      case TokenKind::integer:
      case TokenKind::real:
      case TokenKind::string:
        operand.kind = OperandKind::constant;
        operand.constant = token.kind == TokenKind::integer ? json::Value(token.integer)
                           : token.kind == TokenKind::real  ? json::Value(token.real)
                                                            : json::Value(token.text);
        return operand;
      case TokenKind::word:
        return parse_word(token, std::move(operand));
      case TokenKind::left:
        if (++depth_ > kMaxDepth) return error_at(token.place, "nested too deeply");
        operand.kind = OperandKind::pipeline;
        operand.inner.push_back(TRY(parse_pipeline(0)));
        if (!take_if(TokenKind::right)) return error_at(token.place, "'(' without its ')'");
        --depth_;
        break;
      default:
        return error_at(token.place, "unexpected " + shown(token));
    }
    while (at(TokenKind::field) && !peek().after_blank) operand.fields.push_back(take().text);
    return operand;
  }

  static Result<Operand> parse_word(const Token& token, Operand operand) {
    if (token.text == "nil") {
      operand.kind = OperandKind::nil;
      return operand;
    }
    if (token.text == "true" || token.text == "false") {
      operand.kind = OperandKind::constant;
      operand.constant = token.text == "true";
      return operand;
    }
    const auto& names = function_names();
    if (std::ranges::find(names, token.text) == names.end()) {
      if (is_keyword(token.text)) return error_at(token.place, "unexpected " + shown(token));
      auto near = nearest(token.text, names);
      return error_at(token.place, "unknown function " + quote(token.text) +
                                       (near ? ", did you mean " + quote(*near) + "?" : ""));
    }
    operand.kind = OperandKind::function;
    operand.name = token.text;
    return operand;
  }

  std::vector<Token> tokens_;
  size_t at_ = 0;
  size_t depth_ = 0;
  size_t ranges_ = 0;
  std::vector<std::string> variables_;
};

}  // namespace

Result<std::vector<Node>> parse(std::string_view text) {
  if (text.size() > kMaxTextBytes) return error_at({}, "longer than 64 KiB");
  return Parser(TRY(read_tokens(text))).parse();
}

}  // namespace berth::cli::syntax
