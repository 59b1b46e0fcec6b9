// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"

#include <ctime>

#include "base/text.hpp"
#include "cli/core/table.hpp"
#include "engine/context/client_config.hpp"
#include "engine/context/time.hpp"
#include "engine/request/text.hpp"

namespace berth::cli {
namespace {

Phase phase_of(image::LayerPhase phase) {
  switch (phase) {
    case image::LayerPhase::waiting:
      return Phase::waiting;
    case image::LayerPhase::downloading:
      return Phase::downloading;
    case image::LayerPhase::verifying:
      return Phase::verifying;
    case image::LayerPhase::unpacking:
      return Phase::unpacking;
    case image::LayerPhase::uploading:
      return Phase::uploading;
    case image::LayerPhase::done:
      return Phase::done;
    case image::LayerPhase::exists:
      return Phase::exists;
  }
  return Phase::waiting;
}

constexpr auto kRedrawEvery = std::chrono::milliseconds(50);

}  // namespace

Flag format_flag(std::string& target) {
  return choice_flag("format", "FORMAT", "Output format: table or json", &target,
                     {"table", "json"});
}

FlagTable format_flags(FormatOptions& o) {
  return {format_flag(o.format)};
}

Flag template_flag(std::string& target) {
  return {"format", 0, "FORMAT", "Output format: table, json or a template such as '{{.ID}}'",
          &target};
}

std::string format_or_usual(const Session& session, const std::string& given,
                            std::string_view member) {
  return given.empty() ? engine::client_config(session.context, member) : given;
}

Flag filter_flag(std::vector<engine::Filter>& target) {
  ReadValue read = [&target](std::string_view text) -> Result<void> {
    target.push_back(TRY(engine::parse_filter(text)));
    return {};
  };
  return {"filter", 'f', "KEY=VALUE", "Filter by a condition, such as name=web", std::move(read)};
}

ReadValue read_label(std::map<std::string, std::string>& target) {
  return [&target](std::string_view text) -> Result<void> {
    auto [name, value] = TRY(engine::parse_label(text));
    target[name] = std::move(value);
    return {};
  };
}

ReadValue read_moment(std::optional<int64_t>& target) {
  return [&target](std::string_view text) -> Result<void> {
    using namespace std::chrono;
    auto now = duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
    target = engine::parse_moment(text, now);
    if (!target) {
      return make_error(Kind::usage,
                        "expected a time such as 2026-11-20T12:00:00Z, or a duration such as 10m");
    }
    return {};
  };
}

Flag detach_keys_flag(std::optional<std::string>& target) {
  return {"detach-keys", 0, "KEYS", "Key sequence that detaches (ctrl-p,ctrl-q)", &target};
}

FlagTable grace_flags(GraceOptions& o) {
  ReadValue read_grace = [&o](std::string_view text) -> Result<void> {
    TRY(read_integer(o.grace)(text));
    if (*o.grace >= -1 && *o.grace <= 1'000'000) return {};
    return make_error(Kind::usage, "expected seconds, or -1 to wait forever");
  };
  return {{"time", 't', "SECONDS", "Time to wait before killing (10); -1 to wait forever",
           std::move(read_grace)}};
}

void print_detached(Session& session, const engine::RunOutcome& outcome) {
  if (outcome.detached) session.terminal.write(Stream::err, "read escape sequence\n");
}

void print_reason(Session& session, const engine::RunOutcome& outcome) {
  if (!outcome.reason) return;
  session.report.reason(outcome.reason->why, outcome.reason->remedy);
}

void add_registry_flags(FlagTable& flags, image::RegistryAccess& access) {
  flags.push_back(
      file_flag("tls-ca", 0, "Use the CA certificates in FILE, not the system's", &access.tls_ca));
  flags.push_back({"insecure-registry", 0, "HOST[:PORT]",
                   "Allow HTTP or an unverified certificate for this registry",
                   &access.insecure_registries});
}

TransferDisplay::TransferDisplay(Session& session, Stream stream, Direction direction, bool quiet)
    : session_(session),
      printer_(session.terminal, stream, direction,
               progress_mode(session.terminal, stream, quiet)) {
  session_.report.above(&printer_.bars());
}

TransferDisplay::~TransferDisplay() {
  finish();
}

void TransferDisplay::finish() {
  session_.report.above(nullptr);
  printer_.finish();
}

engine::Progress TransferDisplay::progress() {
  return [this](const image::TransferEvent& event) {
    if (const auto* layer = std::get_if<image::LayerEvent>(&event)) {
      printer_.layer({layer->id, phase_of(layer->phase), layer->done, layer->total});
    } else if (const auto* status = std::get_if<image::StatusEvent>(&event)) {
      printer_.text(status->text);
    }
  };
}

Result<image::TransferResult> transfer_shown(Session& session, image::TransferRequest request,
                                             Stream stream, Direction direction, bool quiet) {
  TransferDisplay display(session, stream, direction, quiet);
  return engine::transfer(session.context, std::move(request), display.progress());
}

size_t columns_of(const Session& session) {
  bool terminal = session.terminal.is_terminal(Stream::out);
  return terminal ? session.terminal.size(Stream::out).columns : 0;
}

void print(Session& session, std::string_view text) {
  session.terminal.write(Stream::out, text);
}

void print_json(Session& session, const json::Value& value) {
  print(session, json::dump(value, 2));
}

int for_each_argument(Session& session, const std::vector<std::string>& arguments,
                      const std::function<Result<void>(const std::string&)>& act) {
  int status = 0;
  for (const std::string& argument : arguments) {
    Result<void> done = act(argument);
    if (done.ok()) continue;
    session.report.error(done.error());
    status = 1;
  }
  return status;
}

json::Value json_time(std::optional<int64_t> seconds) {
  if (!seconds || *seconds == 0) return nullptr;
  std::time_t time = *seconds;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&time, &parts) == nullptr) return nullptr;
  if (std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) return nullptr;
  return text;
}

json::Value json_strings(const std::vector<std::string>& strings) {
  return json::Array(strings.begin(), strings.end());
}

std::string ago(int64_t seconds) {
  return human_ago(std::chrono::system_clock::time_point(std::chrono::seconds(seconds)),
                   std::chrono::system_clock::now());
}

WorkDisplay::WorkDisplay(Session& session, std::string words, bool quiet)
    : session_(session),
      words_(std::move(words)),
      shown_(!quiet && session.terminal.is_terminal(Stream::err)),
      lines_(session.terminal, Stream::err) {
  if (shown_) session_.report.above(&lines_);
}

WorkDisplay::~WorkDisplay() {
  finish();
}

engine::Progress WorkDisplay::progress() {
  return [this](const image::TransferEvent& event) {
    if (const auto* status = std::get_if<image::StatusEvent>(&event)) draw(status->text);
    const auto* layer = std::get_if<image::LayerEvent>(&event);
    if (layer == nullptr || layer->phase == image::LayerPhase::waiting) return;
    draw(layer->id + ": " + words_ + " " + human_bytes(layer->done) + " of " +
         human_bytes(layer->total));
  };
}

void WorkDisplay::draw(const std::string& line) {
  auto now = std::chrono::steady_clock::now();
  if (!shown_ || (drawn_at_ && now - *drawn_at_ < kRedrawEvery)) return;
  drawn_at_ = now;
  lines_.draw({truncate(escape_controls(line), lines_.room().columns)});
}

void WorkDisplay::finish() {
  if (!shown_) return;
  lines_.draw({});
  session_.report.above(nullptr);
  shown_ = false;
}

}  // namespace berth::cli
