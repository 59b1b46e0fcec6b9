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

/// How berth-runtime is to be started for a container whose bundle lies in its directory.
struct LaunchOptions {
  bool interactive = false;
  bool terminal = false;
  std::string label;  ///< what errors call the container instead of its id
  bool held = false;  ///< our descriptors of slurm/hold.hpp are for its first process
  std::optional<int> pmi_descriptor = std::nullopt;  ///< as RunCall has it
};

/// How the command of a foreground container ended, or why it could not be started.
struct Ended {
  int status = 0;                      ///< 126 or 127 with `command_error`
  std::optional<Error> command_error;  ///< the command, not Berth, is at fault
  std::optional<Error> stream_error;   ///< what cut short a stream that we copied
  std::string printed = {};            ///< the last of it, as far as it came through us
  bool asked = false;                  ///< somebody told us to end
};

/// Reads the report pipe until every writer has closed it, then logs the warnings that precede
/// the report.
class ReportReader {
 public:
  ReportReader(sys::Fd fd, Log& log) : fd_(std::move(fd)), log_(log) {}

  int fd() const { return fd_.get(); }  ///< -1 once it has ended
  const std::string& text() const { return text_; }

  /// True when this was the end.
  Result<bool> read();
  Result<void> read_to_end();

 private:
  void say_warnings();

  sys::Fd fd_;
  Log& log_;
  std::string text_;
};

/// A container in front of us, in the order of its calls: open(), announce(), start(), exited(),
/// end(). berth-runtime is executed first and waits, because its start takes about as long as it
/// takes to decide what it is to do, and reading that takes as long as it takes to write the
/// rest. While a call waits, our standard streams are copied, and signals that processes send to
/// us are passed on; a key of the terminal reaches berth-runtime by itself. When this process
/// dies the container is killed.
class Foreground {
 public:
  /// Executes berth-runtime for container `id`, whose bundle will lie in `bundle`. When this
  /// object is dropped before start(), it ends without having made anything. Errors: io.
  static Result<Foreground> open(const Context& context, const std::string& id,
                                 const std::string& bundle, const LaunchOptions& options);

  /// Executes `berth-runtime exec` for one more process in container `id`, which is `process`
  /// whole.  Errors: io.
  static Result<Foreground> open_exec(const Context& context, const std::string& id,
                                      const oci::Process& process, const LaunchOptions& options);

  /// The config of the bundle is written: berth-runtime decides what is to be done.
  void announce() const;

  /// The bundle is whole: runs the container. True when its command runs; false when it cannot,
  /// and end() says why.  Errors: io.
  Result<bool> start();

  /// Waits until nobody uses the container's files any more, and gives its status. Nothing when
  /// berth-runtime was killed, or never ran it.  Errors: io.
  Result<std::optional<int>> exited();

  /// Waits for berth-runtime.  Errors: those of berth-runtime, interrupted.
  Result<Ended> end();

 private:
  Foreground(Relay relay, Log& log) : log_(&log), relay_(std::move(relay)) {}
  static Result<Foreground> start(const Context& context, std::vector<std::string> words,
                                  const sys::Fd& kept, const LaunchOptions& options);
  /// Waits for whatever comes next, and takes it in.
  Result<void> serve();
  /// Nothing when berth-runtime ended without a word.
  Result<std::optional<int>> hear_exit();

  Log* log_;
  std::string id_;
  std::string label_;
  sys::Fd signals_;
  sys::Fd report_;
  sys::Fd caller_;  ///< berth-runtime's end of it is --caller-fd
  Relay relay_;
  sys::Process child_;
  std::optional<ReportReader> reader_;  ///< of report_, once it was started
  std::optional<Result<void>> delivered_;
  std::optional<int> code_;  ///< the container's status
  bool runs_ = false;
  bool ended_ = false;  ///< berth-runtime
  bool asked_ = false;
};

/// Where berth-runtime keeps the state of what runs: one entry per container, named by its id.
std::string runtime_root(const Context& context);

/// Calls `berth-runtime VERB… ID` and gives what it printed.
/// Errors: its own, with kind; not_found when it does not know the container; interrupted (it was
/// killed, or has taken too long).
Result<std::string> call_runtime(const Context& context, std::vector<std::string> words,
                                 std::string_view input = "");

std::string runtime_program(const Context& context);  ///< absolute path

/// What a report says of a container that did not start; errors call it `label` instead of `id`.
/// Errors: the reported one, unless it is the command's.
Result<Ended> ended_with(std::string_view report, const std::string& id, const std::string& label);

/// A process document in memory, for `berth-runtime exec --process /proc/self/fd/N`.  Errors: io.
Result<sys::Fd> process_document(const oci::Process& process);

/// Calls `berth-runtime WORD…`, which keeps `kept`, with nothing on its standard streams, and
/// gives its report, which is empty where it did its work.  Errors: io.
Result<std::string> call_reporting(const Context& context, std::vector<std::string> words,
                                   const sys::Fd& kept);

/// The JSON object that berth-runtime writes to --report-fd when it could not do its work, behind
/// its warnings.
struct Report {
  Error error;
  bool command = false;  ///< the command of the container could not be executed
  int status() const;    ///< 125, or 126 and 127 for a command
};
/// Errors: corrupt.
Result<Report> parse_report(std::string_view text);

/// An error of berth-runtime about a hook of ours becomes what berth-network has said; others
/// stay.
Error network_error(Error error);

}  // namespace berth::engine
