// SPDX-License-Identifier: Apache-2.0
#include "engine/reason.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/text.hpp"
#include "engine/containers.hpp"
#include "engine/image_facts.hpp"
#include "node/cpuinfo.hpp"
#include "oci/image_spec.hpp"
#include "sys/file.hpp"
#include "sys/io_at.hpp"

namespace berth::engine {
namespace {

/// More than the first processor of a machine takes.
constexpr size_t kCpuInfo = size_t{16} << 10;
/// Lines of a log of usual length that fill complaint::kMaxLog.
constexpr uint64_t kLines = 1000;

complaint::Circumstances this_machine() {
  complaint::Circumstances known;
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

std::optional<complaint::Found> reason_of(const complaint::End& end, std::string_view printed) {
  if (!complaint::is_own_failure(end)) return std::nullopt;
  if (!complaint::reason_of(end, printed, {})) return std::nullopt;
  return complaint::reason_of(end, printed, this_machine());
}

std::optional<complaint::Found> reason_of_command(const Error& error, const image::Image& image) {
  if (error.sys_errno != ENOEXEC) return std::nullopt;
  complaint::Circumstances known;
  known.machine = oci::host_platform().architecture;
  known.image = image.config.architecture;
  return complaint::no_program(known);
}

complaint::Found with_needs(const Context& context, const image::Image& image,
                            complaint::Found reason) {
  if (reason.id != "cpu.illegal-instruction") return reason;
  auto facts = facts_of_image(context, image);
  if (!facts.ok()) return reason;
  complaint::Circumstances known = this_machine();
  for (const facts::CpuNeed& need : facts->cpu) {  // highest first
    if (!need.main || need.isa.level <= known.cpu_level || known.cpu_level == 0) continue;
    known.needs = "x86-64-v" + std::to_string(need.isa.level) + " (" + need.example + ")";
    complaint::Found told = complaint::illegal_instruction(known);
    told.text = std::move(reason.text);
    return told;
  }
  return reason;
}

std::optional<complaint::Found> reason_of_container(const Context& context, const std::string& id,
                                                    const ExitRecord& exit) {
  complaint::End end{exit.exit_code.value_or(0), exit.stopped, exit.oom_killed};
  if (!complaint::is_own_failure(end)) return std::nullopt;
  complaint::Tail printed;
  LogOptions options;
  options.tail = kLines;
  // One that has no log may still have a reason.
  ignore(container_logs(context, id, options,
                        [&](const LogPiece& piece) { printed.add(piece.text); }));
  return reason_of(end, printed.text());
}

}  // namespace berth::engine
