// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/document_format.hpp"
#include "cli/berth/show/container_words.hpp"
#include "cli/berth/show/list_rows.hpp"
#include "cli/template/listing.hpp"
#include "engine/container/list.hpp"
#include "engine/container/logs.hpp"
#include "engine/container/processes.hpp"
#include "engine/container/stats.hpp"
#include "engine/gpu/use.hpp"
#include "engine/inspect/container_query.hpp"
#include "engine/inspect/events.hpp"
#include "engine/network/network.hpp"

namespace berth::cli {
namespace {

// ---- ps -----------------------------------------------------------------------------------------

struct PsOptions {
  bool all = false;
  bool latest = false;
  std::optional<int64_t> last;
  bool no_trunc = false;
  bool quiet = false;
  bool size = false;
  std::vector<engine::Filter> filters;
  std::string format;
};

FlagTable ps_flags(PsOptions& o) {
  return {
      {"all", 'a', "", "Include containers that are not running", &o.all},
      filter_flag(o.filters),
      template_flag(o.format),
      {"last", 'n', "NUMBER", "Show the newest NUMBER containers, running or not",
       read_integer(o.last)},
      {"latest", 'l', "", "Show only the newest container, running or not", &o.latest},
      {"no-trunc", 0, "", "Do not truncate ids and commands", &o.no_trunc},
      {"quiet", 'q', "", "Show only ids", &o.quiet},
      {"size", 's', "", "Show how much each container has written", &o.size},
  };
}

constexpr ListKind kContainers{
    .fields = kContainerFields,
    .table =
        "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t"
        "{{.Names}}",
    .raw =
        "container_id: {{.ID}}\nimage: {{.Image}}\ncommand: {{.Command}}\n"
        "created_at: {{.CreatedAt}}\nstate: {{.State}}\nstatus: {{.Status}}\n"
        "names: {{.Names}}\nlabels: {{.Labels}}\nports: {{.Ports}}\n",
    .raw_quiet = "container_id: {{.ID}}",
    .labels = true,
};

constexpr ListKind kContainersWithSize{
    .fields = kContainerFields,
    .table =
        "{{.ID}}\t{{.Image}}\t{{.Command}}\t{{.RunningFor}}\t{{.Status}}\t{{.Ports}}\t"
        "{{.Names}}\t{{.Size}}",
    .raw =
        "container_id: {{.ID}}\nimage: {{.Image}}\ncommand: {{.Command}}\n"
        "created_at: {{.CreatedAt}}\nstate: {{.State}}\nstatus: {{.Status}}\n"
        "names: {{.Names}}\nlabels: {{.Labels}}\nports: {{.Ports}}\nsize: {{.Size}}\n",
    .raw_quiet = "container_id: {{.ID}}",
    .labels = true,
};

bool needs_details(const Listing& listing) {
  for (std::string_view field : {"Labels", "Label", "Mounts", "LocalVolumes", "Networks"}) {
    if (listing.uses(field)) return true;
  }
  return false;
}

Result<int> run_ps(Session& session, const PsOptions& o, Arguments) {
  // -q prints ids, whatever the default format is.
  const std::string format = o.quiet ? o.format : format_or_usual(session, o.format, "psFormat");
  Listing listing = TRY(Listing::make(o.size ? kContainersWithSize : kContainers,
                                      {.text = format, .quiet = o.quiet}));
  engine::ContainerQuery query{.all = o.all,
                               .newest = {},
                               .filters = engine::Filters(o.filters),
                               .details = needs_details(listing),
                               .ports = listing.uses("Ports"),
                               .sizes = o.size || listing.uses("Size")};
  if (o.last && *o.last > 0) query.newest = static_cast<uint64_t>(*o.last);
  if (o.latest) query.newest = 1;
  std::vector<ListRow> rows;
  const Now now = std::chrono::system_clock::now();
  for (const auto& container : TRY(engine::query_containers(session.context, query))) {
    rows.push_back(container_row(container, o.no_trunc ? Text::whole : Text::shortened, now));
  }
  print(session, TRY(listing.text(rows)));
  return 0;
}

/// Of podman and enroot.
constexpr Elsewhere kPsElsewhere[] = {
    {"sort", "berth ps | sort", "the newest container comes first"},
};

// ---- top ----------------------------------------------------------------------------------------

Result<int> run_top(Session& session, const NoOptions&, Arguments arguments) {
  std::vector<std::string> ps_arguments(arguments.begin() + 1, arguments.end());
  print(session, TRY(engine::container_processes(session.context, arguments[0], ps_arguments)));
  return 0;
}

// ---- port ---------------------------------------------------------------------------------------

Result<int> run_port(Session& session, const NoOptions&, Arguments arguments) {
  std::string port = arguments.size() > 1 ? arguments[1] : "";
  for (const std::string& line : TRY(engine::list_published(session.context, arguments[0], port))) {
    print(session, line + "\n");
  }
  return 0;
}

// ---- logs ---------------------------------------------------------------------------------------

struct LogsOptions {
  engine::LogOptions log;
  bool timestamps = false;
  bool details = false;
};

FlagTable logs_flags(LogsOptions& o) {
  ReadValue read_tail = [&o](std::string_view text) -> Result<void> {
    o.log.tail = parse_u64(text);
    // Docker takes every negative number for "all".
    bool all = text == "all" || (text.starts_with('-') && parse_u64(text.substr(1)));
    if (!o.log.tail && !all) return make_error(Kind::usage, "expected a number or 'all'");
    return {};
  };
  return {
      {"details", 0, "", "No effect: Berth's logs have no extra details", &o.details},
      {"follow", 'f', "", "Follow the output until the container exits", &o.log.follow},
      {"since", 0, "TIME", "Show output since a time, or since a duration such as 10m ago",
       read_moment(o.log.since_ns)},
      {"tail", 'n', "NUMBER", "Show only the last NUMBER lines", std::move(read_tail)},
      {"timestamps", 't', "", "Show the time of each line", &o.timestamps},
      {"until", 0, "TIME", "Show output before a time, or before a duration such as 10m ago",
       read_moment(o.log.until_ns)},
  };
}

Result<int> run_logs(Session& session, const LogsOptions& o, Arguments arguments) {
  std::string line;
  auto show = [&](const engine::LogPiece& piece) {
    Stream stream = piece.stream == engine::Stream::out ? Stream::out : Stream::err;
    if (!o.timestamps && !o.details) return session.terminal.write_as_is(stream, piece.text);
    line.clear();
    if (o.timestamps) line += piece.time() + " ";
    if (o.details) line += ' ';
    session.terminal.write_as_is(stream, line.append(piece.text));
  };
  TRY(engine::container_logs(session.context, arguments[0], o.log, show));
  return 0;
}

/// Of podman and enroot.
constexpr Elsewhere kLogsElsewhere[] = {
    {"l", "berth logs $(berth ps -lq)"},
    {"latest", "berth logs $(berth ps -lq)"},
};

// ---- stats --------------------------------------------------------------------------------------

constexpr std::chrono::seconds kStatsInterval{1};
constexpr std::string_view kStatsClear = "\x1b[2J\x1b[H";
constexpr std::string_view kStatsUnknown = "--";

struct StatsOptions {
  bool all = false;
  bool no_stream = false;
  bool no_trunc = false;
  std::string format;
};

FlagTable stats_flags(StatsOptions& o) {
  return {
      {"all", 'a', "", "Include containers that are not running", &o.all},
      template_flag(o.format),
      {"no-stream", 0, "", "Measure once, for one second, and exit", &o.no_stream},
      {"no-trunc", 0, "", "Do not truncate ids", &o.no_trunc},
  };
}

constexpr ListField kStatsFields[] = {
    {"BlockIO", "BLOCK I/O"},
    {"CPUPerc", "CPU %"},
    {"Container", "CONTAINER"},
    {"GPUMemUsage", "GPU MEM USAGE / LIMIT"},
    {"GPUPerc", "GPU %"},
    {"GPUs", "GPUS"},
    {"ID", "CONTAINER ID"},
    {"MemPerc", "MEM %"},
    {"MemUsage", "MEM USAGE / LIMIT"},
    {"Name", "NAME"},
    {"NetIO", "NET I/O"},
    {"PIDs", "PIDS"},
};

constexpr ListKind kUse{
    .fields = kStatsFields,
    .table =
        "{{.ID}}\t{{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t"
        "{{.BlockIO}}\t{{.PIDs}}",
};

constexpr ListKind kUseOfGpus{
    .fields = kStatsFields,
    .table =
        "{{.ID}}\t{{.Name}}\t{{.CPUPerc}}\t{{.MemUsage}}\t{{.MemPerc}}\t{{.NetIO}}\t"
        "{{.BlockIO}}\t{{.PIDs}}\t{{.GPUs}}\t{{.GPUPerc}}\t{{.GPUMemUsage}}",
};

std::string percent(std::optional<double> value) {
  if (!value) return std::string(kStatsUnknown);
  char text[32];
  std::snprintf(text, sizeof text, "%.2f%%", *value);
  return text;
}

using Write = std::string (*)(uint64_t);
std::string pair_of(std::optional<uint64_t> first, std::optional<uint64_t> second, Write write) {
  auto text = [&](std::optional<uint64_t> n) { return n ? write(*n) : std::string(kStatsUnknown); };
  return text(first) + " / " + text(second);
}

std::string gpu_percent(const engine::GpuUse& gpu) {
  return gpu.busy_percent ? std::to_string(*gpu.busy_percent) + "%" : std::string(kStatsUnknown);
}

std::string gpu_memory(const engine::GpuUse& gpu) {
  return pair_of(gpu.used_bytes, gpu.total_bytes, binary_bytes);
}

/// A text for each GPU.
template <class Text>
std::string of_each(const std::vector<engine::GpuUse>& gpus, const Text& text) {
  std::vector<std::string> texts;
  for (const engine::GpuUse& gpu : gpus) texts.push_back(text(gpu));
  return join(texts, ", ");
}

/// The requested containers, each with its last two samples.
class UseTable {
 public:
  UseTable(Session& session, const StatsOptions& options, std::vector<std::string> names)
      : session_(session), options_(options), names_(std::move(names)) {}

  /// Errors: not_found (a name, the first time), io.
  Result<void> measure() {
    std::vector<engine::ContainerSummary> containers;
    if (names_.empty()) {
      containers = TRY(engine::list_containers(
          session_.context, options_.all ? engine::Which::all : engine::Which::running));
    }
    for (const std::string& name : names_) {
      auto found = engine::get_container(session_.context, name);
      // A requested container that removes itself meanwhile is no error.
      if (!found.ok() && first_) return std::move(found).error();
      if (found.ok()) containers.push_back(std::move(*found));
    }
    std::map<std::string, engine::Usage> now;
    for (const auto& container : containers) {
      now[container.id] = engine::measure_container(session_.context, container);
      show(container, now[container.id]);
    }
    containers_ = std::move(containers);
    before_ = std::exchange(now_, std::move(now));
    first_ = false;
    return {};
  }

  /// Errors: those of engine::gpu_use().
  Result<void> look_at_gpus() {
    gpus_ = TRY(engine::gpu_use(session_.context, containers_));
    return {};
  }
  bool has_gpus() const { return !gpus_.empty(); }

  std::vector<ListRow> rows() const {
    std::vector<ListRow> rows;
    for (const auto& container : containers_) rows.push_back(row_of(container));
    return rows;
  }

 private:
  ListRow row_of(const engine::ContainerSummary& c) const {
    const engine::Usage& use = now_.at(c.id);
    auto last = before_.find(c.id);
    std::optional<double> cpu;
    if (last != before_.end()) cpu = engine::cpu_percent(last->second, use);
    std::optional<double> memory;
    if (use.memory_bytes && use.memory_limit_bytes && *use.memory_limit_bytes > 0) {
      memory = 100.0 * static_cast<double>(*use.memory_bytes) /
               static_cast<double>(*use.memory_limit_bytes);
    }
    auto with_gpus = gpus_.find(c.id);
    const std::vector<engine::GpuUse> gpus =
        with_gpus == gpus_.end() ? std::vector<engine::GpuUse>{} : with_gpus->second;
    std::string id = shown_id(c.id, options_.no_trunc ? Ids::whole : Ids::shortened);
    return {{pair_of(use.read_bytes, use.written_bytes, human_bytes), percent(cpu),
             names_.empty() ? id : asked_for(c), of_each(gpus, gpu_memory),
             of_each(gpus, gpu_percent), of_each(gpus, [](const auto& gpu) { return gpu.name; }),
             id, percent(memory), pair_of(use.memory_bytes, use.memory_limit_bytes, binary_bytes),
             c.name, pair_of(use.received_bytes, use.sent_bytes, human_bytes),
             use.processes ? std::to_string(*use.processes) : std::string(kStatsUnknown)}};
  }

  /// Docker prints the name as typed in {{.Container}}.
  std::string asked_for(const engine::ContainerSummary& c) const {
    for (const std::string& name : names_) {
      if (name == c.name || c.id.starts_with(name)) return name;
    }
    return c.name;
  }

  void show(const engine::ContainerSummary& c, const engine::Usage& use) {
    if (!use.from_processes || told_) return;
    told_ = true;
    session_.report.warn("no control group counts for container " + quote(c.name) +
                         ": its memory and processor time are the sums over its processes in "
                         "/proc, using these instead");
  }

  Session& session_;
  const StatsOptions& options_;
  std::vector<std::string> names_;
  std::vector<engine::ContainerSummary> containers_;
  std::map<std::string, engine::Usage> before_;
  std::map<std::string, engine::Usage> now_;
  std::map<std::string, std::vector<engine::GpuUse>> gpus_;
  bool first_ = true;
  bool told_ = false;
};

Result<int> run_stats(Session& session, const StatsOptions& o, Arguments arguments) {
  const std::string format = format_or_usual(session, o.format, "statsFormat");
  const Listing usual = TRY(Listing::make(kUse, {.text = format}));
  const Listing with_gpus = TRY(Listing::make(kUseOfGpus, {.text = format}));
  const bool asks =
      with_gpus.uses("GPUs") || with_gpus.uses("GPUPerc") || with_gpus.uses("GPUMemUsage");
  UseTable table(session, o, std::move(arguments));
  TRY(table.measure());
  while (true) {
    std::this_thread::sleep_for(kStatsInterval);
    TRY(table.measure());
    if (asks) TRY(table.look_at_gpus());
    const Listing& listing = table.has_gpus() ? with_gpus : usual;
    std::string text = TRY(listing.text(table.rows()));
    if (o.no_stream) {
      print(session, text);
      return 0;
    }
    session.terminal.write_as_is(Stream::out, kStatsClear);
    print(session, text);
    TRY(session.terminal.written());  // the reader has disconnected
  }
}

// ---- events -------------------------------------------------------------------------------------

struct EventsOptions {
  std::vector<engine::Filter> filters;
  std::optional<std::string> format;
  std::optional<int64_t> since_ns;
  std::optional<int64_t> until_ns;
};

FlagTable events_flags(EventsOptions& o) {
  return {
      filter_flag(o.filters),
      {"format", 0, "FORMAT", "Output format: json or a template such as '{{.Action}} {{.ID}}'",
       &o.format},
      {"since", 0, "TIME", "Also show past events since a time, or a duration such as 10m ago",
       read_moment(o.since_ns)},
      {"until", 0, "TIME", "Show events until a time, then exit", read_moment(o.until_ns)},
  };
}

/// The names of docker's members, in templates and in JSON.
struct Names {
  const char *status, *id, *from, *scope, *time, *time_ns;
};
constexpr Names kTemplateNames = {"Status", "ID", "From", "Scope", "Time", "TimeNano"};
constexpr Names kJsonNames = {"status", "id", "from", "scope", "time", "timeNano"};

json::Value document(const events::Event& event, const Names& names) {
  constexpr int64_t kSecond = 1'000'000'000;
  json::Object attributes;
  for (const auto& [name, value] : event.attributes) {
    attributes.emplace_back(name, json::Value(value));
  }
  auto image = event.attributes.find("image");
  std::string from = image == event.attributes.end() ? "" : image->second;
  json::Object actor = {{"ID", json::Value(event.id)},
                        {"Attributes", json::Value(std::move(attributes))}};
  return json::Value(json::Object{{names.status, json::Value(event.action)},
                                  {names.id, json::Value(event.id)},
                                  {names.from, json::Value(std::move(from))},
                                  {"Type", json::Value(event.type)},
                                  {"Action", json::Value(event.action)},
                                  {"Actor", json::Value(std::move(actor))},
                                  {names.scope, json::Value("local")},
                                  {names.time, json::Value(event.time_ns / kSecond)},
                                  {names.time_ns, json::Value(event.time_ns)}});
}

/// "2026-11-22T10:00:00.000000007+01:00 container start 0123… (image=web, name=front)"
std::string line(const events::Event& event) {
  std::string text = zoned_moment(event.time_ns) + " " + event.type + " " + event.action;
  text += " " + event.id;
  std::vector<std::string> attributes;
  for (const auto& [name, value] : event.attributes) attributes.push_back(name + "=" + value);
  if (!attributes.empty()) text += " (" + join(attributes, ", ") + ")";
  return escape_controls(text);
}

Result<int> run_events(Session& session, const EventsOptions& o, Arguments) {
  std::optional<DocumentFormat> format;
  // With docker's member names in JSON, which differ from the template's.
  bool json = o.format == "json" || o.format == "{{json .}}";
  if (o.format && !json) {
    auto made = DocumentFormat::make(*o.format);
    if (!made.ok()) return std::move(made).error();
    format = std::move(*made);
  }
  std::optional<Error> failed;
  auto show = [&](const events::Event& event) {
    if (json) return print(session, json::dump(document(event, kJsonNames)) + "\n");
    if (!format) return print(session, line(event) + "\n");
    auto text = format->text(document(event, kTemplateNames));
    if (text.ok()) return print(session, *text + "\n");
    if (!failed) failed = std::move(text).error();
  };
  engine::EventQuery query{o.since_ns, o.until_ns, engine::Filters(o.filters)};
  TRY(engine::watch_events(session.context, query, [&](const events::Event& event) {
    show(event);
    return !failed;
  }));
  if (failed) return std::move(*failed);
  return 0;
}

}  // namespace

const Verb ps_verb{
    .text = {.name = "ps",
             .summary = "List containers",
             .example = "berth ps -a --filter name=web"},
    .elsewhere = kPsElsewhere,
    .command = [] { return make_command(ps_flags, run_ps); },
};
const Verb top_verb{
    .text = {.name = "top",
             .arguments = "CONTAINER [PS-OPTION...]",
             .summary = "List the processes of a container",
             .example = "berth top web -o pid,etime,args",
             .complete = Complete::container},
    .arity = {1},
    .flags_end = FlagsEnd::at_first_argument,
    .command = [] { return make_command(no_flags, run_top); },
};
const Verb port_verb{
    .text = {.name = "port",
             .arguments = "CONTAINER [PORT[/PROTOCOL]]",
             .summary = "List the published ports of a container",
             .example = "berth port web 80/tcp",
             .complete = Complete::container},
    .arity = {1, 2},
    .command = [] { return make_command(no_flags, run_port); },
};
const Verb logs_verb{
    .text = {.name = "logs",
             .arguments = "CONTAINER",
             .summary = "Show the logs of a container",
             .example = "berth logs --follow --tail 100 web",
             .complete = Complete::container},
    .arity = {1, 1},
    .elsewhere = kLogsElsewhere,
    .command = [] { return make_command(logs_flags, run_logs); },
};
const Verb stats_verb{
    .text = {.name = "stats",
             .arguments = "[CONTAINER...]",
             .summary = "Show a live view of the resources that containers use",
             .example = "berth stats --no-stream web",
             .complete = Complete::container},
    .arity = {0},
    .command = [] { return make_command(stats_flags, run_stats); },
};
const Verb events_verb{
    .text = {.name = "events",
             .summary = "Show events of containers, images and volumes as they happen",
             .example = "berth events --since 10m --filter event=die"},
    .command = [] { return make_command(events_flags, run_events); },
};

}  // namespace berth::cli
