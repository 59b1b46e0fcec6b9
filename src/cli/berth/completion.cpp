// SPDX-License-Identifier: Apache-2.0
#include "cli/berth/common.hpp"
#include "cli/berth/verbs.hpp"

namespace berth::cli {
namespace {

Result<int> run_completion(Session& session, const NoOptions&, Arguments arguments) {
  GlobalOptions globals;
  CompletionInput input = completion_input(globals);
  const std::string& shell = arguments[0];
  if (shell == "bash") {
    print(session, bash_completion(input));
  } else if (shell == "zsh") {
    print(session, zsh_completion(input));
  } else if (shell == "fish") {
    print(session, fish_completion(input));
  } else {
    return unknown_word("shell", shell, {"bash", "zsh", "fish"}, "berth completion");
  }
  return 0;
}

}  // namespace

const Verb completion_verb{
    .text = {.name = "completion",
             .arguments = "bash|zsh|fish",
             .summary = "Print the shell completion script",
             .example = "source <(berth completion bash)",
             .words = "bash zsh fish"},
    .arity = {1, 1},
    .store = Store::none,
    .command = [] { return make_command(no_flags, run_completion); },
};

}  // namespace berth::cli
