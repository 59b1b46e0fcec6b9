// SPDX-License-Identifier: Apache-2.0
#include "engine/cdi.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "gpu/cdi/registry.hpp"
#include "json/fields.hpp"
#include "oci/cdi.hpp"
#include "oci/edit_fields.hpp"
#include "sys/file.hpp"

namespace berth::engine {
namespace {

/// The edits of `names`; where one is not found, the whole index is made for what the error says.
Result<oci::ContainerEdits> find_edits(const Context& context,
                                       const std::vector<std::string>& names) {
  auto index = TRY(gpu::cdi::make_index(context.paths.cdi_directories, names));
  auto edits = gpu::cdi::edits_of(index, names);
  if (edits.ok() || edits.error().kind != Kind::not_found) return edits;
  for (const gpu::cdi::Fault& fault : index.bad_files) {
    context.log.warn(fault.text + ", ignoring this file");
  }
  index = TRY(list_cdi(context));
  return gpu::cdi::edits_of(index, names);
}

}  // namespace

Result<void> check_device(const std::string& text) {
  if (text.starts_with('/')) {
    return make_error(Kind::unsupported,
                      "--device " + quoted(text) + ": paths of devices are not supported yet",
                      "a CDI name such as nvidia.com/gpu=0, or --gpus");
  }
  TRY(oci::cdi::parse_name(text));
  return {};
}

Result<gpu::cdi::Index> list_cdi(const Context& context) {
  return gpu::cdi::make_index(context.paths.cdi_directories);
}

Result<RefreshedCdi> refresh_cdi(const Context& context) {
  RefreshedCdi refreshed{context.paths.state + "/" + gpu::cdi::kIndexName, TRY(list_cdi(context))};
  std::string directory = refreshed.path.substr(0, refreshed.path.rfind('/'));
  TRY(sys::make_directories(sys::cwd(), directory, 0700));
  TRY(sys::replace_file(sys::cwd(), refreshed.path, gpu::cdi::write_index(refreshed.index), 0600));
  return refreshed;
}

Result<CdiFileFacts> check_cdi_file(const std::string& path) {
  oci::cdi::Spec spec = TRY(gpu::cdi::read_file(path));
  return CdiFileFacts{spec.kind, spec.version, std::string(oci::cdi::needed_version(spec)),
                      spec.devices.size()};
}

Result<json::Value> inspect_cdi(const Context& context, const std::string& name) {
  gpu::cdi::Index index = TRY(list_cdi(context));
  oci::ContainerEdits edits = TRY(gpu::cdi::edits_of(index, {name}));
  std::string file;
  for (const gpu::cdi::IndexDevice& device : index.devices) {
    if (device.name == name) file = index.files.at(device.file).path;
  }
  return json::Value(
      json::Object{{"name", name}, {"file", std::move(file)}, {"edits", json::to_value(edits)}});
}

Result<void> add_cdi_devices(const Context& context, const std::vector<std::string>& names,
                             oci::Spec& spec) {
  if (names.empty()) return {};
  oci::apply(TRY(find_edits(context, names)), spec);
  return {};
}

}  // namespace berth::engine
