// SPDX-License-Identifier: Apache-2.0
#include "transfer/work/tool.hpp"

#include <fcntl.h>

#include "base/text.hpp"
#include "sys/file/file.hpp"
#include "sys/machine/packages.hpp"
#include "sys/process/program.hpp"
#include "sys/user/identity.hpp"

namespace berth::transfer {
namespace {

// From util-linux, which every Debian system has.
constexpr const char* kSetpriv = "/usr/bin/setpriv";

constexpr const char* kPrlimit = "/usr/bin/prlimit";
constexpr uint64_t kMostMemory = uint64_t{2} << 30;

std::vector<std::string> without_rights(ToolUser user) {
  std::vector<std::string> words = {kSetpriv, "--bounding-set=-all", "--inh-caps=-all",
                                    "--no-new-privs", "--pdeathsig=KILL"};
  if (user == ToolUser::nobody && tools_are_nobody()) {
    for (const char* word : {"--reuid=65534", "--regid=65534", "--clear-groups"}) {
      words.emplace_back(word);
    }
  }
  words.emplace_back("--");
  // A limit of memory for readers of untrusted files: 4 KiB of squashfs can name 2^30 files, each
  // of which takes memory before the first byte is written.
  if (user == ToolUser::nobody) {
    words.insert(words.end(), {kPrlimit, "--as=" + std::to_string(kMostMemory), "--"});
  }
  return words;
}

}  // namespace

std::string tool_path(const sys::Fd& fd) {
  return "/proc/self/fd/" + std::to_string(fd.get());
}

bool tools_are_nobody() {
  return sys::effective_uid() == 0 && sys::in_initial_user_namespace();
}

Result<Tool> Tool::start(const ToolCall& call, const sys::Fd* in, const sys::Fd* out) {
  std::string program = "/usr/bin/" + call.program;
  if (!sys::check_executable(program).ok()) {
    return make_error(Kind::not_found, "no program " + quote(program),
                      sys::how_to_install(call.package));
  }
  Tool tool;
  tool.name_ = call.program;
  tool.words_ = TRY(sys::words_file("words of " + call.program));
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR | O_NOCTTY));
  sys::SpawnOptions options;
  options.program = kSetpriv;
  options.args = without_rights(call.user);
  options.args.push_back(program);
  options.args.insert(options.args.end(), call.args.begin(), call.args.end());
  options.env = call.env;
  options.env->push_back("PATH=/usr/bin:/bin");
  options.in = in != nullptr ? in : &null;
  options.out = out != nullptr ? out : &null;
  options.err = &tool.words_;
  options.keep = call.keep;
  options.working_directory = "/";
  tool.process_ = TRY(sys::spawn(options));
  return tool;
}

Result<void> Tool::finish() {
  sys::ExitStatus status = TRY(process_.wait());
  if (status.shell_code() == 0) return {};
  std::string said = TRY(sys::read_words(words_));
  std::string_view why = said;
  if (why.empty()) {
    return make_error(Kind::corrupt, name_ + ": status " + std::to_string(status.shell_code()));
  }
  return make_error(Kind::corrupt, name_ + ": " + escape_controls(why.substr(0, why.find('\n'))));
}

}  // namespace berth::transfer
