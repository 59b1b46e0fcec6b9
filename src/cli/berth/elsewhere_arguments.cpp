// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/elsewhere_arguments.hpp"

#include "base/text.hpp"

namespace berth::cli {
namespace {

constexpr std::string_view kRegistry = "docker://";

/// The image of "docker://IMAGE"; enroot's "docker://REGISTRY#IMAGE" is read as it is.
std::string without_scheme(std::string_view text) {
  size_t slashes = text.find("://");
  return escape_controls(slashes == text.npos ? text : text.substr(slashes + 3));
}

std::string file_of_image(const std::string& image, const std::string& file) {
  return "berth pull " + image + " && berth save --format sqsh --output " + file + " " + image;
}

}  // namespace

namespace {

/// Transports of containers/image and apptainer, in front of an image's name.
struct Place {
  std::string_view prefix, is, here, behind;  ///< the equivalent: `here` NAME `behind`
};
constexpr std::string_view kSifFile = "a SIF file in a registry";
constexpr std::string_view kFetchSif = "apptainer pull FILE.sif ";
constexpr std::string_view kRunSif = " && berth run ./FILE.sif";
constexpr Place kPlaces[] = {
    {"docker-archive:", "an archive", "berth load -i ", ", and its image's name"},
    {"oci-archive:", "an archive", "berth load -i ", ", and its image's name"},
    {"docker-daemon:", "an image of another engine", "docker save ", " | berth load"},
    {"dockerd:", "an image of another engine", "docker save ", " | berth load"},
    {"containers-storage:", "an image of another engine", "podman save ", " | berth load"},
    {"podman:", "an image of another engine", "podman save ", " | berth load"},
    {"oras:", kSifFile, kFetchSif, kRunSif},
    {"library:", kSifFile, kFetchSif, kRunSif},
    {"shub:", kSifFile, kFetchSif, kRunSif},
};

}  // namespace

std::optional<Error> image_elsewhere(const std::string& name) {
  for (const Place& place : kPlaces) {
    if (!name.starts_with(place.prefix)) continue;
    std::string rest = name.substr(place.prefix.size());
    bool slashes = rest.starts_with("//");
    bool archive = place.prefix.ends_with("-archive:");
    // "podman:5" is a tag.
    if (!slashes && !archive && !place.prefix.starts_with("docker-") &&
        place.prefix != "containers-storage:") {
      continue;
    }
    if (slashes && !archive) rest.erase(0, 2);
    // apptainer's own forms are recognised by the whole name.
    if (place.is == kSifFile) rest = name;
    return make_error(Kind::usage, quote(name) + " is " + std::string(place.is),
                      std::string(place.here) + escape_controls(rest) + std::string(place.behind));
  }
  return std::nullopt;
}

std::optional<Error> run_elsewhere(const std::vector<std::string>& arguments) {
  return arguments.empty() ? std::nullopt : image_elsewhere(arguments[0]);
}

bool is_image_file_name(std::string_view name) {
  for (std::string_view ending : {".sif", ".sqsh", ".sqfs", ".squashfs"}) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

std::optional<Error> pull_elsewhere(const std::vector<std::string>& arguments) {
  constexpr std::string_view kShifter = "docker:";
  if (!arguments.empty()) {
    if (auto other = image_elsewhere(arguments.back())) return other;
  }
  if (arguments.size() == 2 && is_image_file_name(arguments[0])) {
    return make_error(Kind::usage, "pull takes only an image, and save writes it to a file",
                      file_of_image(without_scheme(arguments[1]), "FILE.sqsh"));
  }
  if (arguments.size() != 1 || !arguments[0].starts_with(kShifter)) return std::nullopt;
  std::string image = arguments[0].substr(kShifter.size());
  // "docker:12" is a tag of the image docker.
  if (arguments[0].starts_with(kRegistry) || image.find_first_of("/:") == image.npos) {
    return std::nullopt;
  }
  return make_error(Kind::usage,
                    "pull " + quote(arguments[0]) + ": an image name has no 'docker:' in front",
                    "berth pull " + escape_controls(image));
}

std::optional<Error> build_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  const std::string& source = arguments[1];
  if (source.ends_with(".def")) {
    return make_error(Kind::usage,
                      "build " + quote(source) + ": Apptainer's definitions are not read",
                      "a Containerfile, and berth build -t NAME DIR");
  }
  if (auto other = image_elsewhere(source)) return other;
  if (source.find("://") == source.npos) return std::nullopt;
  return make_error(Kind::usage,
                    "build reads a Containerfile, but " + quote(source) + " is an image",
                    file_of_image(without_scheme(source), "FILE.sqsh"));
}

std::optional<Error> import_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments[0].find("://") == std::string::npos) return std::nullopt;
  const std::string& source = arguments[0];
  std::string image = without_scheme(source);
  for (std::string_view engine : {"docker", "podman"}) {
    bool daemon = source.starts_with("dockerd://") && engine == "docker";
    if (!daemon && (engine == "docker" || !source.starts_with("podman://"))) continue;
    return make_error(Kind::usage,
                      "import " + quote(source) + ": that image belongs to another engine",
                      std::string(engine) + " save " + image +
                          " | berth load; berth save --format sqsh --output FILE.sqsh " + image +
                          " makes a file of it");
  }
  if (source.starts_with(kRegistry)) {
    return make_error(Kind::usage, "import " + quote(source) + ": it is an image of a registry",
                      "berth pull " + image);
  }
  if (!source.starts_with("http://") && !source.starts_with("https://")) return std::nullopt;
  return make_error(Kind::usage, "import " + quote(source) + ": import does not download",
                    "curl -L " + escape_controls(source) + " | berth import - NAME");
}

std::optional<Error> load_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 1) return std::nullopt;
  if (auto other = image_elsewhere(arguments[0])) return other;
  return make_error(Kind::usage, "load reads standard input, or the file given by -i",
                    "berth load -i " + escape_controls(arguments[0]));
}

std::optional<Error> push_elsewhere(const std::vector<std::string>& arguments) {
  if (arguments.size() != 2) return std::nullopt;
  std::string target = without_scheme(arguments[1]);
  if (is_image_file_name(arguments[0])) {
    return make_error(Kind::usage, "push sends an image, but " + quote(arguments[0]) + " is a file",
                      "berth import " + escape_controls(arguments[0]) + " " + target +
                          " && berth push " + target);
  }
  return make_error(
      Kind::usage, "push takes one name, the same here and in the registry",
      "berth tag " + escape_controls(arguments[0]) + " " + target + " && berth push " + target);
}

}  // namespace berth::cli
