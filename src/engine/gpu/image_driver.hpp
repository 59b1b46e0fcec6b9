// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "engine/context/context.hpp"
#include "engine/image/layer_view.hpp"
#include "engine/request/request.hpp"
#include "engine/state/directory.hpp"
#include "gpu/place/place.hpp"
#include "image/store.hpp"
#include "oci/runtime_spec.hpp"
#include "scan/driver_files.hpp"

namespace berth::engine {

/// The image of a container, to find out what it contains.
struct ImageLook {
  const std::string& container;  ///< the id of the container that will run it
  const RunRequest& request;
  const image::Image& image;
  const LayerView& view;
};

/// The driver files of the image as the loader of `process` would find them; cached below the state
/// directory by the image's id, so that the layers are read only once. Files in volumes that
/// LD_LIBRARY_PATH names come first.  Errors: io.
Result<scan::DriverFiles> driver_files_of(const Context& context, const ImageLook& look,
                                          const oci::Process& process);

/// Copies driver files into a container's own layer, in place of those of an earlier start. Follows
/// no link there: programs in the container may have made it.
/// Errors: io (no space; a directory of the files is none any more).
Result<void> copy_driver_files(const std::vector<gpu::Copy>& files,
                               const std::vector<gpu::GrantedLink>& links,
                               const ContainerDirectory& directory);

}  // namespace berth::engine
