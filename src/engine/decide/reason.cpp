// SPDX-License-Identifier: Apache-2.0
#include "engine/decide/reason.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <functional>

#include "engine/container/logs.hpp"
#include "engine/image/facts.hpp"
#include "engine/image/layer_view.hpp"
#include "node/cpuinfo.hpp"
#include "oci/image_spec.hpp"
#include "scan/elf.hpp"
#include "sys/file/file.hpp"
#include "sys/file/regular.hpp"

namespace berth::engine {
namespace {

/// More bytes than the entry of the first processor in /proc/cpuinfo has.
constexpr size_t kCpuInfo = size_t{16} << 10;
/// Enough lines of usual length to fill known_error::kMaxLog.
constexpr uint64_t kLines = 1000;

known_error::Circumstances this_machine() {
  known_error::Circumstances known;
  known.machine = oci::host_platform().architecture;
  auto file = sys::open_at(sys::cwd(), "/proc/cpuinfo", O_RDONLY);
  auto text = file.ok() ? sys::read_at(*file, 0, kCpuInfo, "/proc/cpuinfo") : file.error();
  if (!text.ok()) return known;
  node::Cpu cpu = node::read_cpuinfo(*text, known.machine == "amd64" ? "x86_64" : "aarch64");
  known.processor = cpu.model;
  known.cpu_level = cpu.level;
  return known;
}

}  // namespace

std::optional<known_error::Found> reason_of(const known_error::End& end, std::string_view printed) {
  if (!known_error::is_own_failure(end)) return std::nullopt;
  if (!known_error::reason_of(end, printed, {})) return std::nullopt;
  return known_error::reason_of(end, printed, this_machine());
}

namespace {

/// The program in "execute '/bin/sh'", an error of sys::execute().
std::string_view program_of(const Error& error) {
  constexpr std::string_view kBegin = "execute '";
  std::string_view what = error.what;
  bool named = what.starts_with(kBegin) && what.ends_with('\'') && what.size() > kBegin.size();
  return named ? what.substr(kBegin.size(), what.size() - kBegin.size() - 1) : std::string_view();
}

/// The interpreter on the first line of a script; "" if there is none.
std::string interpreter_of(std::string_view first_bytes) {
  if (!first_bytes.starts_with("#!")) return {};
  std::string_view line = first_bytes.substr(2, first_bytes.find('\n') - 2);
  // Ends only at blanks and tabs, as in the kernel: a Windows script names "/bin/sh\\r".
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

/// Reads bytes of the program that failed to execute.
using ReadProgram = std::function<Result<std::string>(uint64_t offset, size_t length)>;
/// Whether an absolute path certainly does not exist.
using IsAbsent = std::function<bool(const std::string& path)>;

std::optional<known_error::Found> missing_interpreter(std::string_view program,
                                                      const ReadProgram& read,
                                                      const IsAbsent& is_absent) {
  constexpr size_t kFirstLine = 256;  // BINPRM_BUF_SIZE of the kernel
  auto is_missing = [&](const std::string& path) {
    return path.starts_with('/') && is_absent(path);
  };
  auto first = read(0, kFirstLine);
  if (!first.ok() || first->empty()) return std::nullopt;
  std::string of_script = interpreter_of(*first);
  if (is_missing(of_script)) {
    return known_error::no_interpreter(known_error::Interpreter::of_script, program, of_script);
  }
  auto elf = scan::read_elf(read);
  if (!elf.ok() || !is_missing(elf->interpreter)) return std::nullopt;
  return known_error::no_interpreter(known_error::Interpreter::loader, program, elf->interpreter);
}

/// The volume that hides the image's `path`; null if none does.
const Volume* volume_over(const std::vector<Volume>& volumes, std::string_view path) {
  const Volume* found = nullptr;
  for (const Volume& one : volumes) {
    bool is_over = path == one.destination ||
                   path.starts_with(one.destination == "/" ? "/" : one.destination + "/");
    bool is_deeper = found == nullptr || one.destination.size() > found->destination.size();
    if (is_over && is_deeper) found = &one;
  }
  return found;
}

/// Opens `path` in the host directory or file of `volume`; nothing if unknown.
std::optional<sys::Fd> open_in_volume(const Volume& volume, std::string_view path) {
  if (volume.source.empty()) return std::nullopt;
  std::filesystem::path source(volume.source);
  std::string rest(path.substr(volume.destination.size()));
  if (rest.empty()) {  // a volume of a single file
    rest = source.filename();
    source = source.parent_path();
  }
  auto root = sys::open_at(sys::cwd(), source, O_PATH | O_DIRECTORY);
  if (!root.ok()) return std::nullopt;
  auto file = sys::find_regular_in_root(*root, rest);
  return file.ok() ? std::move(*file) : std::nullopt;
}

std::optional<known_error::Found> missing_in_image(const std::string& program,
                                                   const image::Image& image,
                                                   const std::vector<Volume>& volumes) {
  std::vector<std::string> layers = image.layer_directories();
  std::ranges::reverse(layers);
  auto view = LayerView::open(layers);
  if (!view.ok() || !program.starts_with('/')) return std::nullopt;
  ReadProgram read = [&](uint64_t offset, size_t length) {
    return view->read_at(program, offset, length);
  };
  std::optional<sys::Fd> file;
  if (const Volume* volume = volume_over(volumes, program)) {
    file = open_in_volume(*volume, program);
    if (!file) return std::nullopt;
    read = [&](uint64_t offset, size_t length) {
      return sys::read_at(*file, offset, length, program);
    };
  }
  return missing_interpreter(program, read, [&](const std::string& path) {
    if (volume_over(volumes, path) != nullptr) return false;  // it may exist there
    auto type = view->look_up(path);
    return type.ok() && *type == LayerView::Type::absent;
  });
}

}  // namespace

std::optional<known_error::Found> reason_in_root(const Error& error, const sys::Fd& root) {
  std::string program(program_of(error));
  if (error.sys_errno != ENOENT || !program.starts_with('/')) return std::nullopt;
  auto file = sys::find_regular_in_root(root, program);
  if (!file.ok() || !*file) return std::nullopt;
  return missing_interpreter(
      program,
      [&](uint64_t offset, size_t length) { return sys::read_at(**file, offset, length, program); },
      [&](const std::string& path) {
        auto found = sys::open_in_root(root, path, O_PATH);
        return !found.ok() && found.error().sys_errno == ENOENT;
      });
}

std::optional<known_error::Found> reason_of_command(const Error& error, const image::Image& image,
                                                    const std::vector<Volume>& volumes) {
  if (error.sys_errno == ENOENT) {
    return missing_in_image(std::string(program_of(error)), image, volumes);
  }
  if (error.sys_errno != ENOEXEC) return std::nullopt;
  known_error::Circumstances known;
  known.machine = oci::host_platform().architecture;
  known.image = image.config.architecture;
  return known_error::no_program(known);
}

known_error::Found with_needs(const Context& context, const image::Image& image,
                              known_error::Found reason) {
  if (reason.id != "cpu.illegal-instruction") return reason;
  auto facts = facts_of_image(context, image);
  if (!facts.ok()) return reason;
  known_error::Circumstances known = this_machine();
  for (const facts::CpuNeed& need : facts->cpu) {  // highest first
    if (!need.main || need.isa.level <= known.cpu_level || known.cpu_level == 0) continue;
    known.needs = "x86-64-v" + std::to_string(need.isa.level) + " (" + need.example + ")";
    known_error::Found told = known_error::illegal_instruction(known);
    told.text = std::move(reason.text);
    return told;
  }
  return reason;
}

std::optional<known_error::Found> reason_of_container(const Context& context, const std::string& id,
                                                      const record::Exit& exit) {
  known_error::End end{exit.exit_code.value_or(0), exit.stopped, exit.oom_killed};
  if (!known_error::is_own_failure(end)) return std::nullopt;
  known_error::Tail printed;
  LogOptions options;
  options.tail = kLines;
  // A container without a log may still have a reason.
  ignore(container_logs(context, id, options,
                        [&](const LogPiece& piece) { printed.add(piece.text); }));
  return reason_of(end, printed.text());
}

}  // namespace berth::engine
