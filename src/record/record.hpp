// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "sys/fd/fd.hpp"

/// container.json: the file next to a container's bundle in which the engine and the container's
/// monitor record the settings and the history of the container.
namespace berth::record {

/// The first line of container.json, written once, when the container is created. All times are
/// nanoseconds since 1970. Each later change is one more line; the last line of each kind counts. A
/// short write at the end of a file needs no lock, and usually no new disk block.
struct Container {
  std::string id;
  std::string name;                  ///< at creation; a later name is in a Name
  std::string image;                 ///< as requested
  std::string image_id;              ///< "sha256:…"; empty with --rootfs
  std::vector<std::string> command;  ///< entrypoint and arguments
  int64_t created_ns = 0;
  bool remove = false;    ///< --rm
  bool prepared = false;  ///< made by `create`; not started yet
  bool watched = false;   ///< owned by a monitor, not by a foreground `berth run`
  bool terminal = false;
  bool interactive = false;  ///< -i
  int stop_signal = 15;      ///< the first signal of `stop`; in old records without it, TERM
  std::optional<int64_t> stop_timeout = {};  ///< seconds until `stop` kills; -1: never; none: ten
};
void fields(auto& v, Container& r) {
  v.required("id", r.id);
  v.required("name", r.name);
  v.required("image", r.image);
  v.required("image_id", r.image_id);
  v.required("command", r.command);
  v.required("created_ns", r.created_ns);
  v.required("remove", r.remove);
  v.optional("prepared", r.prepared);
  v.optional("watched", r.watched);
  v.required("terminal", r.terminal);
  v.optional("interactive", r.interactive);
  v.optional("stop_signal", r.stop_signal);
  v.optional("stop_timeout", r.stop_timeout);
}

/// Added by the monitor (monitor/record.cpp) when the command runs.
struct Start {
  int64_t started_ns = 0;
  int64_t pid = 0;           ///< of the first process, in the owner's pid namespace
  uint64_t start_ticks = 0;  ///< tells the process from a later one with the same pid
  std::string boot_id;       ///< of the machine's boot; after a reboot the container is not running
  int restarts = 0;          ///< by the restart policy, since the user started it
};
void fields(auto& v, Start& r) {
  v.required("started_ns", r.started_ns);
  v.required("pid", r.pid);
  v.required("start_ticks", r.start_ticks);
  v.required("boot_id", r.boot_id);
  v.optional("restarts", r.restarts);
}

/// Appended when the container has ended, by its owner: the monitor or a foreground `berth run`. A
/// process that waits for a container with --rm keeps the file open, and reads this line even after
/// the file was removed. If the line is missing and the container has no owner, no process observed
/// the end.
struct Exit {
  std::optional<int> exit_code;  ///< none: unknown
  int64_t finished_ns = 0;
  bool restarting = false;  ///< the restart policy restarts the container
  bool oom_killed = false;
  std::string error = {};  ///< why the container could not be started
  bool stopped = false;    ///< ended by the user
};
void fields(auto& v, Exit& r) {
  v.always("exit_code", r.exit_code);
  v.required("finished_ns", r.finished_ns);
  v.optional("restarting", r.restarting);
  v.optional("oom_killed", r.oom_killed);
  v.optional("error", r.error);
  v.optional("stopped", r.stopped);
}

/// Added by `berth rename`.
struct Name {
  std::string name;
};
void fields(auto& v, Name& r) {
  v.required("name", r.name);
}

/// Added by `berth pause` and `unpause`; a start ends a pause.
struct Pause {
  bool paused = false;
};
void fields(auto& v, Pause& r) {
  v.always("paused", r.paused);
}

inline constexpr const char* kFile = "container.json";

/// The content of the file's lines.
struct Lines {
  std::optional<Container> record;  ///< with the last name; none: incomplete or damaged
  std::optional<Error> damage;      ///< why the first line is unreadable
  std::optional<Start> start;       ///< the last start
  std::optional<Exit> exit;         ///< after that start
  bool paused = false;
};

/// Reads the whole open file. Ignores an incomplete line, which a full disk can cause.
/// Errors: io.
Result<Lines> read(const sys::Fd& file);

/// Appends a line to the file in `directory`: one short write, so a reader sees all of it or
/// nothing. Errors: not_found, io.
Result<void> append(const sys::Fd& directory, const std::string& line);

}  // namespace berth::record
