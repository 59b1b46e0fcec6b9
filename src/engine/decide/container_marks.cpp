// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/container_marks.hpp"

#include <fcntl.h>

#include "engine/image/lowest_layer.hpp"
#include "gpu/place/publish.hpp"
#include "sys/file/file.hpp"

namespace berth::engine {
namespace {

Result<void> make_marks(const sys::Fd& directory) {
  TRY(sys::write_file(directory, ".dockerenv", "", 0644));
  TRY(sys::make_directory(directory, "run", 0755));
  return sys::write_file(directory, "run/.containerenv", "engine=\"berth\"\n", 0644);
}

}  // namespace

Result<void> add_container_marks(const Context& context, oci::Spec& spec) {
  const std::string name = "container-marks";
  TRY(sys::make_directories(sys::cwd(), context.paths.state, 0700));
  sys::Fd parent = TRY(sys::open_at(sys::cwd(), context.paths.state, O_RDONLY | O_DIRECTORY));
  TRY_CTX(gpu::publish_directory(parent, name, make_marks),
          "cannot prepare the files that every container has");
  add_lowest_layer(context.paths.state + "/" + name, spec);
  return {};
}

}  // namespace berth::engine
