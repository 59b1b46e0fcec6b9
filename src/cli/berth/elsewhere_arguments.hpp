// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

/// Arguments that other engines' verbs of the same names take, and what to type here instead. Each
/// gives nothing for what people type after docker's. Pure.
namespace berth::cli {

/// Of apptainer: a file that the image shall be in, or would be read from.
bool is_image_file_name(std::string_view name);

/// Of an image: `docker-archive:FILE`, `docker-daemon:IMAGE`, `oras://IMAGE`, …
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
