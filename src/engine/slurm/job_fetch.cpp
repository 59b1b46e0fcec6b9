// SPDX-License-Identifier: Apache-2.0
#include "engine/slurm/job_fetch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>

#include "base/text.hpp"
#include "engine/context/registries.hpp"
#include "image/reference.hpp"
#include "image/registry_access.hpp"
#include "slurm/board.hpp"
#include "sys/fd/poll.hpp"
#include "sys/file/file.hpp"
#include "sys/net/socket.hpp"
#include "sys/net/tcp.hpp"
#include "sys/process/program.hpp"
#include "sys/process/signals.hpp"

namespace berth::engine {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// The role of this node in its step.
struct JobFetch::Part {
  slurm::Invitation invitation;
  std::string board;  ///< the address of the machine where srun runs the board
  uint32_t node = 0;
  uint32_t nodes = 0;

  bool serves() const { return slurm::has_children(node, nodes, invitation.arity); }
};

namespace {

using Part = JobFetch::Part;

constexpr milliseconds kForConnection{5000};
/// A little more than the time in which the board answers.
constexpr milliseconds kForDirections = slurm::Board::kForAnybody + milliseconds(30'000);
constexpr milliseconds kLater{200};
/// Less than 60 s, the default of Slurm's UnkillableStepTimeout.
constexpr milliseconds kForOthers{40'000};
constexpr size_t kMaxOrder = size_t{4} << 20;

std::optional<uint32_t> number(const Environment& environment, std::string_view name) {
  auto text = environment.get_filled(name);
  auto value = text ? parse_u64(*text) : std::nullopt;
  if (!value || *value > slurm::kMaxNodes) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

/// Nothing if there is no board, or no other node.
Result<std::optional<Part>> part_of(const Environment& environment) {
  auto text = environment.get_filled(slurm::kBoardVariable);
  auto board = environment.get_filled("SLURM_LAUNCH_NODE_IPADDR");
  auto node = number(environment, "SLURM_NODEID");
  auto nodes = number(environment, "SLURM_STEP_NUM_NODES");
  if (!text || !board || !node || !nodes || *nodes < 2 || *node >= *nodes) {
    return std::optional<Part>();
  }
  auto invitation = TRY(slurm::parse_invitation(*text));
  return std::optional<Part>(Part{std::move(invitation), std::string(*board), *node, *nodes});
}

/// Registers this node at the board, which answers later with the nodes to ask. A node that serves
/// others listens before it sends its address.
Result<sys::Fd> greet_board(const Part& part, sys::Fd& listener) {
  sys::Fd board = TRY(sys::connect_tcp(part.board, part.invitation.port, kForConnection));
  slurm::Hello hello{part.invitation.door, part.node, part.nodes, ""};
  if (part.serves()) {
    // The local address of the route to srun is one that the other nodes can reach.
    std::string host = TRY(sys::local_address(board));
    if (!listener) listener = TRY(sys::listen_tcp(host));
    hello.address = TRY(sys::listening_address(listener));
  }
  TRY(sys::send_all(board, slurm::to_line(hello), kForConnection));
  return board;
}

Result<slurm::Directions> await_directions(const Part& part, sys::Fd board, sys::Fd& listener) {
  const Clock::time_point end = Clock::now() + kForDirections;
  while (true) {
    auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    std::string line = TRY(sys::read_line(board, 32 * slurm::kMaxLine,
                                          std::max(left, milliseconds(0)), "the step's board"));
    auto directions = TRY(slurm::parse_directions(line));
    if (!directions.later) return directions;
    std::this_thread::sleep_for(kLater);
    board = TRY(greet_board(part, listener));
  }
}

/// berth-hub, which serves the nodes that ask this one.
struct Front {
  sys::Process process;
  sys::Fd order;  ///< clients wait until berth-hub gets its order here
};

/// The arguments and files of berth-hub.
struct FrontWords {
  std::string program;
  std::vector<std::string> args;
  std::vector<sys::Fd> files;  ///< `args` has the descriptor numbers
};
/// berth-hub reads its order from `order`.
Result<FrontWords> front_words(const Context& context, sys::Fd listener, const std::string& key,
                               sys::Fd order) {
  std::string program = TRY(sys::own_program(context.paths.libexec, "berth-hub", "BERTH_HUB"));
  FrontWords words{std::move(program), {"berth-hub", "--for-job"}, {}};
  words.files.push_back(std::move(listener));
  words.files.push_back(TRY(sys::memory_file("berth-job-key", key)));
  words.files.push_back(std::move(order));
  for (const sys::Fd& file : words.files) {
    TRY(sys::set_inheritable(file));
    words.args.push_back(std::to_string(file.get()));
  }
  return words;
}

Result<Front> start_front(const Context& context, sys::Fd listener, const std::string& key) {
  sys::Pipe order = TRY(sys::make_pipe());
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  FrontWords words = TRY(front_words(context, std::move(listener), key, std::move(order.read)));
  sys::SpawnOptions options;
  options.program = words.program;
  options.args = words.args;
  options.env = context.environment.without_loader();
  for (const sys::Fd& file : words.files) options.keep.push_back(file.get());
  options.in = options.out = &null;
  Front front;
  front.process = TRY(sys::spawn(options));
  front.order = std::move(order.write);
  return front;
}

std::string order_text(image::JobOrder order, std::vector<std::string> from) {
  if (!from.empty()) {
    order.access.peers = image::JobPeers{order.reference, std::move(from), order.key};
  }
  return image::to_json(order);
}

Result<void> send_to_front(Front& front, const std::string& order) {
  sys::IgnoredSignal broken(SIGPIPE);  // berth-hub may have ended
  TRY(sys::write_all(front.order, order, "the order of berth-hub"));
  front.order.reset();
  return {};
}

}  // namespace

JobFetch JobFetch::begin(const Context& context, const image::Store& store,
                         const RunRequest& request, const image::RegistryAccess& access) {
  auto reference = image::Reference::parse(request.image);
  if (request.image_file || request.rootfs || !reference.ok()) return {};
  auto joined = [&]() -> Result<JobFetch> {
    JobFetch fetch;
    auto part = TRY(part_of(context.environment));
    auto present = TRY(store.find_image_named(request.image));
    bool has_image = present && present->unpacked();
    if (!part || (has_image && !part->serves())) return fetch;
    image::JobOrder order;
    order.root = context.paths.root;
    order.reference = reference->canonical();
    order.key = part->invitation.key;
    order.access = access;
    TRY(add_registries(context, order.access));
    TRY(has_image ? fetch.give(context, order) : fetch.join(context, *part, order));
    return fetch;
  }();
  if (joined.ok()) return std::move(*joined);
  context.log.warn("cannot fetch the image with the other nodes of this step: " +
                   to_line(joined.error()) + "; asking the registry instead");
  return {};
}

Result<void> JobFetch::join(const Context& context, const Part& part,
                            const image::JobOrder& order) {
  sys::Fd listener;
  sys::Fd board = TRY(greet_board(part, listener));
  Front front;
  std::string own;
  if (listener) {
    own = TRY(sys::listening_address(listener));
    front = TRY(start_front(context, std::move(listener), order.key));
  }
  slurm::Directions directions = TRY(await_directions(part, std::move(board), listener));
  image::JobPeers peers{order.reference, directions.from, order.key};
  if (front.process) {
    TRY(send_to_front(front, order_text(order, std::move(directions.from))));
    peers.addresses.insert(peers.addresses.begin(), std::move(own));
    helper_ = std::move(front.process);
  }
  if (!peers.addresses.empty()) peers_ = std::move(peers);
  return {};
}

// Starts a separate process, since the container of this node must not wait for it, and usually no
// node asks.
Result<void> JobFetch::give(const Context& context, const image::JobOrder& order) {
  sys::Fd in = TRY(sys::memory_file("berth-job-order", image::to_json(order)));
  sys::Fd null = TRY(sys::open_at(sys::cwd(), "/dev/null", O_RDWR));
  sys::SpawnOptions options;
  options.program = context.paths.libexec + "/berth";
  const Paths& paths = context.paths;
  options.args = {"berth", "--root", paths.root, "--state", paths.state, "slurm", "give"};
  options.in = &in;
  options.out = &null;
  helper_ = TRY(sys::spawn(options));
  return {};
}

void JobFetch::add_to(image::RegistryAccess& access) const {
  if (peers_) access.peers = peers_;
}

Result<void> give_to_job(const Context& context) {
  sys::Fd in(STDIN_FILENO);
  std::string text = TRY(sys::read_all(in, "the order", kMaxOrder));
  image::JobOrder order = TRY(image::parse_job_order(text));
  auto part = TRY(part_of(context.environment));
  if (!part || !part->serves()) return {};
  sys::Fd listener;
  sys::Fd board = TRY(greet_board(*part, listener));
  slurm::Directions directions = TRY(await_directions(*part, std::move(board), listener));
  std::vector<pollfd> somebody{{listener.get(), POLLIN, 0}};
  TRY(sys::poll(somebody, std::nullopt));
  std::string told = order_text(std::move(order), std::move(directions.from));
  sys::Fd file = TRY(sys::memory_file("berth-job-order", told));
  FrontWords words =
      TRY(front_words(context, std::move(listener), part->invitation.key, std::move(file)));
  return sys::execute(words.program, words.args, context.environment.without_loader());
}

void JobFetch::finish() {
  // On SIGHUP berth-hub ends after the last transfer; a helper that has not executed berth-hub yet
  // ends at once.
  if (helper_ && helper_.signal(SIGHUP).ok()) ignore(helper_.wait_for(kForOthers));
  helper_ = sys::Process();
}

}  // namespace berth::engine
