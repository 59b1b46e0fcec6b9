// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "cli/berth/common.hpp"
#include "cli/berth/elsewhere.hpp"
#include "engine/files/changes.hpp"
#include "engine/files/copy.hpp"
#include "engine/inspect/commit.hpp"

namespace berth::cli {
namespace {

// ---- cp -----------------------------------------------------------------------------------------

struct CpOptions {
  engine::CopyOptions copy;
  bool quiet = false;
};

FlagTable cp_flags(CpOptions& o) {
  return {
      {"archive", 'a', "", "Keep user and group ids where possible", &o.copy.archive},
      {"follow-link", 'L', "", "Follow a symbolic link at SOURCE", &o.copy.follow_link},
      {"quiet", 'q', "", "Print nothing (the default)", &o.quiet},
  };
}

Result<int> run_cp(Session& session, const CpOptions& o, Arguments arguments) {
  engine::CopySide from = engine::parse_copy_side(arguments[0]);
  engine::CopySide to = engine::parse_copy_side(arguments[1]);
  if (to.container.empty() && to.path == "-" && session.terminal.is_terminal(Stream::out)) {
    return make_error(Kind::usage, "cannot write an archive to a terminal",
                      "berth cp CONTAINER:PATH FILE");
  }
  if (from.container.empty() && from.path == "-" && session.terminal.input_is_terminal()) {
    return make_error(Kind::usage, "no archive on stdin", "tar -c FILE | berth cp - CONTAINER:DIR");
  }
  engine::CopyOptions options = o.copy;
  options.working_directory = session.working_directory;
  TRY(engine::copy_files(session.context, from, to, options));
  return 0;
}

/// The argument that names a container.
std::string container_of(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    std::string container = engine::parse_copy_side(argument).container;
    if (!container.empty()) return container;
  }
  return "";
}

// ---- diff ---------------------------------------------------------------------------------------

Result<int> run_diff(Session& session, const NoOptions&, Arguments arguments) {
  std::string text;
  for (const auto& change : TRY(engine::container_changes(session.context, arguments[0]))) {
    text += std::string(1, change.kind) + " " + escape_controls(change.path) + "\n";
  }
  print(session, text);
  return 0;
}

// ---- commit -------------------------------------------------------------------------------------

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

// ---- export -------------------------------------------------------------------------------------

struct ExportOptions {
  std::string output;
};

FlagTable export_flags(ExportOptions& o) {
  return {file_flag("output", 'o', "Write to FILE instead of stdout", &o.output)};
}

Result<int> run_export(Session& session, const ExportOptions& o, Arguments arguments) {
  if (is_image_file_name(o.output)) {
    return make_error(Kind::usage, "write " + quote(o.output) + ": export writes a tar archive",
                      "berth commit " + arguments[0] +
                          " NAME && berth save --format sqsh --output FILE.sqsh NAME");
  }
  if (o.output.empty() && session.terminal.is_terminal(Stream::out)) {
    return make_error(Kind::usage, "cannot write an archive to a terminal",
                      "berth export --output FILE CONTAINER");
  }
  std::string output = o.output.empty() ? "/dev/fd/1" : o.output;
  TRY(engine::export_container(session.context, arguments[0], output));
  return 0;
}

}  // namespace

const Verb cp_verb{
    .text = {.name = "cp",
             .arguments = "CONTAINER:SOURCE|SOURCE|- DESTINATION|CONTAINER:DESTINATION|-",
             .summary = "Copy files between a container and the host",
             .example = "berth cp web:/var/log/. logs",
             .complete = Complete::container},
    .arity = {2, 2},
    .needs = engine::Needs::container,
    .container = container_of,
    .command = [] { return make_command(cp_flags, run_cp); },
};
const Verb diff_verb{
    .text = {.name = "diff",
             .arguments = "CONTAINER",
             .summary = "List files that a container added (A), changed (C) or deleted (D)",
             .example = "berth diff web",
             .complete = Complete::container},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .command = [] { return make_command(no_flags, run_diff); },
};
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
const Verb export_verb{
    .text = {.name = "export",
             .arguments = "CONTAINER",
             .summary = "Export a container's file system, without volumes, as a tar archive",
             .example = "berth export --output web.tar web",
             .complete = Complete::container},
    .arity = {1, 1},
    .needs = engine::Needs::container,
    .command = [] { return make_command(export_flags, run_export); },
};

}  // namespace berth::cli
