// SPDX-License-Identifier: Apache-2.0
#include "slurm/spelled.hpp"

#include "base/text.hpp"

namespace berth::slurm {
namespace {

constexpr std::string_view kBack = "/../";
constexpr std::string_view kRoot = "rootfs";
constexpr std::string_view kProgram = "program";  // followed by the program of the task

/// "dot" → '.', "a" → 'a'; 0: does not spell a character.
char character_of(std::string_view directory) {
  if (directory == "dot") return '.';
  if (directory == "slash") return '/';
  return directory.size() == 1 && directory != "." ? directory[0] : '\0';
}

}  // namespace

Result<Spelled> read_spelled(std::string_view root, std::string_view images) {
  Spelled found;
  std::string* text = &found.image;
  std::string_view rest = root;
  bool below = rest.starts_with(images) && rest.substr(images.size()).starts_with('/');
  if (below) rest.remove_prefix(images.size() + 1);
  while (below && rest != kRoot) {
    size_t end = rest.find(kBack);
    std::string_view directory = rest.substr(0, end == rest.npos ? 0 : end);
    if (directory == kProgram && text == &found.image && !text->empty()) {
      text = &found.program;
    } else {
      char character = character_of(directory);
      if (character == '\0') break;
      *text += character;
    }
    rest.remove_prefix(end + kBack.size());
  }
  if (!below || rest != kRoot || text->empty()) {
    return make_error(Kind::corrupt, "the path " + quote(root) + " names no image",
                      "srun --container IMAGE, where cli_filter.lua is set up");
  }
  return found;
}

}  // namespace berth::slurm
