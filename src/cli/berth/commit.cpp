// SPDX-License-Identifier: Apache-2.0
#include "engine/inspect/commit.hpp"

#include "cli/berth/common.hpp"

namespace berth::cli {
namespace {

struct CommitOptions {
  engine::CommitOptions commit;
};

FlagTable commit_flags(CommitOptions& o) {
  return {
      {"author", 'a', "TEXT", "Author of the image", &o.commit.author},
      {"change", 'c', "INSTRUCTION",
       "Apply a Dockerfile instruction, such as CMD, ENTRYPOINT or ENV", &o.commit.changes},
      {"message", 'm', "TEXT", "Commit message", &o.commit.message},
      {"pause", 'p', "", "Pause the container during the commit (true)", &o.commit.pause},
  };
}

Result<int> run_commit(Session& session, const CommitOptions& o, Arguments arguments) {
  engine::CommitOptions options = o.commit;
  if (arguments.size() > 1) options.reference = arguments[1];
  print(session, TRY(engine::commit_container(session.context, arguments[0], options)) + "\n");
  return 0;
}

}  // namespace

const Verb commit_verb{
    .text = {.name = "commit",
             .arguments = "CONTAINER [NAME[:TAG]]",
             .summary = "Create an image from a container's changes",
             .example = "berth commit --message patched web web:patched",
             .complete = Complete::container},
    .arity = {1, 2},
    .needs = engine::Needs::container,
    .command = [] { return make_command(commit_flags, run_commit); },
};

}  // namespace berth::cli
