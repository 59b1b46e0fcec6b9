// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "engine/container/relay.hpp"
#include "engine/context/context.hpp"
#include "oci/runtime_spec.hpp"
#include "sys/fd/fd.hpp"
#include "sys/process/process.hpp"

namespace berth::engine {

/// How to start berth-runtime for a container. The bundle is in the container's directory.
struct LaunchOptions {
  bool interactive = false;
  bool terminal = false;
  std::string label;  ///< the container's name in errors, instead of its id
  bool held = false;  ///< pass our descriptors of slurm/hold.hpp to its first process
  std::optional<int> pmi_descriptor = std::nullopt;  ///< as in RunCall
};

/// How the command of a foreground container ended, or why it could not be started.
struct Ended {
  int status = 0;                      ///< 126 or 127 with `command_error`
  std::optional<Error> command_error;  ///< the command, not Berth, is at fault
  std::optional<Error> stream_error;   ///< why a stream that we copied was cut short
  std::string printed = {};            ///< the last output, as far as it passed through us
  bool asked = false;                  ///< a signal asked this process to end
};

/// Reads the report pipe until all writers have closed it; logs the warnings before the report.
class ReportReader {
 public:
  ReportReader(sys::Fd fd, Log& log) : fd_(std::move(fd)), log_(log) {}

  int fd() const { return fd_.get(); }  ///< -1 after the end
  const std::string& text() const { return text_; }

  /// True at the end of the report.
  Result<bool> read();
  Result<void> read_to_end();

 private:
  void say_warnings();

  sys::Fd fd_;
  Log& log_;
  std::string text_;
};

/// A foreground container. Call open(), announce(), start(), exited() and end(), in this order.
/// open() executes berth-runtime, which then waits: its start-up runs in parallel with our
/// decisions. After announce() it reads the config while we write the rest of the bundle. While a
/// call waits, it copies our standard streams, and passes on signals that processes send to us; the
/// signal of a terminal key reaches berth-runtime directly. If this process dies, even by SIGKILL,
/// the kernel kills berth-runtime with SIGKILL (PR_SET_PDEATHSIG, SpawnOptions::die_with_parent).
/// Then it kills the container's first process in the same way (Prepared::die_with_parent), which
/// ends the container.
class Foreground {
 public:
  /// Executes berth-runtime for container `id`, with its bundle in `bundle`, which may not exist
  /// yet. If this object is destroyed before start(), berth-runtime ends without creating anything.
  /// Errors: io.
  static Result<Foreground> open(const Context& context, const std::string& id,
                                 const std::string& bundle, const LaunchOptions& options);

  /// Executes `berth-runtime exec` for one more process in container `id`; `process` is complete.
  /// Errors: io.
  static Result<Foreground> open_exec(const Context& context, const std::string& id,
                                      const oci::Process& process, const LaunchOptions& options);

  /// The config of the bundle is written: berth-runtime may plan the container.
  void announce() const;

  /// The bundle is complete: runs the container. True once its command runs. False if the command
  /// cannot run: end() then returns the reason.  Errors: io.
  Result<bool> start();

  /// Waits until the container's files are no longer in use, and returns the container's status.
  /// Nothing if berth-runtime was killed, or never ran the container.  Errors: io.
  Result<std::optional<int>> exited();

  /// Waits for the end of berth-runtime.  Errors: those of berth-runtime, interrupted.
  Result<Ended> end();

 private:
  Foreground(Relay relay, Log& log) : log_(&log), relay_(std::move(relay)) {}
  static Result<Foreground> start(const Context& context, std::vector<std::string> words,
                                  const sys::Fd& kept, const LaunchOptions& options);
  /// Waits for the next event, and handles it.
  Result<void> serve();
  /// Nothing if berth-runtime ended without a message.
  Result<std::optional<int>> hear_exit();

  Log* log_;
  std::string id_;
  std::string label_;
  sys::Fd signals_;
  sys::Fd report_;
  sys::Fd caller_;  ///< our end of the socket; berth-runtime has the other as --caller-fd
  Relay relay_;
  sys::Process child_;
  std::optional<ReportReader> reader_;  ///< reads report_, after start()
  std::optional<Result<void>> delivered_;
  std::optional<int> code_;  ///< the container's status
  bool runs_ = false;
  bool ended_ = false;  ///< berth-runtime has ended
  bool asked_ = false;
};

/// berth-runtime's state directory: one entry per container, named by its id.
std::string runtime_root(const Context& context);

/// Calls `berth-runtime VERB… ID` and returns its output.
/// Errors: those of berth-runtime, with their kind; not_found (berth-runtime does not know the
/// container); interrupted (berth-runtime was killed, or took too long).
Result<std::string> call_runtime(const Context& context, std::vector<std::string> words,
                                 std::string_view input = "");

std::string runtime_program(const Context& context);  ///< absolute path

/// Parses the report of a container that did not start; errors contain `label` instead of `id`.
/// Errors: the reported one, unless the command caused it.
Result<Ended> ended_with(std::string_view report, const std::string& id, const std::string& label);

/// A process document in memory, for `berth-runtime exec --process /proc/self/fd/N`.  Errors: io.
Result<sys::Fd> process_document(const oci::Process& process);

/// Calls `berth-runtime WORD…`, which inherits `kept`, with /dev/null as its standard streams, and
/// returns its report; empty on success.  Errors: io.
Result<std::string> call_reporting(const Context& context, std::vector<std::string> words,
                                   const sys::Fd& kept);

/// The JSON object that berth-runtime writes to --report-fd after its warnings when it fails.
struct Report {
  Error error;
  bool command = false;  ///< the command of the container could not be executed
  int status() const;    ///< 126 or 127 if the command caused the error, else 125
};
/// Errors: corrupt.
Result<Report> parse_report(std::string_view text);

/// Turns an error of berth-runtime about our network hook into the error that berth-network
/// reported; returns other errors unchanged.
Error network_error(Error error);

}  // namespace berth::engine
