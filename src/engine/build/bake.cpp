// SPDX-License-Identifier: Apache-2.0
#include "engine/build/bake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>

#include "base/text.hpp"
#include "engine/build/bake_plan.hpp"
#include "engine/build/image.hpp"
#include "engine/build/steps.hpp"
#include "engine/decide/published_facts.hpp"
#include "engine/image/images.hpp"
#include "engine/image/store.hpp"
#include "engine/node/match.hpp"
#include "engine/state/log_end.hpp"
#include "image/reference.hpp"
#include "image/store.hpp"
#include "sys/file/remove_tree.hpp"

namespace berth::engine {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMaxFile = size_t{1} << 20;

std::string directory_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, std::max<size_t>(slash, 1));
}

Result<bake::BakeFile> read_file(const Context& context, const std::string& path) {
  std::string text = TRY(sys::read_file(sys::cwd(), path, kMaxFile));
  auto read_named = [&](const std::string& name) {
    std::string beside = name.starts_with('/') ? name : directory_of(path) + "/" + name;
    return sys::read_file(sys::cwd(), beside, kMaxFile);
  };
  bake::BakeFile file =
      TRY(bake::read_bake_file(text, path.substr(path.rfind('/') + 1), read_named));
  for (const std::string& remark : file.remarks) context.log.warn(remark);
  auto reference = image::Reference::parse(file.image);
  if (!reference.ok()) {
    Error fault = std::move(reference).error();
    fault.what = file.image_place + ": " + fault.what;
    return fault;
  }
  if (reference->digest()) {
    return make_error(Kind::usage, file.image_place + ": " + quote(file.image) +
                                       ": an index needs a tag to be published");
  }
  file.image = reference->canonical();
  return file;
}

/// The end of a failed build's log, for the report.
std::string last_lines(const std::string& path) {
  constexpr size_t kMost = 20;
  auto end = read_log_end(path);
  if (!end.ok()) return {};
  size_t begin = end->size();
  for (size_t lines = 0; begin > 0 && lines <= kMost; --begin) {
    if ((*end)[begin - 1] == '\n' && ++lines > kMost) break;
  }
  return end->substr(begin);
}

class Bake {
 public:
  Bake(const Context& context, const BakeRequest& request, const BakeProgress& progress)
      : context_(context),
        request_(request),
        progress_(progress),
        bases_(context, request.access, BaseFrom::registry) {}

  Result<BakeReport> run() {
    TRY(begin());
    TRY(plan_cells(context_, directory_of(request_.file), file_, request_, bases_, plans_,
                   errors_));
    for (size_t i = 0; i < plans_.size(); ++i) cell(i).inputs = plans_[i].inputs;
    for (const auto& [index, error] : errors_) fail(index, error);
    TRY(find_what_is_there());
    if (request_.dry_run) return finish_dry_run();
    if (!request_.merge) TRY(make_all());
    TRY(publish());
    return std::move(report_);
  }

 private:
  CellReport& cell(size_t index) { return report_.cells[index]; }

  void report(size_t index, CellState state, std::string text = {}) {
    cell(index).state = state;
    cell(index).text = std::move(text);
    if (progress_) progress_(report_, cell(index));
  }
  void fail(size_t index, const Error& error) { report(index, CellState::failed, to_line(error)); }

  // ---- plan

  Result<void> begin() {
    file_ = TRY(read_file(context_, request_.file));
    // Check the key before hours of work, not after.
    if (request_.sign_key) {
      sign_key_ =
          TRY_CTX(sound_key(*request_.sign_key), "cannot sign with " + quote(*request_.sign_key));
    }
    trust_ = TRY(facts_trust(context_));
    if (!request_.cells.empty()) TRY(select());
    report_.image = file_.image;
    for (const bake::Cell& one : file_.cells) {
      CellReport report;
      report.cell = one;
      report_.cells.push_back(std::move(report));
    }
    directory_ = bake_directory(context_, file_.image);
    TRY(sys::make_directories(sys::cwd(), directory_, 0700));
    for (CellReport& one : report_.cells) {
      if (progress_) progress_(report_, one);
    }
    return {};
  }

  Result<std::string> sound_key(const std::string& path) {
    image::CheckKeyRequest check;
    check.sign_key = TRY(read_key_file(path));
    TRY(transfer(context_, check, {}));
    return check.sign_key;
  }

  Result<void> select() {
    std::vector<bake::Cell> selected;
    for (const std::string& name : request_.cells) {
      selected.push_back(TRY(bake::cell_named(file_, name)));
    }
    file_.cells = std::move(selected);
    return {};
  }

  /// Finds cells that need no build: in the store, in the published index, or published alone.
  Result<void> find_what_is_there() {
    std::vector<image::ResolvedEntry> published;
    bool alone = request_.merge || !request_.cells.empty();
    if (request_.publish && !alone) published = TRY(entries_at(file_.image));
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (cell(i).state == CellState::failed) continue;
      // An image in the store can be checked again, so it comes before published ones.
      bool here = TRY(is_in_store(i));
      if (here) {
        TRY(look_through(i, CellState::unchanged));
        continue;
      }
      std::vector<image::ResolvedEntry> own;
      if (request_.publish && alone) own = TRY(entries_at(plans_[i].local));
      look_at_entries(i, alone ? own : published);
    }
    return {};
  }

  Result<std::vector<image::ResolvedEntry>> entries_at(const std::string& reference) {
    image::ResolveRequest resolve;
    resolve.reference = reference;
    resolve.access = request_.access;
    resolve.facts = trust_;
    auto found = transfer(context_, std::move(resolve), {});
    if (found.ok()) return std::move(found->entries);
    // A registry may refuse access to a missing repository; publishing reports the real error.
    Kind kind = found.error().kind;
    if (kind == Kind::not_found || kind == Kind::denied) return std::vector<image::ResolvedEntry>();
    return std::move(found).error();
  }

  void look_at_entries(size_t index, const std::vector<image::ResolvedEntry>& entries) {
    if (request_.rebuild && !request_.merge) return;
    const bake::Cell& wanted = file_.cells[index];
    const oci::Descriptor* named = nullptr;
    for (const image::ResolvedEntry& one : entries) {
      const oci::Descriptor& entry = one.descriptor;
      if (is_up_to_date(entry, wanted, plans_[index].inputs)) {
        plans_[index].present = entry;
        plans_[index].findings = findings_beside(one);
        cell(index).digest = entry.digest.text();
        return report(index, CellState::unchanged);
      }
      auto name = entry.annotations.find(bake::kNameAnnotation);
      if (name != entry.annotations.end() && name->second == wanted.name) named = &entry;
    }
    if (!request_.merge) return;
    std::string place = quote(plans_[index].local);
    report(index, CellState::changed,
           named == nullptr ? place + " is not there yet"
                            : place + " was made of other inputs, or declares something else");
  }

  /// The published findings of an entry, to publish again with the next index. With a signing key,
  /// only findings that a trusted key has signed.
  std::optional<image::PublishedImage> findings_beside(const image::ResolvedEntry& entry) const {
    bool believed = sign_key_.empty() || entry.runs_believed;
    if (!entry.found || !entry.descriptor.platform || !believed) return std::nullopt;
    image::PublishedImage published;
    published.image = entry.descriptor.digest;
    published.platform = *entry.descriptor.platform;
    if (entry.config) published.config = *entry.config;
    published.found = entry.found;
    published.runs = entry.runs;
    return published;
  }

  /// Whether the store has the cell, made from the same inputs, and the request permits its use.
  Result<bool> is_in_store(size_t index) {
    if (request_.merge || request_.rebuild) return false;
    auto record = TRY(read_record(directory_, file_.cells[index].name));
    image::Store store = TRY(open_store(context_));
    auto image = TRY(store.find_image_named(plans_[index].local));
    return record && image && image->unpacked() && record->inputs == plans_[index].inputs &&
           record->manifest == image->manifest_digest;
  }

  Result<BakeReport> finish_dry_run() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (cell(i).state == CellState::waiting) report(i, CellState::changed, way_of(i));
    }
    return std::move(report_);
  }

  std::string way_of(size_t index) const {
    const CellPlan& plan = plans_[index];
    if (!plan.adopted.empty()) return "adopts " + plan.adopted;
    const bake::Cell& wanted = file_.cells[index];
    if (!wanted.command.empty()) return "runs " + join(wanted.command, " ");
    return "builds " + plan.file;
  }

  // ---- make

  Result<void> make_all() {
    std::deque<size_t> waiting;
    for (size_t i = 0; i < plans_.size(); ++i) {
      if (cell(i).state == CellState::waiting) waiting.push_back(i);
    }
    if (waiting.empty()) return {};
    BuildPlace place = TRY(BuildPlace::open(context_));
    BuildRunner runner = TRY(BuildRunner::make(context_));
    started_.resize(plans_.size());
    outputs_.resize(plans_.size());
    while (!waiting.empty() || runner.running() > 0) {
      TRY(runner.check_signals());
      if (!waiting.empty() && runner.running() < request_.jobs) {
        size_t index = waiting.front();
        waiting.pop_front();
        started_[index] = Clock::now();
        auto started = start(index, place, runner);
        TRY(runner.check_signals());
        if (!started.ok()) fail(index, started.error());
        continue;
      }
      BuildRunner::Ended ended = TRY(runner.wait());
      auto taken = take(ended);
      TRY(runner.check_signals());
      if (!taken.ok()) fail(ended.key, taken.error());
    }
    return {};
  }

  Result<void> start(size_t index, const BuildPlace& place, BuildRunner& runner) {
    const CellPlan& plan = plans_[index];
    report(index, CellState::building);
    if (!plan.adopted.empty()) return adopt(index);
    const bake::Cell& wanted = file_.cells[index];
    outputs_[index] = fmt::format("{}/{}", place.work(), wanted.name);
    cell(index).log = fmt::format("{}/{}.log", directory_, wanted.name);
    std::vector<BuildStep> steps;
    if (wanted.command.empty()) {
      BuildJob job = TRY(job_of(index, place));
      steps = TRY(build_steps(context_, place, job));
    } else {
      steps.push_back(TRY(command_step(context_, command_of(index))));
    }
    return runner.start(index, std::move(steps), cell(index).log);
  }

  Result<BuildJob> job_of(size_t index, const BuildPlace& place) {
    const CellPlan& plan = plans_[index];
    const bake::Cell& wanted = file_.cells[index];
    BuildJob job;
    job.builder = file_.builder;
    job.tag = plan.local;
    job.context = plan.context;
    job.file = plan.file;
    job.ignore_file = plan.ignore_file;
    job.target = wanted.target;
    job.platform = wanted.platform;
    job.args = wanted.args;
    job.labels = wanted.labels;
    job.no_cache = request_.rebuild;
    job.out = outputs_[index];
    if (job.builder == bake::Builder::docker) return job;
    job.bases = TRY(bases_.fetch(place, plan.bases, wanted.platform, {}));
    return job;
  }

  CommandJob command_of(size_t index) const {
    const bake::Cell& wanted = file_.cells[index];
    CommandJob job;
    job.words = wanted.command;
    job.directory = plans_[index].context;
    job.out = outputs_[index];
    job.variables = wanted.args;
    return job;
  }

  Result<void> adopt(size_t index) {
    image::PullRequest pull;
    pull.reference = plans_[index].adopted;
    const std::string& platform = file_.cells[index].platform;
    if (!platform.empty()) pull.platform = platform;
    pull.access = request_.access;
    pull.quiet = true;
    TRY(transfer(context_, std::move(pull), {}));
    TRY(tag_image(context_, plans_[index].adopted, plans_[index].local));
    return keep(index);
  }

  Result<void> take(const BuildRunner::Ended& ended) {
    if (ended.error) {
      cell(ended.key).log_end = last_lines(cell(ended.key).log);
      return *ended.error;
    }
    report(ended.key, CellState::checking);
    TRY(load_built(context_, outputs_[ended.key], plans_[ended.key].local));
    ignore(sys::remove_tree(sys::cwd(), outputs_[ended.key]));  // else removed with its directory
    return keep(ended.key);
  }

  Result<void> keep(size_t index) {
    image::Store store = TRY(open_store(context_));
    image::Image image = TRY(store.get_image(plans_[index].local));
    TRY(write_record(directory_, file_.cells[index].name,
                     {plans_[index].inputs, image.manifest_digest}));
    std::chrono::duration<double> took = Clock::now() - started_[index];
    cell(index).seconds = took.count();
    return look_through(index, CellState::built);
  }

  /// Compares the declared facts with those found; `good` is the state if they agree.
  Result<void> look_through(size_t index, CellState good) {
    image::Store store = TRY(open_store(context_));
    image::Image image = TRY(store.get_image(plans_[index].local));
    image::PublishedImage findings = TRY(findings_of(context_, image));
    const facts::ImageFacts& found = *findings.found;
    cell(index).digest = image.manifest_digest.text();
    cell(index).reference = plans_[index].local;
    oci::Descriptor entry;
    entry.annotations = file_.cells[index].annotations;
    match::Declared declared =
        match::merge(match::read_declared(image.config.config), match::read_declared(entry));
    cell(index).findings = bake::compare(declared, image.config.architecture, found);
    plans_[index].findings = std::move(findings);
    const auto& odd = cell(index).findings;
    bool lies = !odd.empty() && odd.front().kind == bake::Finding::Kind::lie;
    report(index, lies ? CellState::lies : good, odd.empty() ? "" : odd.front().text);
    return {};
  }

  // ---- publish

  /// Warns of cells that give the same image: usually a mistake, and nodes cannot tell such cells
  /// apart either.
  void warn_of_twins() {
    for (size_t i = 0; i < report_.cells.size(); ++i) {
      auto twin =
          std::find_if(report_.cells.begin(), report_.cells.begin() + static_cast<ptrdiff_t>(i),
                       [&](const CellReport& one) { return one.digest == cell(i).digest; });
      if (cell(i).digest.empty() || twin == report_.cells.begin() + static_cast<ptrdiff_t>(i))
        continue;
      cell(i).findings.push_back(
          {bake::Finding::Kind::remark, "image",
           fmt::format("is the same image as cell '{}': what the two differ by does not reach it",
                       file_.cells[static_cast<size_t>(twin - report_.cells.begin())].name)});
    }
  }

  Result<void> publish() {
    warn_of_twins();
    if (!request_.publish) return {};
    bool single = !request_.cells.empty() && !request_.merge;
    if (single) return publish_single();
    for (CellReport& one : report_.cells) {
      if (one.state != CellState::built && one.state != CellState::unchanged) return {};
    }
    std::vector<image::PublishedEntry> entries;
    std::vector<image::PublishedImage> findings;
    for (size_t i = 0; i < plans_.size(); ++i) {
      entries.push_back(entry_of(i));
      if (plans_[i].findings) findings.push_back(*plans_[i].findings);
    }
    report_.digest = TRY(publish_index(file_.image, std::move(entries), file_.annotations));
    publish_findings(file_.image, std::move(findings));
    return {};
  }

  /// Publishes each cell on its own, for a later merge; skips cells that cannot be published.
  Result<void> publish_single() {
    for (size_t i = 0; i < plans_.size(); ++i) {
      CellState state = cell(i).state;
      if (state != CellState::built && state != CellState::unchanged) continue;
      if (plans_[i].present) continue;  // already published
      TRY(publish_index(plans_[i].local, {entry_of(i)}, {}));
      if (plans_[i].findings) publish_findings(plans_[i].local, {*plans_[i].findings});
    }
    return {};
  }

  image::PublishedEntry entry_of(size_t index) const {
    image::PublishedEntry entry;
    entry.annotations = entry_annotations(file_.cells[index], plans_[index].inputs);
    if (plans_[index].present) {
      entry.present = plans_[index].present;
    } else {
      entry.image = plans_[index].local;
    }
    return entry;
  }

  Result<std::string> publish_index(const std::string& reference,
                                    std::vector<image::PublishedEntry> entries,
                                    const std::map<std::string, std::string>& annotations) {
    image::PublishRequest publish;
    publish.reference = reference;
    publish.entries = std::move(entries);
    publish.annotations = annotations;
    publish.sign_key = sign_key_;
    publish.trusted_keys = trust_.keys;
    publish.access = request_.access;
    publish.quiet = true;
    image::TransferResult result = TRY(transfer(context_, std::move(publish), {}));
    return result.digest;
  }

  /// Publishes the findings, so that a verdict needs no layer. A failure is only a warning: the
  /// images are published already.
  void publish_findings(const std::string& reference, std::vector<image::PublishedImage> findings) {
    if (findings.empty()) return;
    image::PublishFactsRequest publish;
    publish.reference = reference;
    publish.images = std::move(findings);
    publish.sign_key = sign_key_;
    publish.trusted_keys = trust_.keys;
    publish.access = request_.access;
    auto published = transfer(context_, std::move(publish), {});
    if (!published.ok()) context_.log.warn(to_line(published.error()) + ", ignoring");
  }

  const Context& context_;
  const BakeRequest& request_;
  const BakeProgress& progress_;
  BaseImages bases_;
  bake::BakeFile file_;
  std::string directory_, sign_key_;
  image::FactsTrust trust_;
  BakeReport report_;
  std::vector<CellPlan> plans_;
  std::map<size_t, Error> errors_;
  std::vector<Clock::time_point> started_;
  std::vector<std::string> outputs_;
};

}  // namespace

std::string to_json_text(CellState state) {
  static constexpr std::string_view kNames[] = {"waiting",   "building", "checking", "built",
                                                "unchanged", "changed",  "lies",     "failed"};
  return std::string(kNames[static_cast<size_t>(state)]);
}

bool BakeReport::has(CellState state) const {
  return std::ranges::any_of(cells, [&](const CellReport& cell) { return cell.state == state; });
}

Result<BakeReport> bake(const Context& context, const BakeRequest& request,
                        const BakeProgress& progress) {
  return TRY_CTX(Bake(context, request, progress).run(), "cannot bake " + quote(request.file));
}

}  // namespace berth::engine
