// SPDX-License-Identifier: Apache-2.0
// A read-only registry that serves each client the entry of an index for the client's node.
// docs/hub.md
#pragma once

#include <memory>
#include <optional>
#include <semaphore>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/result.hpp"
#include "hub/caller.hpp"
#include "hub/choice.hpp"
#include "hub/config/config.hpp"
#include "hub/htpasswd.hpp"
#include "hub/reply.hpp"
#include "hub/route.hpp"
#include "hub/sources.hpp"
#include "image/transfer_protocol.hpp"
#include "transfer/work/cancel.hpp"
#include "transfer/work/event.hpp"

namespace berth::hub {

/// Answers requests; thread-safe.
class Hub {
 public:
  /// Reads the profiles and the accounts. `order.config` has been checked. `cancel` and `log` have
  /// to outlive the hub.
  /// Errors: those of node::load_fleet(), Htpasswd::parse() and Nodes::make(); not_found, denied (a
  /// file that the configuration names).
  static Result<std::unique_ptr<Hub>> make(Order order, const transfer::Cancel& cancel, Log& log);

  Answer answer(const Asked& asked);

 private:
  Hub(Order order, std::optional<Htpasswd> accounts, Nodes nodes, const transfer::Cancel& cancel,
      Log& log);

  struct Question;
  std::optional<Reply> know_caller(const Asked& asked, Question& question);
  Answer answer_route(const PingRoute& route, Question& question);
  Answer answer_route(const ManifestRoute& route, Question& question);
  Answer answer_route(const BlobRoute& route, Question& question);
  Answer answer_route(const TagsRoute& route, Question& question);
  Answer answer_route(const Reply& reply, Question& question);
  Result<Reply> give_manifest(const ManifestRoute& route, Source& source, Question& question);
  Result<std::optional<Reply>> choose(const ManifestRoute& route, Source& source, Held& held,
                                      Question& question);
  Result<Choice> choice_for(const node::Profile& node, Source& source, const Held& held);
  Result<Reply> give_tags(const TagsRoute& route, Source& source);

  const Config config_;
  const std::optional<Htpasswd> accounts_;
  const Nodes nodes_;
  const image::FactsTrust trust_;
  Sources sources_;
  transfer::Events events_;
  ChoiceCache choices_;
  /// A document takes several times its size while it is parsed: 16 MiB for a document of 4 MiB.
  std::counting_semaphore<2> parsers_{2};
  std::counting_semaphore<2> facts_{2};
};

struct Renewed {
  Order order;                     ///< checked
  std::vector<std::string> fixed;  ///< keys whose new values need a restart
};

/// Reads the configuration file of `running` again, and applies the same flags. Does not read the
/// site's policy again. If there was a file, it still has to exist: otherwise a hub with passwords
/// would become a hub without them. Errors: not_found, denied, corrupt, usage (the file is missing,
/// or invalid).
Result<Renewed> read_again(const Order& running);

}  // namespace berth::hub
