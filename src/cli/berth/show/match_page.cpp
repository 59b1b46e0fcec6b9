// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/match_page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace berth::cli {
namespace {

using match::Outcome;

/// By Outcome. Signs differ in form as well as in colour.
struct Look {
  const char *css, *sign, *words;
};
constexpr std::array<Look, 4> kLooks = {
    {{"p", "✓", "pass"}, {"b", "~", "runs, but"}, {"u", "?", "unknown"}, {"f", "✗", "fail"}}};

const Look& look_of(Outcome outcome) {
  return kLooks[static_cast<size_t>(outcome)];
}

// The names of images and nodes, and parts of reasons, are foreign text.
std::string to_html(std::string_view text) {
  std::string out;
  for (char c : escape_controls(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

/// With a line break allowed after each '/', where browsers allow none.
std::string name_to_html(std::string_view name) {
  std::string out;
  for (char c : to_html(name)) {
    out += c;
    if (c == '/') out += "<wbr>";
  }
  return out;
}

/// "NVIDIA A10, driver 550.163.01": what distinguishes the node for images with GPU code.
std::string hardware_of(const node::Profile& node) {
  std::vector<std::string> words;
  for (const node::NodeGpu& gpu : node.gpus) {
    const std::string& name = !gpu.model.empty()                ? gpu.model
                              : !gpu.compute_capability.empty() ? gpu.compute_capability
                                                                : gpu.architecture;
    if (std::ranges::find(words, name) == words.end()) words.push_back(name);
  }
  if (words.empty()) words.push_back("no GPU");
  if (!node.driver.module_version.empty()) words.push_back("driver " + node.driver.module_version);
  if (!node.cpu.microarchitecture.empty()) words.push_back(node.cpu.microarchitecture);
  return join(words, ", ");
}

// Both headers stay while the table is scrolled in its own box; the page itself never gets wider
// than the window.
constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Which image runs on which node</title>
<style>
:root { color-scheme: light dark; --ground: #fff; --text: #1c1c1c; --line: #c8c8c8; --soft: #626262;
  --p: #d6efd8; --b: #fbe9b4; --u: #dfe3ea; --f: #f6c9c6; --mark: #1c5fb8; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181b; --text: #e8e8e8; --line: #454a50;
  --soft: #a6abb2; --p: #1e4527; --b: #55450f; --u: #3a414b; --f: #622420; --mark: #8db9f5; } }
* { box-sizing: border-box; }
body { margin: 1rem; background: var(--ground); color: var(--text);
  font: 14px/1.4 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.3rem; margin: 0 0 .3rem; } h2 { font-size: 1.05rem; margin: 1.2rem 0 .4rem; }
.box { overflow: auto; max-height: 85vh; max-width: 100%; width: fit-content;
  border: 1px solid var(--line); }
table { border-collapse: separate; border-spacing: 0; }
th, td { border-right: 1px solid var(--line); border-bottom: 1px solid var(--line);
  padding: .15rem .4rem; text-align: left; vertical-align: top; background: var(--ground); }
.matrix td { text-align: center; white-space: nowrap; }
.matrix thead th { position: sticky; top: 0; z-index: 2; vertical-align: bottom; }
.matrix thead span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 15rem;
  text-align: left; font-weight: normal; }
.matrix th:first-child { position: sticky; left: 0; z-index: 1; width: 16rem; min-width: 16rem;
  max-width: 16rem; }
.matrix thead th:first-child { z-index: 3; }
@media (max-width: 40rem) { .matrix th:first-child { width: 8rem; min-width: 8rem; } }
small { display: block; color: var(--soft); font-weight: normal; }
.key span, td.p, td.b, td.u, td.f { color: var(--text); }
.p { background: var(--p); } .b { background: var(--b); } .u { background: var(--u); }
.f { background: var(--f); }
.key span { display: inline-block; padding: .1rem .5rem; margin: 0 .4rem .3rem 0; }
td a { color: inherit; } tr:target td { outline: 2px solid var(--mark); outline-offset: -2px; }
.reasons { width: 100%; min-width: 44rem; } .reasons th { position: sticky; top: 0; }
.reasons th, .short, .verdict { white-space: nowrap; } .reasons tr { scroll-margin-top: 2.2rem; }
.short { text-align: right; }
</style>
)";

}  // namespace

size_t MatchPage::number_of(Reason reason) {
  auto [place, added] = numbers_.try_emplace({reason.outcome, reason.reason}, reasons_.size() + 1);
  if (added) reasons_.push_back(std::move(reason));
  ++reasons_[place->second - 1].count;
  return place->second;
}

MatchPage::Cell MatchPage::cell_of(const std::string& image, const engine::Answer& answer) {
  const match::Judged* best = answer.ranking.best();
  Reason reason{Outcome::fail, "", "", "", 0, image + " on " + answer.node.name};
  if (best == nullptr) {
    reason.reason = match::refusal(answer.ranking);
    // Of an index, each entry has advice of its own.
    if (answer.ranking.entries.size() == 1) best = &answer.ranking.entries.front();
  } else {
    reason.outcome = best->verdict.outcome;
  }
  Cell cell{reason.outcome, 0, {}};
  if (best != nullptr && answer.ranking.entries.size() > 1) {
    cell.label = match::entry_label(best->candidate).value_or("");
  }
  const match::Clause* clause = best == nullptr ? nullptr : best->verdict.decisive();
  if (clause != nullptr) {
    if (reason.reason.empty()) reason.reason = clause->reason;
    reason.remedy = clause->remedy;
    reason.lift = clause->lift;
  }
  if (!reason.reason.empty()) cell.reason = number_of(std::move(reason));
  return cell;
}

void MatchPage::add(std::string image, const std::vector<engine::Answer>& answers) {
  std::vector<Cell>& column = cells_.emplace_back();
  for (const engine::Answer& answer : answers) {
    if (images_.empty()) nodes_.push_back({answer.node.name, hardware_of(answer.node)});
    column.push_back(cell_of(image, answer));
  }
  images_.push_back(std::move(image));
}

std::string MatchPage::text() const {
  std::array<uint64_t, kLooks.size()> counts{};
  std::string rows;
  for (size_t n = 0; n < nodes_.size(); ++n) {
    rows += fmt::format("<tr><th scope=\"row\">{}<small>{}</small></th>", to_html(nodes_[n].name),
                        to_html(nodes_[n].hardware));
    for (const std::vector<Cell>& column : cells_) {
      const Cell& cell = column[n];
      const Look& look = look_of(cell.outcome);
      ++counts[static_cast<size_t>(cell.outcome)];
      std::string sign = look.sign;
      if (cell.reason != 0) sign = fmt::format("<a href=\"#r{0}\">{1} {0}</a>", cell.reason, sign);
      if (!cell.label.empty()) sign += fmt::format("<small>{}</small>", to_html(cell.label));
      rows += fmt::format("<td class=\"{}\">{}</td>", look.css, sign);
    }
    rows += "</tr>\n";
  }
  std::string out(kHead);
  out +=
      fmt::format("<h1>Which image runs on which node</h1>\n<p class=\"key\">{} images, {} nodes:",
                  images_.size(), nodes_.size());
  for (size_t i = 0; i < kLooks.size(); ++i) {
    out += fmt::format(" <span class=\"{}\">{} {}: {}</span>", kLooks[i].css, kLooks[i].sign,
                       kLooks[i].words, counts[i]);
  }
  out +=
      "</p>\n<div class=\"box\" tabindex=\"0\"><table class=\"matrix\">\n<thead><tr><th>Node</th>";
  for (const std::string& image : images_) {
    out += fmt::format("<th scope=\"col\"><span>{}</span></th>", name_to_html(image));
  }
  out += "</tr></thead>\n<tbody>\n" + rows + "</tbody></table></div>\n";
  if (reasons_.empty()) return out;
  out +=
      "<h2>Reasons</h2>\n<div class=\"box\"><table class=\"reasons\">\n<thead><tr><th>No.</th>"
      "<th>Verdict</th><th>Because</th><th>Try</th><th>Pairs</th><th>For "
      "example</th></tr></thead>\n";
  for (size_t i = 0; i < reasons_.size(); ++i) {
    const Reason& reason = reasons_[i];
    std::string advice = to_html(reason.remedy);
    if (!reason.lift.empty()) {
      advice += fmt::format("{}a node with {}", advice.empty() ? "" : "; ", to_html(reason.lift));
    }
    const Look& look = look_of(reason.outcome);
    out += fmt::format(
        "<tr id=\"r{0}\"><td class=\"short\">{0}</td><td class=\"{1} verdict\">{2} "
        "{3}</td><td>{4}</td>"
        "<td>{5}</td><td class=\"short\">{6}</td><td>{7}</td></tr>\n",
        i + 1, look.css, look.sign, look.words, to_html(reason.reason), advice, reason.count,
        name_to_html(reason.example));
  }
  return out + "</table></div>\n";
}

}  // namespace berth::cli
