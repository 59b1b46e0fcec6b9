// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/cdi_index/index.hpp"
#include "oci/cdi.hpp"

namespace berth::gpu::cdi {

/// Reads one CDI file, JSON or YAML by the end of its name.
/// Errors: corrupt, naming the place; unsupported (another ending); and those of opening it.
Result<oci::cdi::Spec> read_file(const std::string& path);

/// What the files of `directories` offer on this machine: ".json" and ".yaml" files, not those of
/// directories below. Of a device that several define, the one in the later directory counts; two
/// in the same directory are a conflict, and the device is unavailable. A file that cannot be read
/// takes nothing from the others, nor does one that somebody else than root and the user has or can
/// write: what it says is done with their rights. `names`: the devices that the index is to have;
/// all where it is empty. Errors: io.
Result<Index> make_index(const std::vector<std::string>& directories,
                         const std::vector<std::string>& names = {});

}  // namespace berth::gpu::cdi
