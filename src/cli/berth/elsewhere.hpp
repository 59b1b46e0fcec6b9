// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "cli/berth/verb.hpp"

/// The verbs, flags and arguments of other engines, and their equivalents here.
namespace berth::cli {

/// An error for another engine's verb that Berth lacks, such as "pod" or "volume export": it names
/// the equivalent and the reason. Nothing if no known engine has the verb.
std::optional<Error> verb_elsewhere(std::string_view name);

/// The equivalents of flags that other engines have for a verb of this name: the verb's own flags,
/// and flags common to several verbs.
std::vector<Elsewhere> flags_elsewhere(const Verb& verb);

// Arguments that other engines accept for a verb of the same name. Each function returns an error
// that names Berth's equivalent, or nothing for arguments that docker accepts too. Pure.

/// Whether `name` is the name of an image file, which apptainer reads or writes.
bool is_image_file_name(std::string_view name);

/// For an image: `docker-archive:FILE`, `docker-daemon:IMAGE`, `oras://IMAGE`, …
std::optional<Error> image_elsewhere(const std::string& name);

/// `apptainer run library://IMAGE`
std::optional<Error> run_elsewhere(const std::vector<std::string>& arguments);
/// `apptainer pull FILE.sif docker://IMAGE`, `shifterimg pull docker:IMAGE`
std::optional<Error> pull_elsewhere(const std::vector<std::string>& arguments);
/// `apptainer build FILE.sif docker://IMAGE`, `apptainer build FILE.sif FILE.def`
std::optional<Error> build_elsewhere(const std::vector<std::string>& arguments);
/// `enroot import docker://IMAGE`, `enroot import dockerd://IMAGE`
std::optional<Error> import_elsewhere(const std::vector<std::string>& arguments);
/// `docker load FILE`, `enroot load dockerd://IMAGE`
std::optional<Error> load_elsewhere(const std::vector<std::string>& arguments);
/// `podman push IMAGE docker://REGISTRY/NAME`, `apptainer push FILE.sif oras://REGISTRY/NAME`
std::optional<Error> push_elsewhere(const std::vector<std::string>& arguments);

}  // namespace berth::cli
