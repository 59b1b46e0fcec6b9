// SPDX-License-Identifier: Apache-2.0
#include "engine/job_fetch.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "engine/registries.hpp"
#include "image/job_order.hpp"
#include "image/reference.hpp"
#include "slurm/board.hpp"
#include "sys/file.hpp"
#include "sys/signals.hpp"
#include "sys/socket.hpp"
#include "sys/stream.hpp"
#include "sys/tcp.hpp"

namespace berth::engine {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

/// What a node's part in a step is.
struct JobFetch::Part {
  slurm::Invitation invitation;
  std::string board;  ///< the address of srun's machine
  uint32_t node = 0;
  uint32_t nodes = 0;
  bool has_image = false;
  std::string reference;  ///< canonical

  bool serves() const { return slurm::has_children(node, nodes, invitation.arity); }
};

namespace {

constexpr milliseconds kForConnection{5000};
constexpr milliseconds kForFront{10'000};
/// A little more than the board lets anybody wait.
constexpr milliseconds kForDirections = slurm::Board::kForAnybody + milliseconds(30'000);
/// Who has the image only passes it on, and does not wait for that.
constexpr milliseconds kForDirectionsOfOthers{2000};
constexpr milliseconds kLater{200};

std::optional<uint32_t> number(const Environment& environment, std::string_view name) {
  auto text = environment.get_filled(name);
  auto value = text ? parse_u64(*text) : std::nullopt;
  if (!value || *value > slurm::kMaxNodes) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

/// "http://10.1.2.3:4567" of the line that says where it listens.
Result<std::string> address_in(const std::string& line) {
  constexpr std::string_view kScheme = "http://";
  size_t at = line.find(kScheme);
  std::string address = at == line.npos ? "" : line.substr(at + kScheme.size());
  if (slurm::is_address(address)) return address;
  return make_error(Kind::bug, "read where berth-hub listens: " + quoted(line));
}

struct Front {
  sys::Process process;
  sys::Fd order;  ///< it serves when this is closed
  sys::Fd words;
  std::string address;
};

/// Listens at this machine's address `host`; answers when it has read its order.
Result<Front> start_front(const Context& context, const std::string& host) {
  sys::Pipe order = TRY(sys::make_pipe());
  sys::Pipe words = TRY(sys::make_pipe());
  bool six = host.find(':') != host.npos;
  sys::SpawnOptions options;
  options.program = context.paths.libexec + "/berth-hub";
  options.args = {"berth-hub", "--for-job", (six ? "[" + host + "]" : host) + ":0"};
  options.in = &order.read;
  options.out = &words.write;
  Front front;
  front.process = TRY(sys::spawn(options));
  front.order = std::move(order.write);
  front.words = std::move(words.read);
  words.write.reset();
  TRY(sys::set_nonblocking(front.words));
  std::string line =
      TRY(sys::read_line(front.words, slurm::kMaxLine, kForFront, "what berth-hub says"));
  front.address = TRY(address_in(line));
  return front;
}

/// One question and its answer.
Result<slurm::Directions> ask(const sys::Fd& board, const slurm::Hello& hello, milliseconds most) {
  TRY(sys::send_all(board, slurm::to_line(hello), kForConnection));
  std::string line = TRY(sys::read_line(board, 32 * slurm::kMaxLine, most, "the step's board"));
  return slurm::parse_directions(line);
}

}  // namespace

JobFetch JobFetch::begin(const Context& context, const image::Store& store,
                         const RunRequest& request, const image::RegistryAccess& access) {
  const Environment& environment = context.environment;
  auto text = environment.get_filled(slurm::kBoardVariable);
  auto board = environment.get_filled("SLURM_LAUNCH_NODE_IPADDR");
  auto node = number(environment, "SLURM_NODEID");
  auto nodes = number(environment, "SLURM_STEP_NUM_NODES");
  auto reference = image::Reference::parse(request.image);
  bool named = !request.image_file && !request.rootfs && reference.ok();
  if (!text || !board || !node || !nodes || *nodes < 2 || *node >= *nodes || !named) return {};
  auto joined = [&]() -> Result<JobFetch> {
    auto present = TRY(store.find_image_named(request.image));
    Part part;
    part.invitation = TRY(slurm::parse_invitation(*text));
    part.board = *board;
    part.node = *node;
    part.nodes = *nodes;
    part.has_image = present && present->unpacked();
    part.reference = reference->canonical();
    JobFetch fetch;
    if (part.has_image && !part.serves()) return fetch;
    TRY(fetch.join(context, part, access));
    return fetch;
  }();
  if (joined.ok()) return std::move(*joined);
  context.log.warn("cannot fetch the image with the other nodes of this step: " +
                   to_line(joined.error()) + "; asking the registry instead");
  return {};
}

Result<void> JobFetch::join(const Context& context, const Part& part,
                            image::RegistryAccess access) {
  const milliseconds most = part.has_image ? kForDirectionsOfOthers : kForDirections;
  const Clock::time_point end = Clock::now() + most;
  slurm::Hello hello{part.invitation.token, part.node, part.nodes, ""};
  Front front;
  slurm::Directions directions{true, {}};
  while (directions.later) {
    sys::Fd board = TRY(sys::connect_tcp(part.board, part.invitation.port, kForConnection));
    if (part.serves() && !front.process) {
      // The way to srun is one that the machines of the cluster have.
      std::string host = TRY(sys::local_address(board));
      front = TRY(start_front(context, host));
      hello.address = front.address;
    }
    auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    auto answer = ask(board, hello, std::max(left, milliseconds(0)));
    if (answer.ok()) {
      directions = std::move(*answer);
    } else if (part.has_image && answer.error().kind == Kind::interrupted) {
      directions = {};
    } else {
      return std::move(answer).error();
    }
    if (directions.later) std::this_thread::sleep_for(kLater);
  }
  image::JobPeers peers{part.reference, directions.from, part.invitation.token};
  if (front.process) {
    image::JobOrder order;
    order.root = context.paths.root;
    order.reference = part.reference;
    order.token = part.invitation.token;
    order.access = std::move(access);
    TRY(add_registries(context, order.access));
    if (!peers.addresses.empty()) order.access.peers = peers;
    sys::IgnoredSignal broken(SIGPIPE);  // it may have ended
    TRY(sys::write_all(front.order, image::to_json(order), "the order of berth-hub"));
    front.order.reset();
    peers.addresses.insert(peers.addresses.begin(), front.address);
    front_ = std::move(front.process);
    words_ = std::move(front.words);
  }
  if (!peers.addresses.empty()) peers_ = std::move(peers);
  return {};
}

void JobFetch::add_to(image::RegistryAccess& access) const {
  if (peers_) access.peers = peers_;
}

}  // namespace berth::engine
