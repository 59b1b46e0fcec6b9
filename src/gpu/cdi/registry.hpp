// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "gpu/cdi_index/index.hpp"
#include "oci/cdi.hpp"

namespace berth::gpu::cdi {

/// Reads one CDI file; its extension says whether it is JSON or YAML.
/// Errors: corrupt (with the place in the file), unsupported (another extension), and those of
/// opening the file.
Result<oci::cdi::Spec> read_file(const std::string& path);

/// The devices that the files of `directories` offer on this machine: ".json" and ".yaml" files,
/// not those in subdirectories. If several directories define a device, the later one wins; two
/// definitions in one directory are a conflict, and the device is unavailable. An unreadable file
/// is skipped. So is a file that users other than root and the caller own or can write: its content
/// would act with the caller's rights. `names`: the devices that the index shall contain; empty:
/// all. Errors: io.
Result<Index> make_index(const std::vector<std::string>& directories,
                         const std::vector<std::string>& names = {});

}  // namespace berth::gpu::cdi
