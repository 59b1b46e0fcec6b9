// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/show/bake_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/core/table.hpp"
#include "json/fields.hpp"

namespace berth::cli {
namespace {

using engine::BakeReport;
using engine::CellReport;
using engine::CellState;

bool is_end(CellState state) {
  return state != CellState::waiting && state != CellState::building &&
         state != CellState::checking;
}

bool is_good(CellState state) {
  return state == CellState::built || state == CellState::unchanged;
}

/// "x86-64-v3, cuda 12.8, sm_90": the target of a cell.
std::string axes_text(const bake::AxisValues& axes) {
  std::vector<std::string> parts;
  for (const auto& [axis, value] : axes) parts.push_back(axis + "=" + value);
  return parts.empty() ? "-" : join(parts, " ");
}

std::string digest_text(const CellReport& cell) {
  return cell.digest.empty() ? "-" : cell.digest.substr(0, 19);
}

std::string time_text(const CellReport& cell) {
  if (cell.seconds <= 0) return "-";
  return fmt::format("{:.1f} s", cell.seconds);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::string_view line : split(text, '\n')) {
    if (!line.empty()) lines.emplace_back(line);
  }
  return lines;
}

/// The reason for the state of a cell. Remarks about a good cell are printed in full at the end.
std::string because(const CellReport& cell) {
  return is_good(cell.state) && !cell.findings.empty() ? "" : cell.text;
}

std::string line_of(const CellReport& cell) {
  std::string line = cell.cell.name + ": " + to_json_text(cell.state);
  if (std::string text = because(cell); !text.empty()) line += ": " + escape_controls(text);
  return line + "\n";
}

json::Value end_json(const BakeReport& report) {
  json::Value digest;
  if (!report.digest.empty()) digest = report.digest;
  return json::Object{{"event", "result"}, {"image", report.image}, {"digest", std::move(digest)}};
}

size_t count(const BakeReport& report, CellState state) {
  return static_cast<size_t>(
      std::ranges::count_if(report.cells, [&](const auto& cell) { return cell.state == state; }));
}

}  // namespace

int bake_status(const BakeReport& report, const engine::BakeRequest& request) {
  if (report.has(CellState::failed)) return kCellFailed;
  if (report.has(CellState::lies)) return kCellLies;
  if (request.merge && report.has(CellState::changed)) return kCellMissing;
  return 0;
}

std::string bake_table(const BakeReport& report) {
  Table table({"CELL", "FOR", "STATE", "DIGEST", "TIME", "BECAUSE"});
  for (const CellReport& cell : report.cells) {
    table.add({cell.cell.name, axes_text(cell.cell.axes), to_json_text(cell.state),
               digest_text(cell), time_text(cell), because(cell)});
  }
  return table.text();
}

json::Value cell_json(const CellReport& cell) {
  json::Object axes;
  for (const auto& [axis, value] : cell.cell.axes) axes.emplace_back(axis, value);
  json::Array findings;
  for (const bake::Finding& finding : cell.findings) {
    bool lie = finding.kind == bake::Finding::Kind::lie;
    findings.push_back(json::Object{
        {"kind", lie ? "lie" : "remark"}, {"about", finding.about}, {"text", finding.text}});
  }
  auto or_null = [](const std::string& text) { return text.empty() ? json::Value() : text; };
  json::Value inputs;
  if (!cell.inputs.empty()) inputs = cell.inputs.text();
  return json::Object{{"event", "cell"},
                      {"cell", cell.cell.name},
                      {"state", to_json_text(cell.state)},
                      {"axes", std::move(axes)},
                      {"inputs", std::move(inputs)},
                      {"digest", or_null(cell.digest)},
                      {"text", or_null(cell.text)},
                      {"findings", std::move(findings)},
                      {"log", or_null(cell.log)},
                      {"seconds", cell.seconds}};
}

BakeDisplay::BakeDisplay(Session& session, bool live, bool json)
    : session_(session), mode_(Mode::none), lines_(session.terminal, Stream::out) {
  if (!live) return;
  mode_ = session.terminal.is_terminal(Stream::out) ? Mode::table : Mode::lines;
  if (json) mode_ = Mode::json;
  session.report.above(&lines_);
}

engine::BakeProgress BakeDisplay::progress() {
  return [this](const BakeReport& all, const CellReport& changed) { show(all, changed); };
}

void BakeDisplay::finish() {
  session_.report.above(nullptr);
  mode_ = Mode::none;
}

void BakeDisplay::show(const BakeReport& all, const CellReport& changed) {
  if (mode_ == Mode::none) return;
  if (mode_ == Mode::json) {
    if (changed.state == CellState::waiting) return;
    return print(session_, json::dump(cell_json(changed)) + "\n");
  }
  bool failed = changed.state == CellState::failed;
  if (mode_ == Mode::lines) {
    if (failed) show_log(changed);
    if (changed.state != CellState::waiting) print(session_, line_of(changed));
    return;
  }
  if (failed) lines_.aside([&] { show_log(changed); });
  ScreenSize room = lines_.room();
  std::vector<std::string> lines = lines_of(bake_table(all));
  for (std::string& line : lines) line = truncate(line, room.columns);
  // If there are more cells than rows, finished cells are left out first.
  size_t most = std::max<size_t>(room.rows, 3) - 2;
  for (size_t i = all.cells.size(); i > 0 && lines.size() > most; --i) {
    if (is_end(all.cells[i - 1].state)) lines.erase(lines.begin() + static_cast<long>(i));
  }
  if (lines.size() > most) lines.resize(most);
  size_t good = count(all, CellState::built) + count(all, CellState::unchanged);
  lines.push_back(fmt::format("{} of {} cells", good, all.cells.size()));
  lines_.draw(std::move(lines));
}

void BakeDisplay::show_log(const CellReport& cell) {
  if (cell.log_end.empty()) return;
  std::string text = "---- " + cell.cell.name + ": the end of " + cell.log + "\n";
  for (const std::string& line : lines_of(cell.log_end)) text += escape_controls(line) + "\n";
  session_.terminal.write(Stream::err, text + "----\n");
}

void print_end(Session& session, const BakeReport& report, const engine::BakeRequest& request,
               bool json) {
  if (json) return print(session, json::dump(end_json(report)) + "\n");
  for (const CellReport& cell : report.cells) {
    for (const bake::Finding& finding : cell.findings) {
      if (finding.kind == bake::Finding::Kind::remark) {
        session.report.warn("cell '" + cell.cell.name + "' " + finding.text + ", ignoring");
      }
    }
  }
  if (!report.digest.empty()) {
    return print(session, "Published " + report.image + "\nDigest: " + report.digest + "\n");
  }
  bool good =
      std::ranges::all_of(report.cells, [](const CellReport& cell) { return is_good(cell.state); });
  if (good || request.dry_run) return;
  std::vector<std::string> bad;
  for (const CellReport& cell : report.cells) {
    if (!is_good(cell.state)) bad.push_back(cell.cell.name + " (" + to_json_text(cell.state) + ")");
  }
  std::string what = request.cells.empty() ? "the index of " + quote(report.image) : "all cells";
  session.report.error(
      make_error(Kind::io, "publish " + what + ": not all cells are good: " + join(bad, ", "),
                 request.merge ? "berth bake --cell NAME, on the machine that builds it"
                               : "berth bake again; finished cells are kept"));
}

int print_fleet(Session& session, const BakeReport& report,
                const std::vector<engine::BakeTake>& takes, bool json) {
  std::set<std::string> taken;
  Table table({"NODE", "TAKES", "VERDICT", "BECAUSE"});
  bool uncovered = false;
  for (const engine::BakeTake& take : takes) {
    taken.insert(take.cell);
    uncovered = uncovered || take.cell.empty();
    std::string verdict = enum_text(take.outcome);
    if (json) {
      json::Value cell;
      if (!take.cell.empty()) cell = take.cell;
      print(session, json::dump(json::Object{{"event", "node"},
                                             {"node", take.node},
                                             {"cell", std::move(cell)},
                                             {"verdict", verdict},
                                             {"reason", take.reason}}) +
                         "\n");
    } else {
      table.add({take.node, take.cell.empty() ? "-" : take.cell,
                 take.outcome == match::Outcome::runs_but ? "runs, but" : verdict, take.reason});
    }
  }
  if (!json) print(session, table.text());
  for (const CellReport& cell : report.cells) {
    if (!taken.contains(cell.cell.name) && !json) {
      print(session, "no node takes " + cell.cell.name + "\n");
    }
  }
  return uncovered ? kNodeUncovered : 0;
}

}  // namespace berth::cli
