// SPDX-License-Identifier: Apache-2.0
#include "engine/build/bake_plan.hpp"

#include "base/text.hpp"
#include "json/fields.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

constexpr size_t kMaxContainerfile = size_t{256} << 10;
constexpr size_t kMaxTexts = size_t{256} << 10;  // bytes in one request

/// The inputs of an image: a change to any of them requires a new image. The digest of the inputs
/// is over this document.
struct Inputs {
  uint32_t format = 1;
  std::string adopt;  ///< digest
  std::vector<std::string> command;
  std::string context, containerfile;  ///< a digest, and the file's text
  std::string target, platform, builder;
  std::map<std::string, std::string> args, labels, bases;  ///< `bases`: digests
};
template <class V>
void fields(V& v, Inputs& i) {
  v.required("format", i.format);
  v.optional("adopt", i.adopt);
  v.optional("command", i.command);
  v.optional("context", i.context);
  v.optional("containerfile", i.containerfile);
  v.optional("target", i.target);
  v.optional("platform", i.platform);
  v.optional("builder", i.builder);
  v.optional("args", i.args);
  v.optional("labels", i.labels);
  v.optional("bases", i.bases);
}

std::string absolute(const std::string& directory, const std::string& path) {
  if (path.starts_with('/')) return path;
  return path == "." ? directory : directory + "/" + path;
}

class Planner {
 public:
  Planner(const Context& context, std::string directory, const bake::BakeFile& file,
          const BakeRequest& request, BaseImages& bases)
      : context_(context),
        directory_(std::move(directory)),
        file_(file),
        request_(request),
        bases_(bases) {}

  Result<void> run(std::vector<CellPlan>& plans, std::map<size_t, Error>& errors) {
    inputs_.resize(file_.cells.size());
    for (size_t i = 0; i < file_.cells.size(); ++i) {
      if (errors.contains(i)) continue;
      auto planned = plan(file_.cells[i], plans[i], inputs_[i]);
      if (!planned.ok()) errors.emplace(i, std::move(planned).error());
    }
    std::vector<std::string> texts;
    for (const Inputs& inputs : inputs_) texts.push_back(json::write(inputs));
    std::vector<Digest> digests = TRY(digests_of(texts));
    for (size_t i = 0; i < plans.size(); ++i) plans[i].inputs = digests[i];
    return {};
  }

 private:
  Result<void> plan(const bake::Cell& cell, CellPlan& plan, Inputs& inputs) {
    plan.local = bake::cell_reference(file_.image, cell.name);
    inputs.platform = cell.platform;
    if (!cell.adopt.empty()) {
      ResolvedImage resolved =
          TRY(resolve_image(context_, cell.adopt, cell.platform, request_.access));
      plan.adopted = resolved.reference;
      inputs.adopt = resolved.digest.text();
      return {};
    }
    inputs.args = cell.args;
    plan.context = absolute(directory_, cell.context);
    plan.ignore_file = TRY(find_ignore_file(plan.context, file_.builder));
    Digest context = TRY(context_digest(plan));
    inputs.context = context.text();
    if (!cell.command.empty()) {
      inputs.command = cell.command;
      return {};
    }
    inputs.target = cell.target;
    inputs.labels = cell.labels;
    inputs.builder = file_.builder == bake::Builder::docker ? "docker" : "";
    return plan_containerfile(cell, plan, inputs);
  }

  Result<void> plan_containerfile(const bake::Cell& cell, CellPlan& plan, Inputs& inputs) {
    plan.file = absolute(plan.context, cell.file);
    if (cell.file.empty()) plan.file = TRY(find_containerfile(plan.context));
    std::string text = TRY(sys::read_file(sys::cwd(), plan.file, kMaxContainerfile));
    inputs.containerfile = text;  // the file may be outside of the context
    plan.bases = TRY_CTX(bake::base_images(text, cell.args), "cannot read " + quote(plan.file));
    for (const bake::BaseImage& base : plan.bases) {
      ResolvedImage resolved = TRY(bases_.resolve(base.name, cell.platform));
      inputs.bases[base.name] = resolved.digest.text();
    }
    return {};
  }

  Result<Digest> context_digest(const CellPlan& plan) {
    auto known = contexts_.find(plan.context);
    if (known != contexts_.end()) return known->second;
    std::string ignore_file = TRY(with_bake_file(plan));
    image::DigestRequest request;
    request.contexts.push_back({plan.context, ignore_file});
    image::TransferResult result = TRY(transfer(context_, std::move(request), {}));
    return contexts_[plan.context] = result.digests.at(0);
  }

  /// The ignore file for the digest of a context. It also excludes the bake file, so that a change
  /// to one cell does not rebuild all others.
  Result<std::string> with_bake_file(const CellPlan& plan) {
    if (!request_.file.starts_with(plan.context + "/")) return plan.ignore_file;
    std::string text;
    if (!plan.ignore_file.empty()) {
      text = TRY(sys::read_file(sys::cwd(), plan.ignore_file, kMaxContainerfile));
      text += "\n";
    }
    for (char c : request_.file.substr(plan.context.size())) {
      if (std::string_view("*?[\\").find(c) != std::string_view::npos) text += '\\';
      text += c;
    }
    std::string path = bake_directory(context_, file_.image) + "/ignore";
    TRY(sys::replace_file(sys::cwd(), path, text + "\n", 0600));
    return path;
  }

  Result<std::vector<Digest>> digests_of(const std::vector<std::string>& texts) {
    std::vector<Digest> digests;
    image::DigestRequest request;
    size_t bytes = 0;
    for (size_t i = 0; i < texts.size(); ++i) {
      request.texts.push_back(texts[i]);
      bytes += texts[i].size();
      if (bytes < kMaxTexts && i + 1 < texts.size()) continue;
      image::TransferResult result = TRY(transfer(context_, std::exchange(request, {}), {}));
      digests.insert(digests.end(), result.digests.begin(), result.digests.end());
      bytes = 0;
    }
    return digests;
  }

  const Context& context_;
  std::string directory_;
  const bake::BakeFile& file_;
  const BakeRequest& request_;
  BaseImages& bases_;
  std::vector<Inputs> inputs_;
  std::map<std::string, Digest> contexts_;
};

/// The declarations of an entry, without its name and its priority.
std::map<std::string, std::string> declared_in(const std::map<std::string, std::string>& all) {
  std::map<std::string, std::string> declared;
  const std::string prefix(match::kPrefix);
  for (const auto& [name, value] : all) {
    if (!name.starts_with(prefix)) continue;
    if (name != bake::kNameAnnotation && name != prefix + "priority") declared[name] = value;
  }
  return declared;
}

}  // namespace

Result<void> plan_cells(const Context& context, const std::string& directory,
                        const bake::BakeFile& file, const BakeRequest& request, BaseImages& bases,
                        std::vector<CellPlan>& plans, std::map<size_t, Error>& errors) {
  plans.resize(file.cells.size());
  return Planner(context, directory, file, request, bases).run(plans, errors);
}

std::map<std::string, std::string> entry_annotations(const bake::Cell& cell, const Digest& inputs) {
  std::map<std::string, std::string> annotations = cell.annotations;
  annotations[bake::kInputsAnnotation] = inputs.text();
  return annotations;
}

bool is_up_to_date(const oci::Descriptor& entry, const bake::Cell& cell, const Digest& inputs) {
  auto made_of = entry.annotations.find(bake::kInputsAnnotation);
  return made_of != entry.annotations.end() && made_of->second == inputs.text() &&
         declared_in(entry.annotations) == declared_in(cell.annotations);
}

std::string bake_directory(const Context& context, const std::string& image) {
  return context.paths.root + "/bake/" + image;
}

Result<std::optional<CellRecord>> read_record(const std::string& directory,
                                              const std::string& cell) {
  std::string path = directory + "/" + cell + ".json";
  auto text = TRY(sys::read_file_if_exists(sys::cwd(), path, 4096));
  if (!text) return std::optional<CellRecord>();
  auto record = json::read<CellRecord>(*text, path);
  if (!record.ok()) return std::optional<CellRecord>();  // builds again, as without a record
  return std::optional<CellRecord>(*record);
}

Result<void> write_record(const std::string& directory, const std::string& cell,
                          const CellRecord& record) {
  return sys::replace_file(sys::cwd(), directory + "/" + cell + ".json", json::write(record) + "\n",
                           0600);
}

}  // namespace berth::engine
