// SPDX-License-Identifier: Apache-2.0
#include "cli/core/report.hpp"

#include "base/text.hpp"
#include "cli/core/terminal.hpp"
#include "json/value.hpp"

namespace berth::cli {

void Report::warn(const std::string& text) {
  say("warning", text);
}

void Report::debug(const std::string& text) {
  if (verbosity_ == Verbosity::debug) say("debug", text);
}

void Report::say(std::string_view level, const std::string& text) {
  std::string line = program_ + ": " + std::string(level) + ": " + text;
  if (format_ == LogFormat::json) {
    line = json::dump(json::Object{{"level", level}, {"message", text}});
  }
  auto write = [&] { terminal_.write(Stream::err, escape_controls(line) + "\n"); };
  if (lines_ != nullptr) {
    lines_->aside(write);
  } else {
    write();
  }
}

void Report::error(const Error& error) {
  if (format_ == LogFormat::json) {
    json::Array context(error.context.rbegin(), error.context.rend());
    json::Object object{{"level", "error"},
                        {"message", to_line(error)},
                        {"kind", kind_name(error.kind)},
                        {"errno", error.sys_errno == 0 ? json::Value() : error.sys_errno},
                        {"what", error.what},
                        {"hint", error.hint.empty() ? json::Value() : error.hint},
                        {"context", std::move(context)},
                        {"where", place_text(error.where)}};
    terminal_.write(Stream::err, json::dump(object) + "\n");
    return;
  }
  terminal_.write(Stream::err, program_ + ": " + to_line(error) + "\n");
  if (verbosity_ == Verbosity::debug) {
    terminal_.write(Stream::err, "  at " + place_text(error.where) + "\n");
  }
}

void Report::reason(const std::string& why, const std::string& remedy) {
  std::string line = program_ + ": why: " + why + "; try: " + remedy;
  if (format_ == LogFormat::json) {
    line = json::dump(json::Object{{"level", "info"}, {"why", why}, {"try", remedy}});
  }
  terminal_.write(Stream::err, escape_controls(line) + "\n");
}

std::string place_text(const SourceLocation& where) {
  std::string_view file = where.file;
  if (size_t src = file.rfind("/src/"); src != std::string_view::npos) file.remove_prefix(src + 1);
  return std::string(file) + ":" + std::to_string(where.line);
}

}  // namespace berth::cli
